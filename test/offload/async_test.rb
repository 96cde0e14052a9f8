# frozen_string_literal: true

require "socket"
require "tmpdir"
require "zlib"
require "harness/held_loop"
require "harness/isolated_test"
require "headway"
require "offload/operations"

# Async with our pool in place of its own, given by hand and by the one-liner; and Falcon, which lets Async build its scheduler.
class OffloadAsyncTest < Harness::IsolatedTest
  include Harness::HeldLoop
  include Operations

  # An application's.
  OwnPool = Struct.new(:calls) do
    def call(work) = (self.calls += 1) && Fiber.blocking { work.call }
    def close = nil
  end

  if RUBY_VERSION >= "3.4"
    def test_given_by_hand
      require "async"
      pool = Headway::OffloadPool.new
      scheduler = Async::Scheduler.new(worker_pool: pool)
      work(pool, scheduler) { |block| Fiber.set_scheduler(scheduler) && scheduler.run(&block) && Fiber.set_scheduler(nil) }
    end

    def test_the_one_liner
      require "headway/async"
      Sync do
        pool = Fiber.scheduler.instance_variable_get(:@worker_pool)
        assert_instance_of Headway::OffloadPool, pool
        assert_includes Fiber.scheduler.singleton_class.ancestors.first(1), Headway::OffloadPool::Hook
        exercise(pool)
      end
    end

    # With the one-liner and without.
    def test_a_loop_that_stands_still_is_in_the_trace
      require "async"
      Dir.mktmpdir do |directory|
        Headway.start
        assert Headway::Recorder.start(file: file = File.join(directory, "async.headway"))
        Async { |task| task.async { sleep(0.001) && hold_the_loop } }
        require "headway/async"
        Async { |task| task.async { sleep(0.001) && hold_the_loop } }
        Headway::Recorder.stop
        stalls = Headway::Trace.open(file).to_h[:marks].map { |mark| mark[:name] }
        assert_equal 2, stalls.grep(/\Aloop stall of \d+ ms: .*hold_the_loop'\z/).size, stalls.inspect
      end
    end

    # As in Falcon's config.ru; and, where it runs several threads, the loops of the others.
    def test_the_one_liner_in_a_loop_that_turns
      require "async"
      there = Queue.new
      required = Queue.new
      thread = Thread.new do
        Sync do
          there << true
          required.pop
          Fiber.scheduler.instance_variable_get(:@worker_pool)
        end
      end
      there.pop
      pool = Sync do
        require "headway/async"
        required << true
        Fiber.scheduler.instance_variable_get(:@worker_pool).tap { |pool| exercise(pool) }
      end
      [pool, thread.value].each { |one| assert one.closed?, "it ends with its loop" }
    end

    def test_the_one_liner_in_a_loop_leaves_its_pool_alone
      require "async"
      assert_equal(1, calls_of_own_pool { |own| require("headway/async") && own.calls = 0 and File.stat(__FILE__) })
    end

    def test_an_async_without_pools_is_left_as_it_is
      Dir.mktmpdir do |directory|
        File.write(File.join(directory, "async.rb"), <<~RUBY)
          module Async
            VERSION = "2.20.0"
            class Scheduler
              def initialize(parent = nil, selector: nil) = @parent = parent
            end
          end
        RUBY
        $LOAD_PATH.unshift(directory)
        _, err = capture_io { require "headway/async" }
        assert_match(%r{\Aheadway: headway/async does nothing: Async 2\.20\.0 takes no worker_pool; }, err)
        assert Async::Scheduler.new
      end
    end

    def test_the_loop_is_an_interactive_thread
      require "headway/async"
      Headway.start
      assert_equal(false, Sync { batch_when_computing? })
    end

    def test_a_loop_that_turns_already_becomes_an_interactive_thread
      require "async"
      Headway.start
      in_loop = Sync do
        require "headway/async"
        sleep 0.001
        batch_when_computing?
      end
      assert_equal [false, true], [in_loop, batch_when_computing?]
    end

    def test_the_one_liner_leaves_other_pools_alone
      require "headway/async"
      assert_equal(1, calls_of_own_pool { File.stat(__FILE__) })
    end

    # Its operation is done, and its time over, in one turn of the loop, in which another fiber keeps that.
    def test_who_is_woken_and_interrupted_at_once_is_not_woken_out_of_the_next_wait
      require "headway/async"
      took = nil
      Sync do |parent|
        late = parent.async do
          assert_raises(Async::TimeoutError) { Async::Task.current.with_timeout(0.05) { Headway.offload { sleep 0.03 } } }
          from = Process.clock_gettime(Process::CLOCK_MONOTONIC)
          sleep 0.05
          took = Process.clock_gettime(Process::CLOCK_MONOTONIC) - from
        end
        parent.async { Fiber.scheduler.yield.then { Fiber.blocking { sleep 0.3 } } }
        late.wait
      end
      assert_operator took, :>=, 0.05
      Headway::OffloadPool.default.close
    end

    def test_a_task_that_is_stopped_and_one_that_times_out
      require "headway/async"
      ENV["HEADWAY_OFFLOAD"] = "always"
      with_fifo do |fifo|
        Sync do |parent|
          task = parent.async { File.open(fifo) }
          sleep 0.02
          task.stop
          task.wait
          assert task.stopped?
          assert_raises(Async::TimeoutError) { parent.with_timeout(0.02) { File.open(fifo) } }
          work = Stubborn.new
          task = parent.async { Headway.offload { work.call } }
          work.begun.pop
          task.stop
          work.told.pop
          assert task.alive?
          work.release
          task.wait
          assert work.ended?
        end
      end
    ensure
      Headway::OffloadPool.default.close
    end

    def test_a_scheduler_that_closes_with_work_under_way
      require "headway/async"
      work = Stubborn.new
      thread = Thread.new do
        Thread.current.report_on_exception = false
        Sync do |parent|
          parent.async { Headway.offload { work.call } }
          work.begun.pop
          raise IOError, "out"
        end
      end
      assert_nil thread.join(0.1)
      work.release
      assert_raises(IOError) { thread.join }
      assert work.ended?
    ensure
      Headway::OffloadPool.default.close
    end

    def test_copy_stream_waits_for_what_comes_later
      require "headway/async"
      ENV["HEADWAY_OFFLOAD"] = "always"
      Sync do |parent|
        reader, writer = IO.pipe
        target, far = UNIXSocket.pair
        parent.async { 3.times { sleep(0.01) and writer.write("x" * 1000) } and writer.close }
        assert_equal 3000, IO.copy_stream(reader, target)
        assert_equal 3000, far.readpartial(4000).bytesize
        [reader, target, far].each(&:close)
      end
    end

    def test_falcon_serves_requests_with_it
      require "headway/async"
      require "falcon/server"
      require "async/http/client"
      require "async/http/endpoint"
      bound = IO::Endpoint.tcp("127.0.0.1", 0).bound
      url = "http://127.0.0.1:#{bound.sockets.first.local_address.ip_port}"
      data = Random.new(4).bytes(1 << 19).unpack1("H*")
      app = Protocol::HTTP::Middleware.for do |request|
        body = request.path == "/deflate" ? Zlib.deflate(data, 9).bytesize.to_s : File.size(__FILE__).to_s
        Protocol::HTTP::Response[200, {}, [body]]
      end
      Sync do |parent|
        server = parent.async { Falcon::Server.new(app, Async::HTTP::Endpoint.parse(url, bound)).run }
        pool = Fiber.scheduler.instance_variable_get(:@worker_pool)
        client = Async::HTTP::Client.new(Async::HTTP::Endpoint.parse(url))
        sizes = Array.new(20) { |i| parent.async { client.get(i.even? ? "/deflate" : "/size").read } }.map(&:wait)
        assert_equal [Zlib.deflate(data, 9).bytesize.to_s, File.size(__FILE__).to_s], sizes.uniq
        assert_operator pool.stats[:ran], :>, 100
      ensure
        client&.close
        server&.stop
        bound.close
      end
    end
  end

  def test_without_the_gem_it_says_so
    run = Harness::RubyProcess.eval(<<~RUBY, env: { "RUBYOPT" => "--disable=gems", "RUBYLIB" => nil, "BUNDLE_GEMFILE" => nil })
      begin
        require "headway/async"
      rescue LoadError => error
        puts error.message
      end
    RUBY
    assert_equal "headway/async needs the gem async: add it to the Gemfile\n", run.out, run.to_s
  end

  private

  # Beside nobody a burst isn't looked at.
  def batch_when_computing?
    other = Thread.new { sleep 0.001 while true }
    stop = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 0.05
    nil while Process.clock_gettime(Process::CLOCK_MONOTONIC) < stop
    Headway.thread.batch?
  ensure
    other.kill.join
  end

  def work(pool, scheduler)
    done = false
    yield ->(_task) { exercise(pool) and done = true }
    assert done, "the block did not run to its end"
    assert_includes scheduler.singleton_class.ancestors, Headway::OffloadPool::Hook
    assert pool.closed?, "Async closes the pool it was given"
  end

  # How often a pool that the application gave its loop was asked while the block ran there.
  def calls_of_own_pool
    own = OwnPool.new(0)
    scheduler = Async::Scheduler.new(worker_pool: own)
    Fiber.set_scheduler(scheduler)
    scheduler.run { yield own }
    Fiber.set_scheduler(nil)
    own.calls
  end

  # Operations that are long on any machine (each of deflate's fills 16 KiB) while a fiber ticks, and a stream of short ones.
  def exercise(pool)
    require "zlib"
    data = Random.new(5).bytes(1 << 20).unpack1("H*")
    ticks = 0
    ticker = Async { loop { sleep(0.001) and ticks += 1 } }
    tasks = Array.new(4) { Async { Zlib.inflate(Zlib.deflate(data, 9)) } }
    assert_equal [data], tasks.map(&:wait).uniq
    Array.new(300) { File.stat(__FILE__) }
    ticker.stop
    assert_operator ticks, :>, 20
    assert_operator pool.stats[:ran], :>, 100
    assert_operator pool.stats[:inline], :>, 100
  end
end
