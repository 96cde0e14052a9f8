# frozen_string_literal: true

require "test_helper"

# Whoever starts Headway's own threads, or forks, may hold everything back meanwhile: the process still ends.
class OwnThreadTest < Minitest::Test
  PARTS = {
    "a reporter" => 'Headway::Metrics::Reporter.new(to: "nobody", every: 60) {}.start',
    "autotune" => "Headway::Autotune.start(log: ->(line) {})",
    "a server's log" => 'require "headway/integrations/log"; Headway::Integrations::Log.new(60) {}.start'
  }.freeze

  PARTS.each do |part, start|
    define_method("test_#{part}_started_under_a_mask") { assert_ends "#{start}; abort 'not there' if Thread.list.size == 1" }
  end

  PARTS.except("a server's log").each do |part, start|
    define_method("test_#{part}_in_a_child_forked_under_a_mask") do
      assert_ends(<<~RUBY, before: start)
        $child = fork { abort "not there" if Thread.list.size == 1 }
        at_exit { abort "child: \#{$?}" unless Process.wait2($child)[1].success? }
      RUBY
    end
  end

  def test_a_last_report_that_nobody_takes
    assert_ends "Headway.stop", before: 'Headway::Metrics::Reporter.new(to: "nobody", every: 60) { sleep }.start'
  end

  def test_a_wait_on_a_thread_that_a_fiber_gave_up
    assert_ends(<<~RUBY, before: 'require "headway/fiber_scheduler"')
      reader, $writer = IO.pipe
      pid = spawn("cat", in: reader) # which ends with us
      Thread.new do
        Fiber.set_scheduler(Headway::FiberScheduler.new)
        Fiber.schedule { Timeout.timeout(0.05) { Process.wait(pid, Process::WUNTRACED) } rescue $given_up = true }
      end.join
      raise "not given up" unless $given_up
    RUBY
  end

  private

  def assert_ends(code, before: nil)
    run = Harness::RubyProcess.eval(<<~RUBY, limit: 20)
      require "headway"
      require "headway/metrics"
      Headway.start
      #{before}
      Thread.handle_interrupt(Object => :never) do
        #{code}
      end
    RUBY
    assert run.success?, run
    assert_empty run.err
  end
end
