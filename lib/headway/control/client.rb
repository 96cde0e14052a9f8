# frozen_string_literal: true

require "json"
require "socket"

require_relative "../reason"
require_relative "directory"
require_relative "shape"

module Headway
  module Control
    # Something is wrong with whom we ask, or with the answer. The message is one line for the user.
    class ClientError < StandardError
      # @return [Boolean] whether there was nothing to dump: who asked can begin one, each in a way of its own
      def no_flight_recorder?
        message.start_with?("no flight recorder")
      end
    end

    # Asks one process. Each request has a connection of its own, and none is waited for longer than its limit.
    class Client
      # Seconds: the server answers within milliseconds, however busy its process is; a dump may take its time.
      LIMIT = 3
      DUMP_LIMIT = 15
      ANSWER_BYTES = 8 << 20
      private_constant :LIMIT, :DUMP_LIMIT, :ANSWER_BYTES

      # @param pid [Integer]
      # @param path [String] its socket
      # @param limit [Numeric] seconds an answer is waited for
      def initialize(pid, path, limit: LIMIT)
        @pid = pid
        @path = path
        @limit = limit
      end

      attr_reader :pid, :path

      # @return [Hash] with symbols as names
      # @raise [ClientError]
      def stats
        request({ get: "stats" }, :stats)
      end

      # @return [Hash] :policy, :quantum_ms, :preempt
      def settings
        request({ get: "settings" }, :settings)
      end

      # @param values [Hash]
      # @return [Hash] the settings after it
      def set(values)
        request({ set: values }, :settings)
      end

      # @return [Hash] what process it is
      def ping
        request({ ping: true }, :ping)
      end

      # @param file [String, nil] absolute
      # @return [String] the file written
      def dump(file = nil)
        request({ dump: file || true }, :dump, limit: DUMP_LIMIT)
      end

      # @return [Hash, nil] :mode, :file, :events, :dropped, :bytes, :slots, :failure of the recording there is
      def recorder
        request({ get: "recorder" }, :recorder)
      end

      # @param options [Hash] :file (absolute), :mode, :events, :seconds, :wait_threshold, as {Recorder.start} takes them
      # @return [Hash] as {#recorder}
      def record(options)
        request({ record: options }, :recorder, limit: DUMP_LIMIT)
      end

      # Ends the recording.
      #
      # @return [Hash] as {#recorder}, in the end
      def stop_recording
        request({ record: false }, :recorder, limit: DUMP_LIMIT)
      end

      private

      # @return what the answer has under the name
      # @raise [ClientError] also when the answer is an error
      def request(message, name, limit: @limit)
        answer = parse(exchange("#{text_of(message)}\n", now + limit))
        raise ClientError, answer[:error].to_s if answer[:error]

        answer.fetch(name).tap { |told| raise KeyError unless Shape.fits?(told, Shape::ALL.fetch(name)) }
      rescue Errno::ENOENT, Errno::ECONNREFUSED, Errno::ECONNRESET, Errno::EPIPE
        raise ClientError, "process #{@pid} has ended, or doesn't run Headway any more"
      rescue Errno::EACCES, Errno::EPERM
        raise ClientError, "process #{@pid} belongs to another user: ask as that user"
      rescue SystemCallError, IOError => error
        raise ClientError, "process #{@pid} cannot be asked: #{Reason.of(error)}"
      rescue KeyError, JSON::ParserError
        raise ClientError, "process #{@pid} gave an answer that makes no sense: is its Headway of another version?"
      end

      # A path is bytes to the system, whatever the locale takes them for; JSON has but UTF-8.
      def text_of(message)
        JSON.generate(in_utf8(message))
      rescue JSON::GeneratorError
        raise ClientError, "process #{@pid} can't be told #{message.values.first.to_s.scrub.inspect[0, 200]}: give a name in UTF-8"
      end

      def in_utf8(value)
        case value
        when Hash then value.transform_values { |each| in_utf8(each) }
        when String then value.dup.force_encoding(Encoding::UTF_8)
        else value
        end
      end

      def exchange(line, deadline)
        socket = connect(deadline)
        begin
          check_peer(socket)
          socket.write_nonblock(line)
          receive(socket, deadline)
        ensure
          socket.close
        end
      end

      # Not blocking: with its queue full a Unix socket makes who connects wait for ever.
      def connect(deadline)
        socket = Socket.new(:UNIX, :STREAM)
        begin
          socket.connect_nonblock(Socket.pack_sockaddr_un(@path))
        rescue Errno::EAGAIN, IO::WaitWritable
          raise_late if now > deadline
          sleep(0.01)
          retry
        end
        socket
      rescue ArgumentError, SystemCallError, ClientError => error
        socket&.close
        raise error.is_a?(ArgumentError) ? Errno::ENOENT : error # the path is too long for a socket
      end

      def check_peer(socket)
        raise Errno::EPERM unless socket.getpeereid.first == Process.euid
      end

      def receive(socket, deadline)
        answer = +""
        until answer.end_with?("\n")
          raise_late unless socket.wait_readable([deadline - now, 0].max)
          part = socket.read_nonblock(65_536, exception: false)
          next if part == :wait_readable
          raise Errno::ECONNREFUSED if part.nil?

          answer << part
          raise KeyError if answer.bytesize > ANSWER_BYTES
        end
        answer
      end

      def parse(text)
        answer = JSON.parse(text.force_encoding(Encoding::UTF_8).scrub, symbolize_names: true)
        answer.is_a?(Hash) ? answer : raise(KeyError)
      end

      def raise_late
        raise ClientError, "process #{@pid} doesn't answer: is it stopped?"
      end

      def now
        Process.clock_gettime(Process::CLOCK_MONOTONIC)
      end
    end
  end
end
