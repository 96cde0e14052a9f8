# frozen_string_literal: true

require_relative "base"
require_relative "integrations/guard"
require_relative "inert/work" unless Headway.supported?

module Headway
  # A request or a job, and what its thread did meanwhile. A server's integration starts and finishes it; the program may look at
  # the one under way, {Work.current}, which a Rack application also finds in env["headway.request"].
  #
  # While something records, each is a span in the trace, which `headway predict` and `headway advise` take as a request of its class.
  #
  # Times are of the thread. Where fibers share it ({#shared?}), running and suspended are theirs together; waiting still is what
  # the GVL cost this work.
  class Work < (Headway.supported? ? Native::Work : UntimedWork)
    LEFT_OUT = :headway_left_out
    NOTHING = {}.freeze
    # A share of the work: how often, seconds in all, seconds of them waiting for the GVL.
    Part = Struct.new(:count, :wall, :waiting)
    private_constant :LEFT_OUT, :NOTHING

    @subscribers = @masked = [].freeze
    @wanted = {}.compare_by_identity.freeze
    @series = NOTHING

    class << self
      # @!method current
      #   @return [Work, nil] what the current thread works at

      # @!method start(kind, name = nil)
      #   @param kind [:request, :job]
      #   @param name [String, nil] its class: work that is alike, such as "GET /users/:id"; may be told later
      #   @yieldreturn [String] what a trace calls it until then; only asked while something records
      #   @return [Work]
      #   @raise [ArgumentError] another kind

      # @!method answer
      #   Starts a request, unless Headway isn't started or the current thread is in an application that answers one: another that it
      #   makes of itself there is part of that.
      #   @yieldreturn (see .start)
      #   @return [Work, nil]
      #   @api private

      # A job that isn't in the sample of what runs it: what it is inside, as an Active Job, isn't either.
      # @api private
      def leave_out
        before = Thread.current[LEFT_OUT]
        Thread.current[LEFT_OUT] = true
        yield
      ensure
        Thread.current[LEFT_OUT] = before
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

      # Has finished works summed: no block, and no mask.
      # @param series [Hash{Symbol => Metrics::WorkSeries}] by the works' kind
      # @return [void]
      # @api private
      def sum_in(series)
        @series = series
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
        @series[work.kind]&.add(work)
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

    # There is one of each: who copies what is in env, as Rails does to filter it, has the same.
    # @return [Work] itself
    def dup
      self
    end

    # @return [Work] itself
    def clone(**)
      self
    end

    # @!attribute [r] kind
    #   @return [:request, :job]
    # @!attribute name
    #   @return [String, nil] nil: not known before the work is finished
    # @!attribute status
    #   @return [Integer, nil] of a request's response
    # @!attribute queue
    #   @return [String, nil] a job's
    # @!attribute queued
    #   @return [Float, nil] seconds that it stood in a queue before it began; nil: nobody said. One below 0, of clocks that don't agree,
    #     is 0
    #   @raise [ArgumentError] told a number that isn't finite
    # @!attribute [r] error
    #   @return [Exception, nil] what ended it

    # @!attribute [r] outer
    #   @return [Work, nil] what the thread was at before, and will be again
    #   @api private
    # @!attribute answering
    #   @return [Boolean] whether an application is at it, which has yet to return or raise
    #   @api private

    # @!method running
    #   @return [Float] seconds holding the GVL
    # @!method waiting
    #   @return [Float] seconds waiting for the GVL
    # @!method suspended
    #   @return [Float] seconds doing neither: sleeping, in I/O, or in native code without the GVL
    # @!method times
    #   @return [Array(Float, Float, Float)] running, waiting, suspended: until now, or until the work was finished or left its thread
    # @!method wall
    #   @return [Float] seconds, until now or until it was finished
    # @!method measured?
    #   @return [Boolean] whether its thread is known to Headway: false means all times are 0
    # @!method shared?
    #   @return [Boolean] whether the thread had a fiber scheduler
    # @!method finished?
    #   @return [Boolean]
    # @!method here?
    #   @return [Boolean] whether it is under way on the current thread, and the times are of this one: where Rails copies what is a
    #     thread's own to the thread of a streaming action, the work is known there, too
    # @!method look
    #   Takes its thread's times until now: what follows may be on another thread.
    #   @return [self]

    # @return [Hash{Symbol => Part}] what parts of it took, :sql for one
    def parts
      super || NOTHING
    end

    # Adds to a part of the work.
    # @return [void]
    def add(part, wall, waiting)
      parts = self.parts
      parts = self.parts = {} if parts.equal?(NOTHING)
      sum = parts[part] ||= Part.new(0, 0.0, 0.0)
      sum.count += 1
      sum.wall += wall
      sum.waiting += waiting
    end

    # Ends it, once.
    #
    # @param error [Exception, nil] what ended it
    # @return [void]
    def finish(error = nil)
      Work.publish(self) if conclude(error)
    end

    private :parts=, :conclude
  end
end
