# frozen_string_literal: true

require "timeout"
require "zlib"
require "headway"
require "offload/operations"
require "offload/select_scheduler"

# Thousands of raises, kills and timeouts at random moments of work that waits for a worker, work that can be interrupted and work that
# cannot, while workers are killed too. What was attacked must end by what attacked it, nobody may leave before no worker has his work
# any more (on 3.4 that crashes), nothing may run twice, and no worker may be left.
class OffloadStorm
  include Operations

  class Raised < StandardError; end
  class Failed < StandardError; end

  WORKERS = 3
  AT_ONCE = 50
  DATA = Random.new(3).bytes(60_000).freeze
  KINDS = %i[select headway threads].freeze

  # What becomes of work, in the pool's stats.
  FATES = %i[ran cancelled cancelled_but_ran withdrawn].freeze

  # @param count [Integer] attacks at least
  # @param outcomes [Array<Symbol>] it goes on until there were some of each of these, and each of FATES
  # @return [Hash] attacks, outcomes by their kind, the pool's stats
  # @raise [Failed]
  def self.run(kind, count:, seed:, outcomes: [], &progress)
    new(count, seed, outcomes, progress).public_send(kind)
  end

  def initialize(count, seed, wanted, progress)
    @count = count
    @wanted = wanted
    @random = Random.new(seed)
    @progress = progress
    @outcomes = Hash.new(0)
    @failures = []
    @attacks = 0
    @pool = Headway::OffloadPool.new(workers: WORKERS, queue: 20, full: :wait, mode: :always)
  end

  # Fibers under the smallest scheduler there is, which knows no timeouts.
  def select
    with_fifo do |fifo|
      @fifo = fifo
      SelectScheduler.run(@pool) { storm }
    end
    judge
  end

  # Fibers under Headway's.
  def headway
    with_fifo do |fifo|
      @fifo = fifo
      Thread.new do
        Thread.current.report_on_exception = false
        Fiber.set_scheduler(scheduler = Headway::FiberScheduler.new(pool: @pool, stall_ms: nil))
        @timeouts = true
        Fiber.schedule { storm }
        scheduler.run
      end.join
    end
    judge
  end

  # Threads without a scheduler.
  def threads
    @timeouts = true
    rounds do
      victims = Array.new(AT_ONCE) { victim(true) }
      threads = victims.map { |victim| Thread.new { victim.suffer } }
      threads.each { |thread| thread.report_on_exception = false }
      attack(victims, threads)
      threads.each { |thread| thread.join rescue Raised } # rubocop:disable Style/RescueModifier
    end
    judge
  end

  private

  def storm
    rounds do
      victims = Array.new(AT_ONCE) { victim(false) }
      attack(victims, victims.map { |victim| Fiber.schedule { victim.suffer } })
    end
  end

  def rounds
    until @attacks >= @count && complete?
      yield
      @progress&.call(@attacks)
    end
  end

  # Which outcomes come how often is up to how busy the machine is.
  def complete?
    @wanted.all? { |outcome| @outcomes[outcome] > 10 } && (@wanted.empty? || @pool.stats.values_at(*FATES).all?(&:positive?))
  end

  def victim(thread)
    limit = @random.rand(0.02) if @timeouts && @random.rand(3).zero?
    Victim.new(thread ? plain_operation : operation, limit, ->(outcome) { @outcomes[outcome] += 1 }, @failures)
  end

  # Every victim that has no time limit is attacked once, if it is still there then.
  def attack(victims, lives)
    left = victims.zip(lives).shuffle(random: @random)
    until left.none? { |_, life| life.alive? }
      victim, life = left.sample(random: @random)
      victim.attack(life, @random.rand(3).zero? ? :kill : :raise) if life.alive?
      kill_a_worker if @random.rand(300).zero?
      sleep @random.rand(0.0006)
    end
    @attacks += victims.count(&:attacked?)
  end

  # One who has something run, and is interrupted at most once while it waits for it.
  class Victim
    def initialize(work, limit, tell, failures)
      @work = work
      @limit = limit
      @tell = tell
      @failures = failures
      @runs = @ends = 0
      @gone = @timed_out = false
    end

    def attacked? = @attack ? true : @timed_out

    def attack(life, manner)
      return if @attack || @limit || @gone

      @attack = manner
      manner == :kill ? life.kill : life.raise(Raised)
    rescue FiberError, ThreadError # it ended just now
      @attack = nil
    end

    def suffer
      outcome = :kill
      begin
        @limit ? Timeout.timeout(@limit) { @work.call(self) } : @work.call(self)
        outcome = :ended
      rescue Raised
        outcome = :raise
      rescue Timeout::Error
        outcome = :timeout
        @timed_out = true
      rescue Headway::OffloadPool::DeadlineError
        outcome = :deadline
      rescue Headway::OffloadPool::WorkerError
        outcome = :worker
      ensure
        @gone = true
        leave(outcome)
      end
    end

    # On a worker, around the work.
    def watch
      @runs += 1
      @failures << "work ran after its victim had left" if @gone
      yield
    ensure
      @ends += 1
    end

    private

    # An attack on a thread may come when all is over already; one on a fiber cannot.
    def leave(outcome)
      @failures << "#{@attack} was lost: #{outcome}" if @attack && outcome != @attack && !(outcome == :ended && Fiber.scheduler.nil?)
      @failures << "killed by nobody" if outcome == :kill && @attack != :kill
      @failures << "left while its work ran" if @runs != @ends
      @failures << "its work ran #{@runs} times" if @runs > 1
      @tell.call(outcome)
    end
  end

  def operation
    case @random.rand(6)
    when 0 then ->(_) { Zlib::Deflate.new.deflate(DATA) }
    when 1 then ->(_) { File.stat(@fifo) }
    when 2 then RUBY_VERSION >= "3.4" ? ->(_) { open_until_stopped } : plain_operation
    else plain_operation
    end
  end

  # For any Ruby, with a scheduler or without.
  def plain_operation
    long = @random.rand(0.003)
    deadline = 0.001 + @random.rand(0.01) if @random.rand(3).zero?
    case @random.rand(3)
    when 0 then run(deadline) { deadline ? sleep(5) : sleep(long) }
    when 1 then run(deadline) { stubborn(long) }
    else run(nil) { compute }
    end
  end

  # Half of it in the way of the VM's light operations, which line up for a worker that is at such work.
  def run(deadline, &work)
    return ->(victim) { @pool.run(deadline: deadline) { victim.watch(&work) } } if @random.rand(2).zero?

    lambda do |victim|
      watched = -> { victim.watch(&work) }
      @pool.hand_over(watched, deadline, 1, true, &watched)
    end
  end

  # Short, and with the GVL.
  def compute = 1000.times { |number| number.to_s }

  # Nobody opens the other end for a while. Who does is no part of the storm, so that no killed worker hits it.
  def open_until_stopped
    fiber = Fiber.current
    Fiber.schedule do
      sleep 0.003
      other_end = Fiber.blocking { File.open(@fifo, File::RDWR | File::NONBLOCK) }
      sleep 0.003 while fiber.alive?
      Fiber.blocking { other_end.close }
    end
    File.open(@fifo).close
  end

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  def kill_a_worker
    @pool.instance_variable_get(:@threads).keys.sample(random: @random)&.kill
  end

  # Afterwards nothing is left, and every piece of work was counted once.
  def judge
    workers = @pool.stats[:workers]
    @failures << "#{workers} workers" if workers > WORKERS
    @pool.close
    stats = @pool.stats
    @failures << "left over: #{stats}" unless stats.values_at(:workers, :queued) == [0, 0]
    threads = Thread.list.count { |thread| thread.name == "headway offload" }
    @failures << "#{threads} threads of the pool left" if threads.positive?
    raise Failed, @failures.tally.map { |failure, times| "#{times} × #{failure}" }.join("\n") if @failures.any?

    { attacks: @attacks, outcomes: @outcomes, stats: stats }
  end
end
