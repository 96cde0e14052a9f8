# frozen_string_literal: true

# Asks a server over and over, on so many connections at once, and prints how many requests were answered.
# Usage: requests.rb PORT CONNECTIONS SECONDS

require "socket"

port, connections, seconds = ARGV
finish = Process.clock_gettime(Process::CLOCK_MONOTONIC) + Float(seconds)
threads = Array.new(Integer(connections)) do
  Thread.new do
    answered = 0
    socket = TCPSocket.new("127.0.0.1", Integer(port))
    while Process.clock_gettime(Process::CLOCK_MONOTONIC) < finish
      socket.write("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
      raise "no answer" unless socket.gets.to_s.include?("200")

      length = 0
      while (line = socket.gets) && line != "\r\n"
        length = line[/\d+/].to_i if line.downcase.start_with?("content-length:")
      end
      socket.read(length)
      answered += 1
    end
    answered
  end
end
puts threads.sum(&:value)
