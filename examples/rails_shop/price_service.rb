# frozen_string_literal: true

require "json"
require "net/http"
require "socket"

# What things cost today, asked of a slow service elsewhere. That it is a process on this machine, started here, is the example's
# doing: it ends when the pipe to it closes, so even a killed shop leaves none behind.
module PriceService
  # Seconds it takes to answer.
  DELAY = Float(ENV.fetch("SHOP_UPSTREAM_SECONDS", "0.02"))

  class << self
    # @return [void]
    def start
      port, answer = IO.pipe
      stdin, @alive = IO.pipe
      # Plain Ruby, whatever Headway does to the shop.
      Process.detach(Process.spawn({ "RUBYOPT" => nil }, RbConfig.ruby, __FILE__, in: stdin, out: answer))
      [stdin, answer].each(&:close)
      @port = Integer(port.gets)
    ensure
      port&.close
    end

    # @param item [Integer] its id
    # @return [Integer] cents
    def price(item)
      JSON.parse(Net::HTTP.get("127.0.0.1", "/#{item}", @port)).fetch("cents")
    end

    # The service itself: a thread for each connection.
    def serve
      server = TCPServer.new("127.0.0.1", 0)
      $stdout.puts server.addr[1]
      $stdout.flush
      Thread.new { loop { Thread.new(server.accept) { |socket| answer(socket) } } }
      $stdin.read
    end

    private

    def answer(socket)
      item = socket.gets.to_s[/\d+/].to_i
      sleep(DELAY)
      body = JSON.generate(cents: 100 + (item * 37 % 900))
      socket.write("HTTP/1.1 200 OK\r\nContent-Length: #{body.bytesize}\r\nConnection: close\r\n\r\n#{body}")
    rescue SystemCallError
      nil # nobody waits for it any more
    ensure
      socket.close
    end
  end
end

PriceService.serve if $PROGRAM_NAME == __FILE__
