# frozen_string_literal: true

require "harness/trap_test"

# Trap: a filter that kills the process for a system call that elsewhere is only refused.
class ForbiddenCallTest < Harness::TrapTest
  test_under Harness::Modes::ALL.keys, "nobody is killed where setting priorities and processors is forbidden" do |mode|
    Headway.stop
    VMFixture.filter_calls(true)
    with_headway(mode) do
      beside_cpu_threads(2) { (mode == :observe ? 5 : 50).times { sleep 0.001 } } # there each takes 0.2 s
      assert_operator Headway.stats[:process][:running], :>, 0
      assert_equal 0, Headway.stats[:process][:pulls]
    end
  end

  test_under Harness::Modes::FAIR, "a forked child that comes under a filter isn't killed either" do |mode|
    with_headway(mode) do
      beside_cpu_threads(1) { 20.times { sleep 0.001 } }
      pid = fork do
        VMFixture.filter_calls(true)
        beside_cpu_threads(2) { 50.times { sleep 0.001 } }
        exit!(0)
      end
      assert_predicate Process.wait2(pid).last, :success?
    end
  end

  # As in most containers: there is a filter, and it lets us.
  test_under Harness::Modes::FAIR, "a filter that forbids neither changes nothing" do |mode|
    Headway.stop
    VMFixture.filter_calls(false)
    reader, writer = IO.pipe
    own = fork { writer.close; reader.read; exit!(0) }
    waited = Thread.new { Process.wait } # for any child
    with_headway(mode) do
      beside_cpu_threads(2) { 50.times { sleep 0.001 } }
      pulls = Headway.stats[:process][:pulls]
      assert_operator pulls, :>, 0 if VMFixture.processors.size > 1
    end
    writer.close
    assert_equal own, waited.value, "whom we ask is nobody's child to wait for"
  end
end
