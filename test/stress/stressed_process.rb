# frozen_string_literal: true

require "rbconfig"
require "tmpdir"
require "fileutils"
require_relative "report"
require_relative "autopsy"

module Stress
  # One process, seen from outside: started, watched, judged.
  class StressedProcess
    LIB = File.expand_path("../../lib", __dir__)
    CHILD = File.expand_path("child.rb", __dir__)
    ORPHAN_LIMIT = 10 # seconds that what it started may outlive it

    attr_reader :plan, :failures, :rows, :kept

    def initialize(plan, keep: false)
      @plan = plan
      @keep = keep
      @failures = []
    end

    def run
      @directory = Dir.mktmpdir("stress")
      File.binwrite(path("plan"), Marshal.dump(plan))
      @pid = Process.spawn(plan.environment, RbConfig.ruby, "-w", "-I", LIB, CHILD, @directory,
                           in: File::NULL, out: path("out"), err: path("err"), pgroup: true)
      status = watch
      @rows = Report.read(path("report"))
      status ? judge(status) : @failures << "killed after a stall"
      self
    ensure
      clean_up
    end

    private

    def path(name) = File.join(@directory, name)
    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

    # @return [Process::Status, nil] nil when it had to be killed
    def watch
      deadline = now + plan.seconds + plan.stall * 2 + 30
      loop do
        _, status = Process.wait2(@pid, Process::WNOHANG)
        return status if status
        return examine("the inner watchdog's report") if stalled?
        return examine("not ended #{plan.stall * 2 + 30} s after its time") if now > deadline

        sleep 0.05
      end
    end

    # Small until something is wrong: only then is it read again and again.
    def stalled?
      File.size?(path("report")) && Report.read(path("report")).any? { |kind,| kind == :stall }
    end

    def examine(reason)
      @failures << "stalled: #{reason}"
      @failures.concat(stalls).concat(output)
      @failures << Autopsy.of_group(@pid)
      @kept = @keep
      return if @keep

      Autopsy.end_group(@pid)
      nil
    end

    def stalls = Report.read(path("report")).select { |kind,| kind == :stall }.map { |_, text| text }

    def output
      %w[out err].filter_map do |name|
        text = File.read(path(name)).scrub
        "std#{name}: #{text[0, 8_000]}" unless text.empty?
      end
    end

    def judge(status)
      ending = Ending.of(plan.ending)
      @failures.concat(rows.select { |kind,| kind == :failure }.map { |_, text| text })
      @failures.concat(output)
      @failures << "ended with #{status.inspect}, which is not #{plan.ending}" unless ending.expected?(status)
      @failures << "did not come to its end" unless rows.include?([:ending])
      judge_goodbyes if ending.clean?
      judge_orphans
    end

    def judge_goodbyes
      compare("ensure clauses at exit", (0...Ending::THREADS).to_a, values(:ensured).sort)
      compare("at_exit blocks", values(:at_exit_issued).reverse, values(:at_exit))
      compare("finalizers", values(:finalizers_issued).sum { |count| count }, values(:finalized).size)
      compare("finalizers run twice", [], values(:finalized).tally.select { |_, count| count > 1 }.keys)
    end

    def compare(what, expected, actual)
      @failures << "#{what}: expected #{expected.inspect[0, 500]}, got #{actual.inspect[0, 500]}" unless expected == actual
    end

    def values(kind) = rows.select { |row| row.first == kind }.map { |row| row[1] }

    # Everything it started must end soon after it.
    def judge_orphans
      looks = ORPHAN_LIMIT * 20 # counted, as a machine that stops gives them no time
      sleep 0.05 while Autopsy.group(@pid).any? && (looks -= 1).positive?
      left = Autopsy.group(@pid)
      return if left.empty?

      @failures << "left processes behind: #{left.join(", ")}" << Autopsy.of_group(@pid)
      Autopsy.end_group(@pid) unless @keep
    end

    def clean_up
      @kept ||= @keep && @failures.any?
      if @kept
        @failures << "kept: process #{@pid}, files in #{@directory}"
      else
        Autopsy.end_group(@pid) if @pid && Autopsy.group(@pid).any?
        FileUtils.rm_rf(@directory)
      end
    end
  end
end
