# frozen_string_literal: true

require "fiber_scheduler/scheduled"
require "harness/ruby_process"

# Descriptors that run out, and that are closed by others.
class FiberSchedulerDescriptorsTest < Minitest::Test
  # A program that has no more waits as ever, for what needs none on stock Ruby.
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

  # The selector that asks IO.select: it takes IOs alone, each for what it is open for, and closes some of its own in a forked child.
  def test_where_there_is_neither_epoll_nor_another
    result = Harness::RubyProcess.eval(<<~'RUBY', limit: 20, env: { "IO_EVENT_SELECTOR" => "Select" })
      require "headway"
      Fiber.set_scheduler(Headway::FiberScheduler.new)
      Fiber.schedule do
        reader, writer = IO.pipe
        puts "nothing: #{reader.wait_readable(0.001).inspect}"
        Fiber.schedule { sleep(0.01) && puts("read #{reader.read.size}") }
        puts "written #{writer.write("x" * 1_000_000)}"
        writer.close
      end
      Fiber.schedule { puts "exited with #{Process.wait2(fork { exit!(3) })[1].exitstatus}" }
    RUBY
    assert_equal ["nothing: nil", "written 1000000", "read 1000000", "exited with 3"].sort, result.out.lines(chomp: true).sort, result.to_s
  end

  # Reads that block the thread, loop and all, end as without a scheduler, once; and the other fibers go on. From Ruby 4.0 on the VM asks
  # the scheduler to interrupt them.
  def test_one_that_is_closed_while_it_blocks_the_thread
    result = Harness::RubyProcess.eval(<<~RUBY, limit: 20)
      require "headway"
      READ = lambda do |reader|
        reader.read(1)
      rescue IOError
        (sleep(0.01) && "once") rescue "twice"
      end
      made = Headway::FiberScheduler.new
      beside = -> { Fiber.schedule { sleep(0.05) && puts("beside") } }
      in_enumerator = ->(reader) { Enumerator.new { |found| found << READ.(reader) }.next }
      {
        "first fiber" => READ,
        "scheduler of another thread" => ->(reader) { Fiber.set_scheduler(made) && READ.(reader) },
        "first fiber, with a loop" => ->(reader) { beside.() && READ.(reader) },
        "Fiber.blocking" => ->(reader) { beside.() && (Fiber.schedule { puts(Fiber.blocking { READ.(reader) }) }) && :begun },
        "Enumerator" => in_enumerator,
        "Enumerator, with a loop" => ->(reader) { beside.() && in_enumerator.(reader) }
      }.each do |name, read|
        reader, _writer = IO.pipe
        thread = Thread.new do
          Fiber.set_scheduler(Headway::FiberScheduler.new) unless name["another"]
          puts "\#{name}: \#{read.(reader)}"
        end
        Thread.pass until thread.stop?
        sleep 0.01
        reader.close
        thread.join
      end
    RUBY
    said = ["Enumerator, with a loop: once", "Enumerator: once", "Fiber.blocking: begun", "beside", "beside", "beside",
            "first fiber, with a loop: once", "first fiber: once", "once", "scheduler of another thread: once"]
    assert_equal said, result.out.lines(chomp: true).sort, result.to_s
  end
end
