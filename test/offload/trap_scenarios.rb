# frozen_string_literal: true

require "socket"
require "tmpdir"
require "zlib"
require "offload/naive_pools"
require "offload/operations"
require "offload/select_scheduler"

# The traps of blocking_operation_wait on Ruby 3.4, each as something that goes well with a sound pool and wrong with a naive one: see
# the comments for how. A scenario gets a class of pools and raises when something went wrong; a naive pool may also crash or hang.
class TrapScenarios
  include Operations

  NAIVE = Hash.new(NaivePool).merge(results_are_there: ImpatientPool, nothing_is_dropped: DroppingPool,
                                   nobody_leaves_while_it_runs: UnwindingPool).freeze
  DATA = Random.new(1).bytes(2 << 20).freeze # a quarter of a second or less of deflate

  def self.names = public_instance_methods(false).sort

  def initialize(pool_class)
    @pool_class = pool_class
  end

  # 1. The hook's own result is ignored; what counts is what the work left in the waiting frame.
  def results_are_there
    with_pool do |pool|
      scheduled(pool) do
        20.times { expect(File.size?(__FILE__) == File.read(__FILE__).bytesize, "size") }
        expect(Zlib.inflate(Zlib.deflate(DATA)) == DATA, "deflate")
        expect(Dir.children(__dir__).include?(File.basename(__FILE__)), "children")
        begin
          File.stat("/nonexistent")
          raise "no error"
        rescue Errno::ENOENT
          nil
        end
      end
    end
  end

  # 2. On a blocking fiber nobody goes on meanwhile: the work belongs where it is.
  def a_blocking_fiber_runs_it_itself
    with_pool do |pool|
      scheduled(pool) do
        here = Thread.current
        there = nil
        Fiber.blocking { pool.call(-> { there = Thread.current }) }
        expect(here == there, "ran on #{there}")
      end
    end
  end

  # 3. A hook that returns without having called the work leaves the caller with whatever was in its frame.
  def nothing_is_dropped
    Dir.mktmpdir do |folder|
      with_pool(workers: 1, queue: 1) do |pool|
        scheduled(pool) do
          fibers = Array.new(8) { |i| Fiber.schedule { Dir.mkdir("#{folder}/#{i}"); expect(Dir.exist?("#{folder}/#{i}"), "no folder #{i}") } }
          wait_for(fibers)
        end
      end
      expect(Dir.children(folder).size == 8, "folders: #{Dir.children(folder)}")
    end
  end

  # 4. Work that is called where it was asked for asks again, without end.
  def inline_is_no_recursion
    with_pool(workers: 1, queue: 1) do |pool|
      scheduled(pool) do
        fibers = Array.new(8) { Fiber.schedule { expect(Zlib.inflate(Zlib.deflate(DATA[0, 50_000])) == DATA[0, 50_000], "deflate") } }
        wait_for(fibers)
      end
    end
  end

  # 5. Work that is called when its frame is gone crashes: what was given up in the queue must not run.
  def what_was_given_up_never_runs
    with_pool(workers: 1) do |pool|
      scheduled(pool) do |scheduler|
        busy = Fiber.schedule { Zlib::Deflate.new.deflate(DATA) }
        fibers = Array.new(50) { Fiber.schedule { deep(20) { Zlib.deflate(DATA[0, 100_000]) } rescue IOError } }
        fibers.each { |fiber| fiber.raise(IOError, "given up") }
        fibers = nil
        GC.start
        scheduler.kernel_sleep(0.2)
        wait_for([busy])
      end
    end
  end

  # 6. So does leaving the frame while a worker is in it.
  def nobody_leaves_while_it_runs
    with_pool do |pool|
      scheduled(pool) do |scheduler|
        20.times do
          deflate = Zlib::Deflate.new
          raised = nil
          fiber = Fiber.schedule do
            deep(20) { deflate.deflate(DATA[0, 300_000]) }
          rescue IOError => error
            raised = error
          end
          scheduler.kernel_sleep(0.003)
          fiber.raise(IOError, "out") if fiber.alive?
          deep(20) { "overwrite the stack" }
          wait_for([fiber])
          expect(raised.nil? || raised.message == "out", "raised #{raised.inspect}")
        end
      end
    end
  end

  # 7. A killed worker leaves no result, and nobody to say so.
  def a_killed_worker_is_an_error
    with_fifo do |fifo|
      before = Thread.list
      with_pool(workers: 1) do |pool|
        outcome = nil
        scheduled(pool) do |scheduler|
          fiber = Fiber.schedule { outcome = (File.open(fifo) rescue $!) }
          while fiber.alive? # again, if it was not yet the one that opens the file
            scheduler.kernel_sleep(0.05)
            (Thread.list - before).select { |thread| thread.status == "sleep" }.each(&:kill)
          end
          expect(outcome.is_a?(StandardError), "outcome #{outcome.inspect}")
          expect(File.stat(__FILE__).file?, "no worker after it")
        end
      end
    end
  end

  # 8. IO.copy_stream comes back to the scheduler from wherever it runs.
  def copy_stream_waits
    with_pool do |pool|
      scheduled(pool) do |scheduler|
        reader, writer = IO.pipe
        target, far = UNIXSocket.pair
        # It asks the scheduler only while that runs a fiber: there is one when what was written has been copied.
        feeder = Fiber.schedule { 3.times { scheduler.kernel_sleep(0.01); writer.write("x" * 1000); spin(0.03) }; writer.close }
        expect(IO.copy_stream(reader, target) == 3000, "copied another number of bytes")
        wait_for([feeder])
        expect(far.read_nonblock(5000) == "x" * 3000, "copied something else")
        [reader, target, far].each(&:close)
      end
    end
  end

  # 9. A worker is no place to ask for a worker.
  def a_worker_runs_nested_work_itself
    with_pool(workers: 1) do |pool|
      result = scheduled(pool) do
        value = scheduler = nil
        pool.call(-> { scheduler = Fiber.scheduler })
        expect(scheduler.nil?, "a worker has a scheduler")
        pool.call(-> { pool.call(-> { value = 42 }) })
        value
      end
      expect(result == 42, "got #{result}")
    end
  end

  # 10. Cancelling interrupts the worker: that operation, if it can be, and no later one.
  def cancelling_hits_that_operation_only
    with_fifo do |fifo|
      with_pool(workers: 1) do |pool|
        scheduled(pool) do |scheduler|
          10.times do
            outcome = nil
            fiber = Fiber.schedule { outcome = (File.open(fifo) rescue $!) }
            scheduler.kernel_sleep(0.01)
            fiber.raise(IOError, "enough")
            wait_for([fiber])
            expect(outcome.is_a?(IOError) && outcome.message == "enough", "outcome #{outcome.inspect}")
            10.times { expect(File.stat(__FILE__).file?, "stat") }
          end
        end
      end
    end
  end

  private

  def expect(condition, message)
    condition or raise message
  end

  def with_pool(**options)
    options[:mode] = :always unless @pool_class <= NaivePool
    pool = @pool_class.new(**options)
    yield pool
  ensure
    pool&.close
  end

  def scheduled(pool, &block) = SelectScheduler.run(pool, &block)

  def wait_for(fibers)
    sleep 0.002 while fibers.any?(&:alive?)
  end

  def spin(seconds)
    stop = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
    Thread.pass while Process.clock_gettime(Process::CLOCK_MONOTONIC) < stop
  end

  # With some frames below, so that a frame that is left is soon overwritten.
  def deep(depth, &block) = depth.zero? ? yield : deep(depth - 1, &block)
end
