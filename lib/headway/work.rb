# frozen_string_literal: true

require_relative "base"
require_relative "integrations/guard"
require_relative "work/untimed" unless Headway.supported?

module Headway
  # A request or a job, and what its thread did meanwhile. A server's integration starts and finishes it; the program may look at
  # the one under way, {Work.current}, which a Rack application also finds in env["headway.request"].
  #
  # While something records, each is a span in the trace, which `headway predict` and `headway advise` take as a request of its class.
  #
  # Times are of the thread. Where fibers share it ({#shared?}), running and suspended are theirs together; waiting still is what
  # the GVL cost this work.
  class Work
    CURRENT = :headway_work
    LEFT_OUT = :headway_left_out
    NOTHING = {}.freeze
    Times = Headway.supported? ? Native::WorkTimes : Untimed
    # A share of the work: how often, seconds in all, seconds of them waiting for the GVL.
    Part = Struct.new(:count, :wall, :waiting)
    private_constant :CURRENT, :LEFT_OUT, :NOTHING, :Times

    @subscribers = @masked = [].freeze
    @wanted = {}.compare_by_identity.freeze

    class << self
      # @return [Work, nil] what the current thread works at
      def current
        work = Thread.current[CURRENT]
        work unless work&.finished? # something struck before it had given its thread back
      end

      # @return [Boolean] whether the current thread is in an application that answers a request: one that it makes of itself
      #   there is part of that
      # @api private
      def answering?
        work = current
        work = work.outer while work&.kind == :job
        !work.nil? && work.answering
      end

      # @param kind [:request, :job]
      # @param name [String, nil] its class: work that is alike, such as "GET /users/:id"; may be told later
      # @yieldreturn [String] what a trace calls it until then; only asked while something records
      # @return [Work]
      def start(kind, name = nil, &provisional)
        Thread.current[CURRENT] = new(kind, name, &provisional)
      end

      # A job that isn't in the sample of what runs it: what it is inside, as an Active Job, isn't either.
      # @api private
      def leave_out
        Thread.current[LEFT_OUT] = true
        yield
      ensure
        Thread.current[LEFT_OUT] = nil
      end

      # @api private
      # @return [Boolean]
      def left_out?
        Thread.current[LEFT_OUT] || false
      end

      # Has the block called with each finished work, on the work's thread. An error in it is noted, and breaks nothing.
      #
      # @param wanted [#call, nil] given the work, whether to call it: Headway's own, and short as in {subscribe_masked}
      # @return [Proc] for {unsubscribe}
      def subscribe(wanted: nil, &block)
        @wanted = @wanted.merge(block => wanted).freeze if wanted
        @subscribers = [*@subscribers, block].freeze
        block
      end

      # The same for blocks of Headway's own, as short as {Integrations::Guard.masked} wants them: what another thread raises meanwhile
      # is not taken for an error in them.
      # @api private
      def subscribe_masked(&block)
        @masked = [*@masked, block].freeze
        block
      end

      # @param block [Proc] as {subscribe} returned it
      # @return [void]
      def unsubscribe(block)
        @subscribers = (@subscribers - [block]).freeze
        @masked = (@masked - [block]).freeze
        @wanted = @wanted.reject { |subscriber,| subscriber.equal?(block) }.freeze if @wanted.key?(block)
      end

      # @return [void]
      def publish(work)
        Integrations::Guard.masked("Headway's own count of works") { @masked.each { |block| block.call(work) } } unless @masked.empty?
        @subscribers.each do |subscriber|
          Integrations::Guard.guard("a subscriber of Headway::Work") { subscriber.call(work) } if wanted?(subscriber, work)
        end
      end

      private

      def wanted?(subscriber, work)
        wanted = @wanted[subscriber] or return true
        Integrations::Guard.masked("Headway's own count of works") { wanted.call(work) }
      end
    end

    # @return [:request, :job]
    attr_reader :kind
    # @return [String, nil] nil: not known before the work is finished
    attr_accessor :name
    # @return [Integer, nil] of a request's response
    attr_accessor :status
    # @return [String, nil] a job's
    attr_accessor :queue
    # @return [Exception, nil] what ended it
    attr_reader :error

    # @api private
    # @return [Native::WorkTimes]
    attr_reader :account

    # @api private
    # @return [Work, nil] what the thread was at before, and will be again
    attr_reader :outer

    # @api private
    def initialize(kind, name, &provisional)
      @kind = kind
      @name = name
      @answering = false
      before = Work.current
      @outer = before if kind == :job || before&.kind == :job # a request that is there may be one that another thread will finish
      @shared = !Fiber.current_scheduler.nil?
      @account = Times.new
      @parts = @queue = @status = @error = @mark = nil # in this order always: objects of too many shapes are slow
      begin_span(&provisional) if Recorder.recording? && !@shared
    end

    # @return [Float] seconds holding the GVL
    def running
      @account.running
    end

    # @return [Float] seconds waiting for the GVL
    def waiting
      @account.ready
    end

    # @return [Float] seconds doing neither: sleeping, in I/O, or in native code without the GVL
    def suspended
      @account.suspended
    end

    # @return [Array(Float, Float, Float)] running, waiting, suspended: until now, or until the work was finished or left its thread
    def times
      @account.to_a
    end

    # @return [Float] seconds, until now or until it was finished
    def wall
      @account.wall
    end

    # @return [Boolean] whether its thread is known to Headway: false means all times are 0
    def measured?
      @account.measured?
    end

    # @return [Boolean] whether the thread had a fiber scheduler
    def shared?
      @shared
    end

    # @return [Boolean]
    def finished?
      @account.finished?
    end

    # @return [Hash{Symbol => Part}] what parts of it took, :sql for one
    def parts
      @parts || NOTHING
    end

    # Adds to a part of the work.
    # @return [void]
    def add(part, wall, waiting)
      sum = (@parts ||= {})[part] ||= Part.new(0, 0.0, 0.0)
      sum.count += 1
      sum.wall += wall
      sum.waiting += waiting
    end

    # @api private
    # @return [Boolean] whether an application is at it, which has yet to return or raise
    attr_accessor :answering

    # Takes its thread's times until now: what follows may be on another thread.
    # @return [void]
    def look
      @answering = false
      @account.look
    end

    # Ends its span in the trace: its thread has other work now.
    # @api private
    # @return [void]
    def leave
      mark, @mark = @mark, nil
      Native.end_mark(mark, @name) if mark
    end

    # Ends it, once.
    #
    # @param error [Exception, nil] what ended it
    # @return [void]
    def finish(error = nil)
      return unless @account.finish

      @error = error
      @answering = false
      leave if @mark
      give_back(Thread.current)
      @outer = nil
      Work.publish(self)
    end

    private

    # One that was begun in it and that nobody finished is gone with it.
    def give_back(thread)
      inner = thread[CURRENT]
      inner = inner.outer until inner.nil? || inner.equal?(self)
      thread[CURRENT] = @outer if inner
    end

    # Requests don't nest: one that is there is being finished on another thread.
    def begin_span
      before = Work.current
      before.leave if @kind == :request && before&.kind == :request
      @mark = Native.begin_mark(@name || (block_given? ? yield : @kind))
    end
  end
end
