# frozen_string_literal: true

require "harness/trap_test"

# Trap: a hook that allocates can start a garbage collection, and hang in it.
class AllocationTest < Harness::TrapTest
  test_under Harness::Modes::ALL.keys, "threads come and go under GC stress" do
    GC.stress = true
    scale(1).times do # under stress every allocation collects: one round tries all that there is
      Array.new(8) { |index| Thread.new { index.zero? ? sleep(0.0005) : Array.new(5) { Object.new }.size } }.each(&:join)
    end
  ensure
    GC.stress = false
  end

  test_under Harness::Modes::ALL.keys, "threads come and go while the heap is compacted" do
    skip "no compaction here" unless GC.respond_to?(:compact)

    compacting = true
    compactor = Thread.new { GC.compact while compacting }
    beside_io_threads(4, pause: 0.001) do
      scale(8).times { Array.new(8) { Thread.new { compute(0.001) } }.each(&:join) }
    end
    Headway.stats
  ensure
    compacting = false
    compactor&.join
  end

  # ruby-prof, which counts what is allocated by file and line, crashes where there is none. The VM's own: each thread's arguments.
  test_under Harness::Modes::ALL.keys, "what is allocated where a thread ends has a place" do
    assert_equal 10, VMFixture.objects_made_nowhere { 10.times { Thread.new { sleep 0.001 }.join } }
  end

  test_under Harness::Modes::PREEMPTING, "finalizers and collections run beside preemption" do
    finalized = 0
    beside_cpu_threads(2) do
      beside_io_threads(4, pause: 0.0005) do
        200.times do
          ObjectSpace.define_finalizer(Object.new, proc { finalized += 1 })
          GC.start(full_mark: false) if rand(10).zero?
        end
        GC.start
        await("finalizers", limit: 20) { GC.start; finalized > 100 }
      end
    end
  end
end
