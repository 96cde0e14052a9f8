# frozen_string_literal: true

module CRubySuite
  # Who passes what, and whether a test that passes without Headway fails with it.
  class Comparison
    RETRIES = 3

    # Differences that belong to what a policy is, by arm, with the reason. Of those by parking all but the first wait until another
    # thread says stop?, and then do what it must be asleep for; it says so, too, while it makes way to the very thread that asks.
    # (test_popen_exit then kills process 0, which is all of the run: it is resumed.) The other one, of Ruby 4.1, takes anything on
    # standard error for a failure.
    PARKED = [/\Afair/, "a parked thread says stop? == true"].freeze
    NOTICE = [/\A(?:fair|quantum)/, "with RUBY_MN_THREADS Headway says that it only observes"].freeze
    DOCUMENTED = %w[Thread#test_priority Thread#test_main_thread_status_at_exit Thread#test_thread_join_in_trap
                    Thread#test_thread_value_in_trap Process#test_popen_exit].to_h { |test| ["Test#{test}", PARKED] }
                  .merge("TestThread#test_mn_threads_sub_millisecond_sleep" => NOTICE).freeze

    Difference = Struct.new(:test, :arm, :failed_with, :failed_without, :documented) do
      # Fails with Headway, and more often than without.
      def real? = failed_with > failed_without

      def to_s
        kind = documented ? "documented: #{documented}" : (real? ? "DIFFERENT" : "unsteady, without Headway too")
        "#{test} under #{arm}: failed #{failed_with} of #{RETRIES + 1} with, #{failed_without} of #{RETRIES + 1} without (#{kind})"
      end
    end

    # @param stock [Arm]
    # @param arms [Array<Arm>]
    def initialize(stock, arms, files)
      @stock = stock
      @arms = arms
      @files = files
      @results = {}
      @differences = []
    end

    def run
      @results[@stock] = attempt(@stock)
      @arms.each do |arm|
        @results[arm] = attempt(arm)
        look_closer(arm)
      end
    end

    def same? = @results[@stock].any? && @differences.none? { |difference| difference.real? && !difference.documented }

    def to_s
      rows = @results.map { |arm, results| row(arm.name, results) }
      header = format("%-16s %7s %7s %7s", "", "passed", "failed", "not run")
      ["CRuby's tests, Ruby #{RUBY_VERSION}:", header, *rows, *@differences.map(&:to_s), verdict].join("\n")
    end

    private

    def attempt(arm, only: nil)
      warn "cruby_suite: #{arm.name}#{", again: #{only.join(" ")}" if only}"
      arm.run(@files, only: only, expected: only || @results.fetch(@stock, {}).keys)
    end

    def passing = @results[@stock].select { |_, passed| passed }.keys

    def failing(results, among) = among.reject { |test| results[test] }

    # A test that waits for time to pass may fail on a busy machine: again, alone, with and without.
    def look_closer(arm)
      suspects = failing(@results[arm], passing)
      return if suspects.empty?

      with = suspects.to_h { |test| [test, 1] }
      without = suspects.to_h { |test| [test, 0] }
      RETRIES.times do
        failing(attempt(arm, only: suspects), suspects).each { |test| with[test] += 1 }
        failing(attempt(@stock, only: suspects), suspects).each { |test| without[test] += 1 }
      end
      suspects.each { |test| @differences << Difference.new(test, arm.name, with[test], without[test], documented(test, arm)) }
    end

    def documented(test, arm)
      pattern, reason = DOCUMENTED[test]
      reason if pattern&.match?(arm.name)
    end

    def row(name, results)
      passed, failed = results.values.partition(&:itself).map(&:size)
      format("%-16s %7d %7d %7d", name, passed, failed, (@results[@stock].keys - results.keys).size)
    end

    def verdict
      return "no test ran: see above" if @results[@stock].empty?

      same? ? "What passes without Headway passes with it." : "Headway makes a difference: see above."
    end
  end
end
