# frozen_string_literal: true

require "harness/timing"
require "harness/vm_fixture"

module Harness
  # Threads of known behaviour for tests to put side by side.
  module Workload
    include Timing

    # What a test does in full is reached with HEADWAY_TEST_SCALE=10; a run in between takes 1.
    def scale(count) = (count * Float(ENV.fetch("HEADWAY_TEST_SCALE", "1"))).ceil

    # Runs the block beside threads that compute without end; yields their counters.
    def beside_cpu_threads(count)
      stop = false
      counters = Array.new(count, 0)
      threads = Array.new(count) do |index|
        Thread.new { counters[index] += 1 until stop }.tap { |thread| thread.name = "cpu-#{index}" }
      end
      yield counters, threads
    ensure
      stop = true
      threads&.each(&:join)
    end

    # Lets each of the threads that compute beside us have a slice of the VM so many times, however long that takes: who wakes up
    # waits in line behind all of them.
    def take_turns(times) = times.times { sleep 0.001 }

    # Runs the block beside threads that wake up, do next to nothing and sleep again.
    def beside_io_threads(count, pause: 0.0002)
      stop = false
      threads = Array.new(count) do |index|
        Thread.new { sleep pause until stop }.tap { |thread| thread.name = "io-#{index}" }
      end
      yield threads
    ensure
      stop = true
      threads&.each(&:join)
    end

    # Threads that sleep so many times.
    # @return [Array<Integer>] their numbers among VMEvents
    def wake_ups(threads:, times:, pause:)
      workers = Array.new(threads) { Thread.new { times.times { sleep pause } } }
      numbers = workers.map { |thread| VMFixture.number_of(thread) }
      workers.each(&:join)
      numbers
    end

    def percentile(values, fraction)
      sorted = values.sort
      sorted[[(sorted.size * fraction).ceil, 1].max - 1]
    end

    def median(values) = percentile(values, 0.5)

    # Native threads of this process.
    def native_thread_ids = Dir.children("/proc/self/task").map(&:to_i).sort
  end
end
