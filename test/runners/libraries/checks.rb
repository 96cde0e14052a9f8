# frozen_string_literal: true

# What the programs of checks in here are written with: check(what, expected) { found }, each beside threads that compute. Says
# "all right" and how many when all of them held, nothing was lost of the threads, and Headway has nothing to say.

CHECK_LIMIT = 60 # seconds
@checks = 0
@failed = []

def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

# About 5 ms.
def compute(rounds = 20_000) = (1..rounds).sum { |number| number % 7 + number.to_s.size }

def compute_for(seconds)
  ends = now + seconds
  compute(1_000) while now < ends
end

def in_threads(count) = Array.new(count) { |number| Thread.new { yield number } }.map(&:value)

def tally(count, &block) = in_threads(count, &block).flatten.tally

# The statuses of processes that found a block true, each with what threads it starts.
def forked(count)
  Array.new(count) { fork { exit!(yield ? 0 : 1) } }.map { |pid| Process.wait2(pid).last.exitstatus }
end

# The name of an error that comes, or what the block returns.
def outcome
  yield
rescue Exception => error # rubocop:disable Lint/RescueException
  error.class.name
end

# A block's value where it is still to come true, by when anything would have.
def eventually(seconds = 20)
  ends = now + seconds
  sleep 0.02 until (value = yield) || now > ends
  value
end

def check(what, expected)
  @checks += 1
  @at = [what, now]
  found = outcome { yield }
  @at = nil
  return if expected === found || expected == found

  @failed << what
  puts "#{what}: #{found.inspect[0, 600]} instead of #{expected.inspect[0, 300]}"
end

# Each of a hang's threads, and the end.
def watch
  Thread.new do
    loop do
      sleep 1
      what, since = @at
      next if what.nil? || now - since < CHECK_LIMIT

      puts "#{what}: not within #{CHECK_LIMIT} s"
      Thread.list.each { |thread| puts "#{thread.inspect}\n  #{(thread.backtrace || []).first(12).join("\n  ")}" }
      $stdout.flush
      exit!(1)
    end
  end
end

def checks(computing: 2)
  $stdout.sync = true
  Thread.report_on_exception = true
  watch
  sum = compute
  rounds = Array.new(computing, 0)
  computers = Array.new(computing) do |number|
    Thread.new { (compute == sum or abort "computed something else") && rounds[number] += 1 until @ended }
  end
  yield
  check("threads that computed beside it", true) { eventually { rounds.all? { |each| each > 5 } } }
  @ended = true
  check("their ends", computers) { computers.each { |thread| thread.join(20) or raise "#{thread.inspect} goes on" } }
  check("notices", []) { Headway.notices } if defined?(Headway.notices)
  check("parks that timed out", 0) { Headway.stats.dig(:process, :park_timeouts) } if defined?(Headway.stats)
  @failed.empty? or abort "#{@failed.size} of #{@checks} failed"
  puts "all right: #{@checks}"
end
