# frozen_string_literal: true

# Pools as one writes them at first, and as schedulers have them. Kept to show that the tests of the traps fail with them.
class NaivePool
  def initialize(workers: 2, queue: 1000)
    @queue = queue
    @jobs = Thread::Queue.new
    @threads = Array.new(workers) { Thread.new { serve } }
  end

  def call(work)
    return full(work) if @jobs.size >= @queue

    job = [work, Thread::Queue.new]
    @jobs << job
    wait(job)
  ensure
    job&.fetch(2, nil)&.raise(IOError, "cancelled")
  end

  def close
    @jobs.close
    @threads.each(&:join)
  end

  private

  def wait(job)
    job[1].pop
    job.delete_at(2)
  end

  # Calls the work where the work was asked for.
  def full(work) = work.call

  def serve
    Thread.current.report_on_exception = false
    while (job = @jobs.pop)
      job[2] = Thread.current
      job[0].call
      job[1] << true
    end
  end
end

# Doesn't wait for the worker.
class ImpatientPool < NaivePool
  private

  def wait(job) = job[1].pop(timeout: 0)
end

# Drops what it has no place for.
class DroppingPool < NaivePool
  private

  def full(_work) = nil
end

# Doesn't tell the worker that nobody waits any more.
class UnwindingPool < NaivePool
  private

  def wait(job)
    job[1].pop
  ensure
    job.delete_at(2)
  end
end
