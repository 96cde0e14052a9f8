# frozen_string_literal: true

module Headway
  # What Native::Work is where Headway can do something. Of the times there is the clock's alone.
  class UntimedWork
    CURRENT = :headway_work
    private_constant :CURRENT

    class << self
      def start(kind, name = nil)
        Thread.current[CURRENT] = new(kind, name, current)
      end

      def current
        work = Thread.current[CURRENT]
        work unless work&.finished?
      end

      def answering?
        work = current
        work = work.outer while work&.kind == :job
        !work.nil? && work.answering
      end
    end

    attr_reader :kind, :error, :outer
    attr_accessor :name, :status, :queue, :parts, :answering

    def initialize(kind, name, before)
      @kind = kind
      @name = name
      @outer = before if kind == :job || before&.kind == :job
      @answering = false
      @began = clock
    end

    def look
      @answering = false
      self
    end

    def conclude(error)
      return false if finished?

      @wall = wall
      @error = error
      look
      Thread.current[CURRENT] = @outer if Thread.current[CURRENT].equal?(self)
      @outer = nil
      true
    end

    def running = 0.0
    alias waiting running
    alias suspended running

    def times = [0.0, 0.0, 0.0]
    def wall = @wall || (clock - @began)
    def measured? = false
    def shared? = false
    def finished? = !@wall.nil?

    private

    def clock = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
  private_constant :UntimedWork
end
