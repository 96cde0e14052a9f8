# frozen_string_literal: true

require_relative "bench_process"
require "harness/timing"
require "tmpdir"

# Ctrl-C leaves nothing running, and no file.
class BenchInterruptTest < Minitest::Test
  include BenchProcess
  include Harness::Timing

  def test_interrupt_ends_the_children_too
    skip "needs /proc" unless File.directory?("/proc/self/task")

    IO.pipe do |progress, err|
      command = [RbConfig.ruby, EXECUTABLE, "bench", "fairness", "--arms", "stock", "--seconds", "30", "--cpu-threads", "1"]
      pid = Process.spawn(*command, out: File::NULL, err: err)
      err.close
      assert_match(/fairness 1/, progress.gets)
      children = await("both children") { found = children_of(pid); found if found.size == 2 }
      Process.kill(:INT, pid)
      assert_equal 130, Process.wait2(pid).last.exitstatus
      await("the children's end") { children.none? { File.exist?("/proc/#{_1}") } }
      assert_empty progress.read
    end
  end

  # Whether it comes while a process is being started, or after that.
  def test_an_interrupt_leaves_no_process
    12.times do |i|
      reader, writer = IO.pipe
      run = Harness::RubyProcess.eval(<<~RUBY, pass: { writer.fileno => writer })
        require "headway/bench"
        Process.singleton_class.prepend(Module.new { def spawn(*, **options) = super(*, **options, #{writer.fileno} => #{writer.fileno}).tap { Process.kill(:INT, $$) if #{i.even?} } })
        Thread.new { sleep #{i * 0.004}; Process.kill(:INT, $$) } if #{i.odd?}
        Headway::Bench::Child.run([#{RbConfig.ruby.dump}, "-e", "sleep"], limit_s: 30)
      RUBY
      writer.close
      assert_equal Signal.list["INT"], run.status.termsig, run.to_s
      assert reader.wait_readable(20), "the process goes on"
    ensure
      reader&.close
    end
  end

  def test_an_interrupt_leaves_no_file
    Dir.mktmpdir do |directory|
      IO.pipe do |progress, err|
        command = [RbConfig.ruby, EXECUTABLE, *%w[bench offload --arms no_hook --fibers 1 --mib 1 --rounds 10000]]
        pid = Process.spawn({ "TMPDIR" => directory }, *command, out: File::NULL, err: err)
        err.close
        assert_match(/offload 1/, progress.gets)
        await("the file that is read") { Dir.glob("headway-bench*", base: directory).any? }
        Process.kill(:INT, pid)
        assert_equal 130, Process.wait2(pid).last.exitstatus
        assert_empty Dir.glob("headway-bench*", base: directory)
      end
    end
  end

  private

  def children_of(pid) = File.read("/proc/#{pid}/task/#{pid}/children").split
end
