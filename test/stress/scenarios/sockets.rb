# frozen_string_literal: true

require "socket"

module Stress
  module Scenarios
    # Clients of an echo server, over TCP or a UNIX socket.
    class Sockets < Scenario
      def round
        requests = Array.new(rand(1..4)) { rand(5..40) }
        with_server(pick(%i[tcp unix])) do |connect|
          answers = values_of(requests.map { |count| start_thread { ask(connect.call, count) } })
          requests.zip(answers) { |count, got| check_equal((0...count).to_a, got, "answers of a socket") }
          account(:messages, requests.sum, answers.sum(&:size))
        end
      end

      private

      def with_server(kind)
        path = File.join(@run.directory, "socket-#{@rounds}")
        server = kind == :tcp ? TCPServer.new("127.0.0.1", 0) : UNIXServer.new(path)
        port = server.addr[1] if kind == :tcp
        accepting = start_thread { accept_all(server) }
        yield(kind == :tcp ? -> { TCPSocket.new("127.0.0.1", port) } : -> { UNIXSocket.new(path) })
        server.close
        accepting.value.each(&:join)
      end

      # A closed server ends its accept with IOError.
      def accept_all(server)
        serving = []
        loop { serving << server.accept.then { |socket| start_thread { echo(socket) } } }
      rescue IOError, Errno::EBADF
        serving
      end

      def echo(socket)
        while (line = socket.gets)
          socket.write(line)
        end
      ensure
        socket.close
      end

      def ask(socket, count)
        Array.new(count) do |number|
          socket.puts(number)
          number.odd? ? socket.wait_readable : nil
          Integer(socket.gets)
        end
      ensure
        socket.close
      end
    end
  end
end
