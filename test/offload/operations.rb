# frozen_string_literal: true

require "tmpdir"
require "headway"

# Operations that try a pool's patience.
module Operations
  # Goes on for that long whatever the pool raises.
  def stubborn(seconds)
    stop = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
    begin
      sleep 0.0005 while Process.clock_gettime(Process::CLOCK_MONOTONIC) < stop
    rescue Headway::OffloadPool::Cancelled
      retry
    end
    yield if block_given?
  end

  # Work that nobody can stop: it goes on until it is released, and tells when it has begun and when the pool has tried.
  class Stubborn
    attr_reader :begun, :told

    def initialize
      @begun = Thread::Queue.new
      @told = Thread::Queue.new
      @gate = Thread::Queue.new
      @ended = false
    end

    def ended? = @ended

    def call
      begin
        @begun << true
        @gate.pop
      rescue Headway::OffloadPool::Cancelled
        @told << true
        retry
      end
      @ended = true
    end

    def release = @gate.close
  end

  # How many stand at the pool's queue: workers that idle, and who waits for a place.
  def at_the_queue(pool) = pool.instance_variable_get(:@pending).num_waiting

  # Who asks before a worker, which has answered, has come for more gets another one.
  def await_idle_workers(pool)
    sleep 0.0002 until at_the_queue(pool) == pool.stats[:workers]
  end

  # By a path that is too long to lie in the VM's heap: while that is compacted its pages can't be read, and the system answers "Bad address"
  # to who just asks it about a path in there, without the GVL.
  def with_fifo
    Dir.mktmpdir do |folder|
      path = "#{folder}/#{"./" * 500}fifo"
      File.mkfifo(path)
      yield path
    end
  end
end
