# frozen_string_literal: true

require "fiber_scheduler/scheduled"
require "zlib"

# Operations that Ruby hands over, and the pools that run them.
class FiberSchedulerOffloadTest < Minitest::Test
  include Scheduled

  BYTES = Random.new(1).bytes(2_000_000)
  HANDED_OVER = RUBY_VERSION >= "3.4" # before that Ruby knows no such hook

  class Inline
    attr_reader :calls

    def initialize = @calls = 0

    def call(work)
      @calls += 1
      Fiber.blocking { work.call }
    end
  end

  def test_results_are_right_with_and_without_a_pool
    expected = Zlib.deflate(BYTES)
    [true, nil, Inline.new].each do |pool|
      assert_equal expected, scheduled(pool: pool) { Zlib.deflate(BYTES) }
      assert_equal File.stat(__FILE__).size, scheduled(pool: pool) { File.stat(__FILE__).size }
      assert_raises(Errno::ENOENT) { scheduled(pool: pool) { File.stat("/no/such/file") } }
    end
  end

  def test_any_pool_that_can_be_called_is_called
    pool = Inline.new
    scheduled(pool: pool) { Zlib.deflate(BYTES) }
    assert_equal HANDED_OVER, pool.calls.positive?
  end

  # The queue is for those that wait for a worker. All of these come before the first worker that was woken has begun.
  def test_idle_workers_take_jobs_beside_the_queue
    pool = Headway::OffloadPool.new(workers: 4, queue: 1, full: :raise)
    2.times do # the second time the workers are there
      outcomes = []
      looping(pool:) do
        gate = Thread::Queue.new
        5.times { Fiber.schedule { outcomes << pool.run { gate.pop } } }
        sleep 0.001 until gate.num_waiting == 4
        Fiber.schedule { outcomes << assert_raises(Headway::OffloadPool::FullError) { pool.run { nil } }.class }
        5.times { gate << :done }
      end
      assert_equal [Headway::OffloadPool::FullError] + [:done] * 5, outcomes
    end
  ensure
    pool&.close
  end

  # The worker comes for the first one, begins with the newest, and then is at the first one for long. Nobody waits any more.
  def test_who_goes_ahead_leaves_its_place_in_the_queue
    pool = Headway::OffloadPool.new(workers: 1, queue: 2, full: :raise)
    values = []
    looping(pool:) do
      gate = Thread::Queue.new
      loop do
        2.times { |number| Fiber.schedule { pool.run { gate.pop if number == 0 } } }
        sleep 0.001 until gate.num_waiting == 1
        break if pool.stats[:queued] == 0 # the worker was not so quick as to know of one only

        gate << true
        sleep 0.001 until gate.num_waiting == 0 && pool.stats[:queued] == 0 # it may be long in waking, and stand at the gate till then
      end
      2.times { |number| Fiber.schedule { values << pool.run { number } } }
      assert_equal 2, pool.stats[:queued]
      gate << true
    end
    assert_equal [0, 1], values.sort
  ensure
    pool&.close
  end

  def test_what_is_no_pool_is_refused
    error = assert_raises(ArgumentError) { Headway::FiberScheduler.new(pool: 3) }
    assert_equal "pool is 3: give true, nil, or one that can be called", error.message
  end

  def test_its_own_pool_is_closed_with_it_and_a_given_one_isnt
    own = given = nil
    looping { |scheduler| own = scheduler.worker_pool }
    looping(pool: given = Headway::OffloadPool.new) { Fiber.schedule { Zlib.deflate(BYTES) } }
    assert_equal [true, false], [own.closed?, given.closed?]
    given.close
  end

  def test_the_loop_ticks_while_fibers_compress
    ticks = 0
    left = 3
    looping do
      Fiber.schedule { (sleep 0.001) && ticks += 1 until left.zero? }
      3.times { Fiber.schedule { sleep(0) && Zlib.deflate(BYTES) && left -= 1 } }
    end
    assert_operator ticks, :>, 10 if HANDED_OVER
    assert_equal 0, left
  end

  # The VM has forgotten the descriptor by then: nobody else would ever close it, and who reads the pipe would wait for its end for good.
  # Of two fibers one stands in the queue, and one finds no place in it.
  def test_what_closes_a_descriptor_is_never_given_up
    { inline: 1, wait: 2, raise: 1 }.to_a.product([false, true]) do |(full, struck), by_ruby|
      pool = Headway::OffloadPool.new(workers: 1, queue: 1, full: full, mode: :always)
      gate = Thread::Queue.new
      seen = []
      ends = nil
      looping(pool: by_ruby ? pool.method(:call) : pool) do
        Fiber.schedule { pool.run { gate.pop } }
        sleep 0.001 until gate.num_waiting == 1
        pipes = Array.new(2) { IO.pipe }
        closing = pipes.map { |_, writer| Fiber.schedule { writer.close rescue seen << $!.message } } # rubocop:disable Style/RescueModifier
        closing.each { |fiber| fiber.raise(IOError, "given up") if fiber.alive? }
        ends = pipes.map { |reader, _| reader.read_nonblock(1, exception: false) }
        gate << true
      end
      assert_equal [nil, nil], ends, [full, by_ruby]
      assert_equal ["given up"] * (HANDED_OVER ? struck : 0), seen, [full, by_ruby]
      pool.close
    end
  end

  # It is over, as nothing interrupts it, when what was raised goes on.
  def test_what_closes_a_descriptor_is_waited_for
    pool = Headway::OffloadPool.new(workers: 1, mode: :always)
    closed = nil
    looping(pool: pool) do
      reader, writer = IO.pipe
      closing = Fiber.schedule do
        writer.close
      ensure
        closed = reader.read_nonblock(1, exception: false).nil?
      end
      closing.kill
    end
    assert closed
  ensure
    pool.close
  end

  # Of several fibers in the pool, some are called off while they wait for a worker or run on one.
  def test_a_timeout_strikes_an_operation_under_way
    outcomes = Hash.new(0)
    looping do
      30.times do |number|
        Fiber.schedule do
          Timeout.timeout(0.001 * number) { Zlib.deflate(BYTES) }
          outcomes[:done] += 1
        rescue Timeout::Error
          outcomes[:late] += 1
        rescue Zlib::DataError => error # zlib's own way of saying that it was left early; the reason is its cause
          assert_match(/execution expired/, error.cause.message)
          outcomes[:late] += 1
        end
      end
    end
    assert_equal 30, outcomes.values.sum
    assert_operator outcomes[:late], :>, 0 if HANDED_OVER # else none of them waits
  end

  def test_ten_thousand_fibers_of_mixed_work
    ended = 0
    looping(stall_ms: nil) do
      Array.new(10) { IO.pipe }.each do |reader, writer|
        Fiber.schedule { reader.read }
        Fiber.schedule { 100.times { writer.write("x") && sleep(0) } && writer.close }
      end
      10_000.times do |number|
        Fiber.schedule do
          sleep(number % 10 / 1000.0)
          number % 100 == 0 ? Zlib.deflate(BYTES[0, 100_000]) : File.stat(__FILE__)
          ended += 1
        end
      end
    end
    assert_equal 10_000, ended
  end

  # At once: none ends before all have begun. Peak memory of a process that does nothing else.
  def test_ten_thousand_fibers_at_once_have_bounded_memory
    result = Harness::RubyProcess.eval(<<~RUBY, limit: 60)
      require "headway"
      require "zlib"
      peak_mib = -> { File.read("/proc/self/status")[/VmHWM:\\s+(\\d+)/, 1].to_i / 1024 }
      before = peak_mib.call
      bytes = Random.new(1).bytes(20_000)
      gate, opener = IO.pipe
      start = Thread::Queue.new
      ended = 0
      Fiber.set_scheduler(Headway::FiberScheduler.new(stall_ms: nil))
      10_000.times do |number|
        Fiber.schedule do
          number.odd? ? gate.wait_readable : start.pop
          case number % 4
          when 0 then Zlib.deflate(bytes)
          when 1 then File.stat("/")
          when 2 then number % 40 == 2 ? Headway.offload { sleep 0.001 } : sleep(0.01)
          when 3 then IO.select([gate])
          end
          ended += 1
        end
      end
      abort "begun early" unless ended.zero? && Fiber.scheduler.stats[:waiting] == 10_000
      start.close
      opener.write(".")
      Fiber.scheduler.run
      puts [ended, peak_mib.call - before].join(" ")
    RUBY
    ended, mib = result.out.split.map(&:to_i)
    assert_equal 10_000, ended, result.to_s
    assert_operator mib, :<, 500, "MiB"
  end
end
