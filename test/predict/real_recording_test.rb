# frozen_string_literal: true

require "test_helper"
require "headway"
require "headway/workload"
require "json"
require "cli/command_line"
require "harness/measured"

# What `headway predict` makes of traces of programs that really ran.
class PredictRealRecordingTest < Minitest::Test
  include CommandLine
  include Harness::Measured

  def setup
    skip Headway.unsupported_reason unless Headway.supported?
  end

  def test_what_native_code_computes_without_the_gvl_is_no_delay
    code = 'require "zlib"; text = Random.new(1).bytes(1_000_000); ' \
           'Thread.new { 31.times { Headway.mark("deflate") { Zlib.deflate(text) } }; ' \
           'print Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) / 31 }.join; ' \
           'Thread.new { 31.times { Headway.mark("sleep") { sleep 0.002 } } }.join'
    recorded(code) do |path, program|
      deflate, sleep = %w[deflate sleep].map { |name| Headway::Workload.open(path).kinds.find { |kind| kind.name == name } }

      assert_operator deflate.cpu_s, :>, 0.005
      # Three times what it computes with the GVL; holds count by the wall, so a busy machine adds to those.
      assert_operator deflate.cpu_s, :>, 0.75 * Float(program.out)
      assert_operator sleep.cpu_s, :<, 0.1 * sleep.delay_s
    end
  end

  # Headway's own quantum is for nothing there, as it schedules nothing.
  def test_what_was_only_observed_has_the_slices_of_the_vm
    slice = Gem::Version.new(RUBY_VERSION) >= Gem::Version.new("3.4") ? 30.0 : 100.0
    in_directory do |directory|
      { { "RUBY_THREAD_TIMESLICE" => "30" } => slice, { "RUBY_THREAD_DEFAULT_QUANTUM_MS" => "10" } => 100.0 }.each do |env, quantum_ms|
        path = File.join(directory, "observed.headway")
        assert_predicate headway_ruby("sleep 0.01", "--policy=observe", "--record=#{path}", env: env), :success?
        assert_equal [:stock, quantum_ms], Headway::Workload.open(path).setting.values_at(:policy, :quantum_ms)
      end
    end
  end

  # From a real program's trace, in a process of its own: the setting it ran with comes out near what was measured.
  def test_a_real_recording
    code = 'work = ->(ms) { t = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) + ms / 1000.0; ' \
           'nil while Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) < t }; ' \
           '3.times.map { Thread.new { 60.times { Headway.mark("job") { work.(1); sleep 0.003; work.(0.5) } } } }.each(&:join)'
    recorded(code) do |path|
      result = headway("predict", path, "--threads", "1,3", "--policy", "stock,fair", "--json")

      assert_quiet_success result
      object = JSON.parse(result.out)
      assert_equal [3, 180, "job"], [object["recorded"]["threads"], object["recorded"]["requests"], object["recorded"]["classes"].first["name"]]
      same = object["predictions"].find { |row| row.values_at("threads", "policy") == [3, "stock"] }
      assert_in_delta 1, same.dig("requests_per_s", "median") / object["recorded"]["requests_per_s"], 0.4
    end
  end

  private

  # Yields the trace of a program that really ran; of another run when it doesn't say what is asserted.
  def recorded(code)
    measured do
      in_directory do |directory|
        path = File.join(directory, "real.headway")
        program = headway_ruby(code, "--record=#{path}", "--policy=observe")
        assert_predicate program, :success?
        yield path, program
      end
    end
  end
end
