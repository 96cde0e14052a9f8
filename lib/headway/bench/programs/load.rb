# frozen_string_literal: true

# Sends requests to a server and measures how long each takes.
# Usage: load.rb '{"port": …, "paths": {"/light": 0.9, "/heavy": 0.1}, "only": ["/light"], "seed": 1,
#                  "rate": 25.0, "requests": 1000}'      open loop: Poisson arrivals at this rate, whatever the server does
#    or  load.rb '{…, "connections": 20, "seconds": 5}'  closed loop: so many under way all the time; finds the capacity
#                                                        ("keep": true: over lasting connections)
#
# One thread and one select: no request waits for another in here. In the open loop a time counts from the moment at which the
# request was to be sent, so a server that stalls is charged for those that would have come meanwhile.

require "json"
require "socket"
require_relative "arrivals"

# One run of requests.
class Load
  # More than what listens behind a socket takes: then connecting would stall us, and the load is beyond the server anyway.
  MOST_OPEN = 900
  END_OF_ANSWER = "\r\n\r\nok\n"
  # A request under way.
  Open = Struct.new(:path, :due, :answer)

  def initialize(config)
    @config = config
    @arrivals = Arrivals.new(config)
    @open = {}
    @times = Hash.new { |hash, path| hash[path] = [] }
    @late = []
  end

  def open_loop
    start = now
    @arrivals.poisson.each do |due, path|
      serve(start + due)
      send_request(path, start + due)
    end
    serve while @open.any?
    report(now - start)
  end

  # A fifth as long before that warms up.
  def closed_loop
    seconds = @config.fetch("seconds")
    before = keep_busy(seconds / 5.0)
    @times.clear
    start = now
    counted = keep_busy(seconds)
    { requests: before + counted, counted:, seconds: now - start, all_times: @times.values.flatten }
  end

  private

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  # Ends when all are answered: an arm that answers light requests sooner has more heavy ones under way when the time is up, and would
  # be charged with their work but not be paid for it.
  #
  # @return [Integer] requests
  def keep_busy(seconds)
    deadline = now + seconds
    sent = @config.fetch("connections")
    sent.times { send_request(@arrivals.next_in_turn, now) }
    until @open.empty?
      serve(once: true) do |socket|
        next socket.close if now > deadline

        send_request(@arrivals.next_in_turn, now, socket.closed? ? connect : socket)
        sent += 1
      end
    end
    sent
  end

  def send_request(path, due, socket = connect)
    socket.write("GET #{path} HTTP/1.1\r\nHost: bench\r\n#{"Connection: close\r\n" unless @config["keep"]}\r\n")
    @open[socket] = Open.new(path, due, +"")
    @late << (now - due)
  end

  def connect
    abort "the server falls behind: #{@open.size} requests are under way" if @open.size >= MOST_OPEN

    socket = TCPSocket.new("127.0.0.1", @config.fetch("port"))
    socket.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY, 1)
    socket
  end

  # Takes answers until the time given, or some.
  def serve(until_s = nil, once: false)
    loop do
      left = until_s ? until_s - now : nil
      return if left && left <= 0

      readable, = IO.select(@open.keys, nil, nil, left)
      readable&.each { |socket| read(socket) && block_given? && yield(socket) }
      return if once || until_s.nil?
    end
  end

  def read(socket)
    request = @open.fetch(socket)
    case chunk = socket.read_nonblock(4096, exception: false)
    when :wait_readable then false
    when String
      request.answer << chunk
      @config["keep"] && request.answer.end_with?(END_OF_ANSWER) ? finish(socket, request) : false
    else
      socket.close
      finish(socket, request)
    end
  end

  # A server may end a lasting connection after so many requests.
  def finish(socket, request)
    @open.delete(socket)
    socket.close if request.answer.match?(/^connection: close/i)
    abort "#{request.path} was answered with #{request.answer.lines.first.inspect}" unless request.answer.start_with?("HTTP/1.1 200")

    @times[request.path] << (now - request.due)
  end

  def report(seconds) = { counted: @times.values.sum(&:size), seconds:, times: @times, late: @late }
end

config = JSON.parse(ARGV.fetch(0))
load = Load.new(config)
puts JSON.generate(config.key?("rate") ? load.open_loop : load.closed_loop)
