# frozen_string_literal: true

require "harness/trap_test"

# Trap: a thread that was bound to a processor to be woken there, and stays so.
class PullTest < Harness::TrapTest
  test_under Harness::Modes::FAIR, "nobody stays where it was pulled to" do |mode|
    everywhere = VMFixture.processors
    with_headway(mode) do
      beside_cpu_threads(2) do
        own = Array.new(3) { Thread.new { Array.new(100) { sleep(0.001).then { VMFixture.processors } }.uniq } }.map(&:value)
        assert_equal [[everywhere]] * 3, own, "once it runs a thread is free"
        assert_pulls(everywhere)
        Headway.stop
        assert_equal [everywhere], eventually_all(everywhere)
      end
    end
  end

  test_under Harness::Modes::FAIR, "processors that the program chose stay" do |mode|
    everywhere = VMFixture.processors
    chosen = everywhere.last(1)
    with_headway(mode) do
      beside_cpu_threads(2) do
        seen = Thread.new do
          VMFixture.processors = chosen
          Array.new(100) { sleep(0.001).then { VMFixture.processors } }.uniq
        end
        assert_equal [chosen], seen.value
        assert_equal everywhere, VMFixture.processors
      end
    end
  end

  test_under Harness::Modes::FAIR, "a forked child's threads are free" do |mode|
    everywhere = VMFixture.processors
    with_headway(mode) do
      beside_cpu_threads(2) do
        20.times do
          sleep 0.002
          assert_equal [everywhere], in_child
        end
      end
    end
  end

  test_under Harness::Modes::FAIR, "HEADWAY_PULL=0" do |mode|
    Headway.stop
    ENV["HEADWAY_PULL"] = "0"
    with_headway(mode) do
      beside_cpu_threads(2) { 50.times { sleep 0.001 } }
      assert_equal 0, Headway.stats[:process][:pulls]
    end
  ensure
    ENV.delete("HEADWAY_PULL")
  end

  private

  # The processors of a forked child and of a thread that it starts.
  def in_child
    reader, writer = IO.pipe
    pid = fork do
      writer.write(Marshal.dump([VMFixture.processors, Thread.new { VMFixture.processors }.value].uniq))
      exit!(0)
    end
    writer.close
    Marshal.load(reader.read).tap { Process.wait(pid) }
  end

  def assert_pulls(everywhere)
    pulls = Headway.stats[:process][:pulls]
    everywhere.size > 1 && RUBY_PLATFORM.include?("linux") ? assert_operator(pulls, :>, 0) : assert_equal(0, pulls)
  end

  # Who was parked when Headway stopped gives back what it had as soon as it runs.
  def eventually_all(everywhere)
    2_000.times do
      tasks = Dir.glob("/proc/self/task/*").map { |path| File.basename(path).to_i }
      seen = [0, *tasks].map { |task| VMFixture.processors_of(task) }.uniq
      return seen if seen == [everywhere]

      sleep 0.005
    end
    flunk "somebody is still bound"
  end
end
