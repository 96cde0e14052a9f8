# frozen_string_literal: true

require "socket"

module Soak
  # A client of one connection that looks at every byte itself: libraries try again, or take a torn answer for a short one.
  class HTTP
    LIMIT = 60 # seconds without a byte: then the server hangs

    # @!attribute whole [Boolean] whether nothing is missing of what the server began to say
    Response = Struct.new(:status, :headers, :body, :whole)

    # The server said nothing at all.
    class Unanswered < StandardError; end
    # It is connected, and says nothing for {LIMIT}.
    class Hanging < StandardError; end
    class Refused < StandardError; end
    class Nonsense < StandardError; end

    GONE = [EOFError, Errno::ECONNRESET, Errno::EPIPE, Errno::ECONNABORTED, Errno::ENOTCONN].freeze

    attr_reader :asked

    def initialize(port, receive_buffer: nil)
      @asked = 0
      @socket = Socket.new(:INET, :STREAM)
      @socket.timeout = LIMIT
      @socket.setsockopt(:SOCKET, :RCVBUF, receive_buffer) if receive_buffer
      @socket.connect(Addrinfo.tcp("127.0.0.1", port))
      @socket.setsockopt(:TCP, :NODELAY, 1)
    rescue Errno::ECONNREFUSED, Errno::ECONNRESET, Errno::ETIMEDOUT => error
      @socket&.close
      raise Refused, error.message
    rescue IO::TimeoutError
      raise Hanging, "connecting"
    end

    # @param slowly [Numeric, nil] seconds between 16 KiB of the answer, or of an upload
    def request(path, headers = {}, upload: nil, chunked: false, slowly: nil)
      send_request(path, headers, upload:, chunked:, slowly:)
      read(slowly:)
    end

    def send_request(path, headers = {}, upload: nil, chunked: false, slowly: nil)
      @asked += 1
      headers = headers.merge("Host" => "127.0.0.1")
      headers = headers.merge(chunked ? { "Transfer-Encoding" => "chunked" } : { "Content-Length" => upload.bytesize }) if upload
      text = "#{upload ? "POST" : "GET"} #{path} HTTP/1.1\r\n#{headers.map { |name, value| "#{name}: #{value}\r\n" }.join}\r\n"
      write(text)
      write_body(upload, chunked, slowly) if upload
    rescue *GONE
      nil # it may have said something all the same
    rescue IO::TimeoutError
      raise Hanging, "a request isn't taken"
    end

    # So many bytes, no more.
    def write(text) = @socket.write(text)

    def read(slowly: nil)
      begun = false
      status_line = @socket.gets("\r\n") or raise Unanswered
      begun = true
      code = status_line[%r{\AHTTP/1\.1 (\d+)}, 1] or raise Nonsense, status_line[0, 200].inspect
      headers = read_headers or return Response.new(code.to_i, {}, "", false)
      body, whole = read_body(code.to_i, headers, slowly)
      Response.new(code.to_i, headers, body, whole)
    rescue *GONE
      raise Unanswered unless begun

      Response.new(code.to_i, headers || {}, "", false)
    rescue IO::TimeoutError
      raise Hanging, begun ? "in the middle of an answer (#{headers&.fetch("x-process", nil)})" : "no answer"
    end

    def read_some(bytes) = @socket.readpartial(bytes)

    # @param roughly [Boolean] with what is still to come thrown back at the server
    def close(roughly: false)
      @socket.setsockopt(Socket::Option.linger(true, 0)) if roughly
      @socket.close
    rescue SystemCallError, IOError
      nil
    end

    private

    def write_body(upload, chunked, slowly)
      upload.scan(/.{1,16384}/m) do |part|
        write(chunked ? "#{part.bytesize.to_s(16)}\r\n#{part}\r\n" : part)
        sleep slowly if slowly
      end
      write("0\r\n\r\n") if chunked
    end

    def read_headers
      headers = {}
      while (line = @socket.gets("\r\n"))
        return headers if line == "\r\n"

        name, value = line.chomp("\r\n").split(": ", 2)
        value or raise Nonsense, line[0, 200].inspect
        headers[name.downcase] = value
      end
    end

    def read_body(status, headers, slowly)
      if (length = headers["content-length"]) then read_length(length.to_i, slowly)
      elsif headers["transfer-encoding"] == "chunked" then read_chunks(slowly)
      elsif [204, 304].include?(status) then ["", true]
      else [@socket.read, true] # by whoever closes: nobody can tell whether it is whole
      end
    end

    def read_length(length, slowly)
      body = +""
      while body.bytesize < length
        part = @socket.read([length - body.bytesize, 16_384].min) or break
        body << part
        sleep slowly if slowly
      end
      [body, body.bytesize == length]
    rescue *GONE
      [body, false]
    end

    def read_chunks(slowly)
      body = +""
      loop do
        line = @socket.gets("\r\n") or return [body, false]
        line.match?(/\A\h+\r\n\z/) or raise Nonsense, line[0, 200].inspect
        length = line.hex
        part = @socket.read(length + 2)
        return [body, false] unless part && part.bytesize == length + 2

        body << part.byteslice(0, length)
        return [body, true] if length.zero?

        sleep slowly if slowly
      end
    rescue *GONE
      [body, false]
    end
  end
end
