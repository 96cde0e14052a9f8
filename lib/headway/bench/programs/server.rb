# frozen_string_literal: true

# A local HTTP server that answers every request after a fixed time; it ends when its standard input closes.
# Usage: server.rb '{"delay_ms": 60, "port": 0}'; prints {"port": …} when it listens, {"error": …} when it cannot.

require "json"
require "socket"

config = JSON.parse(ARGV.fetch(0))
delay = config.fetch("delay_ms") / 1000.0
answer = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 3\r\nConnection: close\r\n\r\nok\n"

begin
  server = TCPServer.new("127.0.0.1", config.fetch("port"))
rescue SystemCallError => e
  puts JSON.generate(error: e.message)
  exit
end
server.listen(1024)

# A thread for each connection: it sleeps nearly all of its life, so the threads do not get into each other's way.
Thread.new do
  loop do
    Thread.new(server.accept) do |socket|
      socket.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY, 1)
      nil until [nil, "\r\n"].include?(socket.gets)
      sleep(delay)
      socket.write(answer)
    rescue SystemCallError
      nil # the client has gone
    ensure
      socket.close
    end
  end
end

puts JSON.generate(port: server.addr[1])
$stdout.flush
$stdin.read
