# frozen_string_literal: true

module Headway
  # What Native::Work is where Headway can do something. Of the times there is the clock's alone.
  class UntimedWork
    CURRENT = :headway_work
    private_constant :CURRENT

    class << self
      def start(kind, name = nil)
        raise ArgumentError, "#{kind.inspect}: :request or :job" unless %i[request job].include?(kind)

        Thread.current[CURRENT] = new(kind, name, current)
      end

      def current
        work = Thread.current[CURRENT]
        work unless work&.finished?
      end

      def answer
        nil # Headway isn't started
      end
    end

    attr_reader :kind, :error, :outer
    attr_accessor :name, :status, :queue, :queued, :parts

    def initialize(kind, name, before)
      @kind = kind
      @name = name
      @outer = before if kind == :job || before&.kind == :job
      @thread = Thread.current
      @shared = Fiber.respond_to?(:current_scheduler) && !Fiber.current_scheduler.nil?
      @began = clock
    end

    def look
      self
    end

    def here?
      !finished? && @thread.equal?(Thread.current)
    end

    def conclude(error)
      return false if finished?

      @wall = wall
      @error = error
      look
      give_back(Thread.current)
      @outer = nil
      true
    end

    def running
      0.0
    end
    alias waiting running
    alias suspended running

    def times
      [0.0, 0.0, 0.0]
    end

    def wall
      @wall || (clock - @began)
    end

    def measured?
      false
    end

    def shared?
      @shared
    end

    def finished?
      !@wall.nil?
    end

    private

    def give_back(thread)
      inner = thread[CURRENT]
      inner = inner.outer until inner.nil? || inner.equal?(self)
      thread[CURRENT] = @outer if inner
    end

    def clock
      Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
  private_constant :UntimedWork
end
