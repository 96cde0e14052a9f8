# frozen_string_literal: true

require_relative "../harness/computing"
require_relative "places"

module Stress
  # One kind of load. A scenario has a thread of its own, which plays round after round until the time is up; whatever a
  # round starts it also ends and accounts for.
  class Scenario
    include Harness::Computing
    include Places

    FILES = Dir[File.join(__dir__, "scenarios", "*.rb")].sort.to_h { |path| [File.basename(path, ".rb"), path] }.freeze

    def self.names = FILES.keys

    def self.load(name)
      require FILES.fetch(name)
      Scenarios.const_get(name.split("_").map(&:capitalize).join)
    end

    attr_reader :name

    def initialize(name, run)
      @name = name
      @run = run
      @random = Random.new(run.plan.seed + Scenario.names.index(name))
      @rounds = 0
      beat
    end

    # @return [Float] when it last made progress
    attr_reader :beat_at

    def beat
      @beat_at = @run.now
    end

    def play
      Thread.current.name = name
      until @run.over?
        round
        @rounds += 1
        beat
      end
      finish
    rescue StandardError, SystemStackError, NoMemoryError => error
      @run.fail("#{name}: #{error.full_message(highlight: false)}")
    end

    # One round: a second or so of work beside everything else.
    def round = raise(NotImplementedError)

    # After the last round.
    def finish; end

    private

    def rand(...) = @random.rand(...)
    def pick(array) = array.sample(random: @random)

    # A thread whose exception comes out of its join, in the scenario's own thread.
    def start_thread(&block)
      title = "#{name}-#{@rounds}"
      Thread.new do
        Thread.current.report_on_exception = false
        Thread.current.name = title # from outside, Ruby may touch the native thread of one that has ended
        block.call
      ensure
        beat
      end
    end

    def values_of(threads) = threads.map(&:value)

    def account(kind, issued, accounted) = @run.ledger.account(kind, issued, accounted)

    def check(condition, message = nil)
      @run.fail("#{name}: #{message || yield}") unless condition
    end

    def check_equal(expected, actual, what)
      check(expected == actual) { "#{what}: expected #{expected.inspect[0, 300]}, got #{actual.inspect[0, 300]}" }
    end

    # The watchdog sees to it that this doesn't last for ever.
    def wait_until
      sleep 0.001 until yield
    end

    # Past Ruby's buffer: a child forked in between would write what is in it once more when it exits.
    def write_file(path, text)
      File.open(path, "w") { |file| file.syswrite(text) }
    end

  end
end
