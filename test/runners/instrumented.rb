# frozen_string_literal: true

# A program of threads that compute, wait, are timed out and killed, and of processes, inside of an instrument; it says "all right" when
# nothing of it went lost. Usage: instrumented.rb NAME

require "socket"
require "timeout"

NOWHERE = "127.0.0.1" # where an agent would be

INSTRUMENTS = {
  "vernier" => ->(program) { Vernier.profile(mode: :wall, interval: 200, &program) },
  "stackprof" => ->(program) { %i[cpu wall object].each { |mode| StackProf.run(mode: mode, interval: 500, raw: true, &program) } },
  "gvltools" => lambda do |program|
    [GVLTools::LocalTimer, GVLTools::GlobalTimer, GVLTools::WaitingThreads].each(&:enable)
    program.call
  end,
  "datadog" => lambda do |program|
    Datadog.configure do |datadog|
      datadog.profiling.enabled = true
      datadog.agent.host = NOWHERE
      datadog.agent.port = 1
      datadog.logger.level = Logger::FATAL
    end
    program.call
    Datadog.shutdown!
  end,
  "newrelic_rpm" => lambda do |program|
    NewRelic::Agent.manual_start(license_key: "0" * 40, app_name: "smoke", host: NOWHERE, log_level: "fatal")
    program.call
    NewRelic::Agent.shutdown
  end,
  "sentry-ruby" => lambda do |program|
    Sentry.init do |sentry|
      sentry.dsn = "http://key@#{NOWHERE}:1/1"
      sentry.traces_sample_rate = sentry.profiles_sample_rate = 1.0
      sentry.sdk_logger = Logger.new(IO::NULL)
    end
    transaction = Sentry.start_transaction(name: "smoke")
    program.call
    transaction.finish
  end
}.freeze

def check(what, expected, found) = expected == found || abort("#{what}: #{found.inspect} instead of #{expected.inspect}")

def compute = (1..100_000).sum { |number| number % 7 }

def computing = Array.new(4) { Thread.new { Array.new(10) { compute }.uniq } }

def waiting = Array.new(4) { Thread.new { Array.new(50) { sleep 0.001 }.size } }

def timed_out
  Thread.new do
    Array.new(20) do
      Timeout.timeout(0.02) { loop { compute } }
    rescue Timeout::Error
      :late
    end.uniq
  end
end

def killed
  cleaned = Queue.new
  Array.new(10) do
    thread = Thread.new do
      loop { compute }
    ensure
      cleaned << true
    end
    sleep 0.005
    thread.kill.join
  end
  cleaned.size
end

def served
  server = TCPServer.new("127.0.0.1", 0)
  thread = Thread.new { 20.times { server.accept.then { |client| client.puts(client.gets.upcase) || client.close } } }
  answers = Array.new(20) { TCPSocket.open("127.0.0.1", server.addr[1]) { |socket| socket.puts("hello") || socket.gets } }
  thread.join
  answers.uniq
end

# Vernier's thread holds a lock of its own while Ruby forks: the child waits for it, with Headway or without.
def forked(name)
  return [0] if name == "vernier"

  Array.new(3) { fork { Thread.new { compute }.join && exit!(0) } }.map { |pid| Process.wait2(pid).last.exitstatus }.uniq
end

name = ARGV.fetch(0)
require name
require "stackprof" if name == "sentry-ruby"
INSTRUMENTS.fetch(name).call(proc do
  compute_all, wait_all, time_out = computing, waiting, timed_out
  check("killed", 10, killed)
  check("served", ["HELLO\n"], served)
  check("computed", [[compute]], compute_all.map(&:value).uniq)
  check("waited", [50], wait_all.map(&:value).uniq)
  check("timed out", [:late], time_out.value)
  check("forked", [0], forked(name))
end)
puts "all right: #{Headway.policy}"
