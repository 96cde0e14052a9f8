# frozen_string_literal: true

require "test_helper"
require "headway/bench"
require "socket"
require "harness/measured"

# Every program runs briefly on the Ruby at hand. One that is not listed here fails the suite.
class BenchProgramsTest < Minitest::Test
  include Harness::Measured
  PLAIN = {
    "quantum" => { iterations: 2, fib_n: 5, sleep_s: 0.001, priority: 0 },
    "cpu" => { threads: 2, iterations: 1_000, priority: 0 },
    "yield" => { work: "50% sleep", concurrency: 2, seconds: 0.05, priority: 0 },
    "processes" => { command: [RbConfig.ruby], processes: [2], threads: [2], iterations: 1_000, priority: 0 },
    "slices" => { seconds: 0.5 }
  }.freeze
  WITH_SERVER = {
    "fairness" => { seconds: 0.05, cpu_threads: 1, priority: -3 },
    "io" => { requests: 2, concurrency: 2, priority: 0 }
  }.freeze
  SWITCHING = {
    "wakeups" => { cpu_threads: 1, preempt: "signal", blocks: 1, window_s: 0.05 },
    "idle_cost" => { work: "release", preempt: "poll", blocks: 1, window_s: 0.01 }
  }.freeze
  IN_SERVING_TEST = %w[puma sidekiq work load jobs arrivals].freeze
  IN_OFFLOAD_TEST = %w[offload offload_echo].freeze
  SHARED = %w[arithmetic heap measure].freeze
  LISTED = [*PLAIN.keys, *WITH_SERVER.keys, *SWITCHING.keys, "server", *IN_SERVING_TEST, *IN_OFFLOAD_TEST, *SHARED].freeze

  def test_every_program_is_listed
    assert_equal Dir.children(Headway::Bench::PROGRAMS).sort, LISTED.map { "#{_1}.rb" }.sort
  end

  PLAIN.each do |name, settings|
    define_method(:"test_#{name}") { assert_nil run_program(name, settings).fetch("policy") }
  end

  WITH_SERVER.each do |name, settings|
    define_method(:"test_#{name}") do
      Headway::Bench::Server.run(delay_ms: 1) do |port|
        assert_nil run_program(name, settings.merge(port:, url: "http://127.0.0.1:#{port}/")).fetch("policy")
      end
    end
  end

  SWITCHING.each do |name, settings|
    define_method(:"test_#{name}") do
      skip "Headway does nothing here" if Headway::Bench::Interpreter.current.headway_trouble

      lib = File.expand_path("../../lib", __dir__)
      blocks = run_program(name, settings, "-I", lib, "-rheadway").fetch("blocks")
      assert_equal 1, blocks.size
      assert_equal %w[headway stock], blocks.first.keys
    end
  end

  def test_slices_of_stock_are_those_of_the_virtual_machine
    measured do
      slices_ms = run_program("slices", { seconds: 1.5 }).fetch("slices_ms")
      assert_operator slices_ms.size, :>, 3
      # The VM counts ticks of 10 ms: on a busy machine they come late, but none too soon.
      assert_operator Headway::Statistics.median(slices_ms), :>, 50
      assert slices_ms.any? { |slice_ms| slice_ms.between?(50, 150) }, slices_ms.inspect
    end
  end

  def test_server_answers_after_its_delay_and_ends_with_us
    address = nil
    Headway::Bench::Server.run(delay_ms: 50) do |port|
      elapsed = measure { Socket.tcp("127.0.0.1", port) { |s| s.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n") && s.read } }
      assert_operator elapsed, :>=, 0.05
      address = port
    end
    assert_raises(Errno::ECONNREFUSED) { Socket.tcp("127.0.0.1", address) }
  end

  private

  def run_program(name, settings, *flags)
    command = [RbConfig.ruby, "-w", *flags, Headway::Bench.program(name), JSON.generate(settings)]
    Headway::Bench::Child.run(command, env: Headway::Bench::Arm.environment, limit_s: 50)
  end

  def measure
    start = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    yield
    Process.clock_gettime(Process::CLOCK_MONOTONIC) - start
  end
end
