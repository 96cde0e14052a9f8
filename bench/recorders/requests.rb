# frozen_string_literal: true

# Asks a server over and over, on so many connections at once, and prints how many requests were answered.
# Usage: requests.rb PORT CONNECTIONS SECONDS

require "socket"

# A kept connection. Puma 7 and 8 answer without the status line now and then where Headway's cure isn't at work: such an answer doesn't
# count, and a new connection takes the place of its own.
class Connection
  def initialize(port)
    @port = port
    open
  end

  # @return [Boolean] whether a whole answer came
  def ask
    return true if answered?

    @socket.close
    open
    false
  end

  private

  def open = @socket = TCPSocket.new("127.0.0.1", @port)

  def answered?
    @socket.write("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    return false unless @socket.gets.to_s.include?("200")

    length = 0
    while (line = @socket.gets) && line != "\r\n"
      length = line[/\d+/].to_i if line.downcase.start_with?("content-length:")
    end
    @socket.read(length)&.size == length
  rescue Errno::ECONNRESET, Errno::EPIPE
    false
  end
end

port, connections, seconds = ARGV
finish = Process.clock_gettime(Process::CLOCK_MONOTONIC) + Float(seconds)
threads = Array.new(Integer(connections)) do
  Thread.new do
    connection = Connection.new(Integer(port))
    answered = 0
    answered += 1 if connection.ask while Process.clock_gettime(Process::CLOCK_MONOTONIC) < finish
    answered
  end
end
puts threads.sum(&:value)
