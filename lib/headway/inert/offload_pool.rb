# frozen_string_literal: true

module Headway
  class OffloadPool
  end
end

require_relative "../offload/errors"

module Headway
  # Stands for the pool where none can be: every operation runs where it is.
  class OffloadPool
    attr_reader :workers, :queue, :full, :deadline, :mode

    class << self
      def default
        @default = new if @default.nil? || @default.closed?
        @default
      end

      def worker?
        false
      end
    end

    def initialize(workers: 1, queue: 256, full: :inline, deadline: nil, mode: :never)
      @workers = workers
      @queue = queue
      @full = full
      @deadline = deadline
      @mode = :never
      @closed = false
      @inline = 0
    end

    def call(work)
      run { work.call }
    end

    def run(deadline: nil)
      raise ArgumentError, "no block to run" unless block_given?
      raise ClosedError, "this pool is closed" if @closed

      @inline += 1
      yield
    end

    def turned
      nil
    end

    def close
      @closed = true
      nil
    end

    def closed?
      @closed
    end

    def stats
      { workers: 0, queued: 0, ran: 0, inline: @inline, withdrawn: 0, cancelled: 0, cancelled_but_ran: 0, late: 0, full: 0, busy: 0.0 }
    end
  end
end
