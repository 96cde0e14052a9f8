# frozen_string_literal: true

require "timeout"
require "zlib"
require "harness/isolated_test"
require "headway"
require "offload/operations"
require "offload/select_scheduler"

# Thousands of interruptions at random moments of work that waits, work that can be interrupted and work that cannot. Nothing may be
# lost, nobody may leave before a worker is done with his work (on 3.4 that crashes), and no worker may be left.
class OffloadStormTest < Harness::IsolatedTest
  include Operations

  class Raised < StandardError; end

  DATA = Random.new(3).bytes(60_000).freeze
  RANDOM = Random.new(Integer(ENV.fetch("HEADWAY_STORM_SEED", "5")))
  FIBERS = 2000
  THREADS = 600

  def test_fibers
    outcomes = Hash.new(0)
    with_fifo do |fifo|
      pool = Headway::OffloadPool.new(workers: 3, queue: 20, full: :wait, mode: :always)
      SelectScheduler.run(pool) do
        FIBERS.fdiv(50).ceil.times do
          fibers = Array.new(50) { Victim.new(-> { operation(pool, fifo) }, outcomes) }
          until fibers.none?(&:alive?)
            fibers.sample(random: RANDOM).attack
            kill_a_worker(pool) if RANDOM.rand(200).zero?
            sleep RANDOM.rand(0.0006)
          end
        end
      end
      close(pool)
    end
    assert_equal FIBERS, outcomes.values.sum
    assert_equal 0, outcomes[:lost], outcomes.inspect
    %i[ended raised killed].each { |kind| assert_operator outcomes[kind], :>, 10, outcomes.inspect }
  end

  def test_threads
    pool = Headway::OffloadPool.new(workers: 3, queue: 20, full: :wait, mode: :always)
    ended = Thread::Queue.new
    THREADS.fdiv(20).ceil.times do
      threads = Array.new(20) { Thread.new { ended << thread_outcome(pool) } }
      threads.each do |thread|
        sleep RANDOM.rand(0.002)
        RANDOM.rand(2).zero? ? thread.kill : thread.raise(Raised)
      rescue ThreadError
        nil
      end
      threads.each { |thread| thread.join rescue Raised } # rubocop:disable Style/RescueModifier
    end
    close(pool)
    assert_operator ended.size, :>, 10
  end

  private

  # One fiber with an operation that is interrupted once at most.
  class Victim
    def initialize(operation, outcomes)
      @outcomes = outcomes
      @fiber = Fiber.schedule { suffer(operation) }
    end

    def alive? = @fiber.alive?

    def attack
      return if @attacked || !alive?

      @attacked = RANDOM.rand(3).zero? ? :killed : :raised
      @attacked == :killed ? @fiber.kill : @fiber.raise(Raised)
    end

    private

    def suffer(operation)
      outcome = :killed
      operation.call
      outcome = :ended
    rescue Raised
      outcome = :raised
    rescue Headway::OffloadPool::DeadlineError, Headway::OffloadPool::WorkerError
      outcome = :stopped
    ensure
      outcome = :lost if @attacked && outcome != @attacked
      @outcomes[outcome] += 1
    end
  end

  def operation(pool, fifo)
    case RANDOM.rand(7)
    when 0 then pool.run(deadline: 0.001 + RANDOM.rand(0.01)) { sleep 5 }
    when 1 then pool.run { sleep RANDOM.rand(0.003) }
    when 2 then pool.run { stubborn(0.002) }
    when 3 then pool.run(deadline: 0.001) { stubborn(0.002) }
    when 6 then Zlib::Deflate.new.deflate(DATA)
    when 4 then File.stat(fifo)
    when 5 then RUBY_VERSION >= "3.4" ? open_until_stopped(fifo) : sleep(0.001)
    end
  end

  # Nobody opens the other end for a while. Who does is no part of the storm, so that no killed worker hits it.
  def open_until_stopped(fifo)
    fiber = Fiber.current
    Fiber.schedule do
      sleep 0.003
      other_end = Fiber.blocking { File.open(fifo, File::RDWR | File::NONBLOCK) }
      sleep 0.003 while fiber.alive?
      Fiber.blocking { other_end.close }
    end
    File.open(fifo).close
  end

  def thread_outcome(pool)
    Timeout.timeout(0.001 + RANDOM.rand(0.02)) { pool.call(-> { RANDOM.rand(2).zero? ? sleep(0.01) : stubborn(0.005) }) }
    :ended
  rescue Raised, Timeout::Error
    :raised
  end

  def kill_a_worker(pool)
    pool.instance_variable_get(:@threads).keys.sample(random: RANDOM)&.kill
  end

  # Afterwards nothing is left, and every job was counted once.
  def close(pool)
    assert_operator pool.stats[:workers], :<=, 3
    pool.close
    stats = pool.stats
    assert_equal [0, 0], stats.values_at(:workers, :queued)
    assert_operator stats[:ran], :>, 100
    assert_operator stats.values_at(:cancelled, :cancelled_but_ran, :withdrawn).min, :>, 0, stats.inspect
  end
end
