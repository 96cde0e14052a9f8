# frozen_string_literal: true

require "fiber_scheduler/scheduled"
require "harness/ruby_process"

# A program that has no more descriptors waits as ever, for what needs none on stock Ruby.
class FiberSchedulerDescriptorsTest < Minitest::Test
  def test_none_is_left
    result = Harness::RubyProcess.eval(<<~RUBY, limit: 20)
      require "headway"
      Fiber.set_scheduler(Headway::FiberScheduler.new)
      Fiber.schedule { sleep 0.001 }
      reader, writer = IO.pipe
      pid = fork { sleep 0.05; exit!(3) }
      Process.setrlimit(:NOFILE, 64)
      taken = []
      begin
        loop { taken << IO.for_fd(IO.sysopen(File::NULL)) }
      rescue Errno::EMFILE
        Fiber.schedule { puts "exited with \#{Process.wait2(pid)[1].exitstatus}"; writer << "x" }
        Fiber.schedule { puts "selected \#{IO.select([reader], nil, nil, 10).flatten == [reader]}" }
        Fiber.schedule { puts "no such process" if (Process.wait(2_000_000_000) rescue $!).is_a?(Errno::ECHILD) }
      end
      Fiber.scheduler.run
    RUBY
    assert_equal ["exited with 3", "no such process", "selected true"], result.out.lines(chomp: true).sort, result.to_s
  end
end
