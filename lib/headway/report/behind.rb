# frozen_string_literal: true

require_relative "labels"

module Headway
  module Report
    # What a thread waited behind: the methods that its holders were in. A blame stack says where a holder was, not who
    # waited, so each holder's part of the wait is split over its stacks by their weight.
    class Behind
      # Ruby's own and other people's code, and Headway's, which stands around each request and job, wherever a `path:` in the Gemfile has
      # it: a method of the program that called it says more. (Headway's benchmarks are programs.)
      FOREIGN = %r{/gems/|/lib/ruby/|/rubygems/|/lib/headway/(?!bench/)}.freeze
      # Functions in C and Ruby's own Ruby have no file.
      NO_FILE = /\A<|\A\z/.freeze
      # Of a method's or a line's weight.
      MOSTLY = 0.5
      NEARLY_ALL = 0.9
      # Of what it waits for another thread in, the library that calls it says more, a pool of connections, say. Concurrent-ruby's locks
      # don't.
      FOR_A_THREAD = /\A(?:Thread::(?:Mutex|ConditionVariable|Queue|SizedQueue)|Monitor)#/.freeze
      AT_A_LOCK = /\A(?:Thread::Mutex#(?:lock|synchronize)|Monitor#(?:mon_)?(?:enter|synchronize))\z/.freeze
      # And what else another thread may have it wait for: a file's lock, which threads take turns at, too, or its end.
      BY_A_THREAD = /#{FOR_A_THREAD}|\A(?:Thread#(?:join|value)|File#flock|Ractor[#.].*)\z/.freeze
      LIBRARY = %r{/gems/(?!concurrent-ruby-[^/]+/.*/synchronization/)}.freeze
      # Of waits for other threads, from here on a wait for the GVL may be why.
      SOME = 0.1
      private_constant :FOREIGN, :NO_FILE, :NEARLY_ALL, :FOR_A_THREAD, :AT_A_LOCK, :BY_A_THREAD, :LIBRARY, :SOME

      # @param data [Hash] as {Trace#to_h} returns it
      def initialize(data)
        @frames = data.dig(:blame, :frames) || []
        @stacks = data.dig(:blame, :stacks) || []
        @threads = data[:threads]
        by_thread = @stacks.group_by { |stack| stack[:thread] }
        @methods = by_thread.transform_values { |stacks| parts(weigh(stacks)) }
        @weights_s = by_thread.transform_values { |stacks| stacks.sum { |stack| stack[:weight_s] } }
        @deaf = by_thread.transform_values { |stacks| deaf(stacks) }
      end

      # @param thread [Hash] a row of the trace's threads
      # @return [Array(String, Float), nil] the method it waited behind longest, and for which share of its waits
      def method_of(thread)
        shares = Hash.new(0.0)
        thread[:waited_for].each do |part|
          @methods.fetch(part[:thread], {}).each { |method, share| shares[method] += share * part[:s] }
        end
        top(shares, thread)
      end

      # @return [Array(String, Float), nil] the method that held the GVL in most of all waits, and for which share of what was seen of them
      def method_of_all = parts(weigh(@stacks)).max_by(&:last)

      # @param method [String]
      # @param kinds [Array<Hash>] the trace's kinds of work
      # @return [String, nil] which kind was in it, of the time that others waited for it: "at `GET /`"; nil: no one mostly was
      def at_work(method, kinds)
        in_it = ->(stacks, key) { stacks.sum { |stack| method_at(telling(stack)) == method ? stack[key] : 0.0 } }
        Behind.at_work(kinds, in_it[@stacks, :weight_s]) { |kind| in_it[kind[:blamed], :s] }&.then { |at, kind| "#{at} #{Labels.work(kind)}" }
      end

      # @param kinds [Array]
      # @param all_s [Float] the weight of a method or a line
      # @yieldreturn [Float] of that, what a kind was in it for
      # @return [Array(String, Object), nil] "at" or "mostly at", and the kind
      def self.at_work(kinds, all_s)
        kinds.each do |kind|
          its_s = yield kind
          return [its_s < NEARLY_ALL * all_s ? "mostly at" : "at", kind] if its_s >= MOSTLY * all_s
        end
        nil
      end

      # @param method [String]
      # @param thread [Hash, nil] who waited behind it; nil: all that did
      # @return [String, nil] the line of it that weighs most, `file:line`
      def line_of(method, thread = nil)
        weights = Hash.new(0.0)
        @stacks.each do |stack|
          frame = telling(stack)
          next unless frame && method_at(frame) == method

          weights[Labels.place(frame)] += stack[:weight_s] * (thread ? part(thread, stack[:thread]) : 1)
        end
        weights.max_by(&:last)&.first&.then { |place| place unless place.empty? }
      end

      # @return [Array(Integer, Float), nil] the thread it waited for longest, and for which share of its waits
      def holder_of(thread)
        top(thread[:waited_for].reject { |part| part[:thread].nil? }.to_h { |part| part.values_at(:thread, :s) }, thread)
      end

      # @return [Float] the share of its waits in which nobody had the GVL: the system let it run late
      def free_of(thread)
        thread[:ready_s].positive? ? free_s(thread) / thread[:ready_s] : 0.0
      end

      # @return [Float] the same of all waits
      def free_of_all
        ready_s = @threads.sum { |thread| thread[:ready_s] }
        ready_s.positive? ? @threads.sum { |thread| free_s(thread) } / ready_s : 0.0
      end

      # @return [Float] the share of its waits in which whoever had the GVL heeded no interrupt
      def deaf_of(thread)
        return 0.0 unless thread[:ready_s].positive?

        thread[:waited_for].sum { |part| @deaf.fetch(part[:thread], 0.0) * part[:s] } / thread[:ready_s]
      end

      # @return [Float] the same of all waits that were seen
      def deaf_of_all = deaf(@stacks)

      # @param stack [Hash] one of the trace's
      # @return [Hash, nil] the frame of the program's own code nearest to the leaf; without one, the nearest that has a file
      def telling(stack)
        frames = stack[:frames].map { |index| @frames[index] }.compact
        filed = frames.reject { |frame| NO_FILE.match?(frame[:file].to_s) }
        filed.find { |frame| !FOREIGN.match?(frame[:file]) } || filed.first || frames.first
      end

      # @return [Hash, nil] the frame that ran or blocked; of a wait for another thread the library's that waits, if it is one
      def leaf(stack)
        return last_of(stack) unless for_a_thread?(stack)

        own = telling(stack)
        called = stack[:frames].map { |index| @frames[index] }.take_while { |frame| !frame.equal?(own) }
        called.find { |frame| frame && LIBRARY.match?(frame[:file].to_s) } || last_of(stack)
      end

      # @return [Boolean] whether it was blocked until another thread does something: gives a lock back, or puts something in a queue
      def for_a_thread?(stack) = FOR_A_THREAD.match?(last_method(stack))

      # @return [Boolean] whether that was a lock
      def at_a_lock?(stack) = AT_A_LOCK.match?(last_method(stack))

      # @return [Boolean] whether another thread may be what it was blocked by, be it one that it started
      def by_a_thread?(stack) = BY_A_THREAD.match?(last_method(stack))

      # Who has a lock that others wait for may wait for the GVL itself, which a policy changes: for as long as any thread does, all others may
      # be waiting for what it has. Where nobody had the GVL it was late, which no policy changes.
      # @param waited_s [Float] for other threads, by all threads
      # @return [Boolean] whether that may be why for some of it
      def for_the_gvl?(waited_s) = @threads.size * @threads.sum { |thread| thread[:ready_s] - free_s(thread) } >= SOME * waited_s

      # @return [String] the method of a frame
      def method_at(frame) = frame ? Labels.method_of(frame) : "unknown code"

      private

      # Nothing of a stack that the trace was cut short before.
      def last_of(stack) = stack[:frames].first&.then { |index| @frames[index] }

      def last_method(stack) = last_of(stack).to_h[:method].to_s

      def top(shares, thread)
        what, seconds = shares.max_by(&:last)
        [what, [seconds / thread[:ready_s], 1.0].min] if what && thread[:ready_s].positive?
      end

      # How long a thread waited for a holder, against the weight of all that holder's stacks.
      def part(thread, holder)
        waited_s = thread[:waited_for].sum { |part| part[:thread] == holder ? part[:s] : 0.0 }
        weight_s = @weights_s.fetch(holder)
        weight_s.positive? ? waited_s / weight_s : 0.0
      end

      def free_s(thread) = thread[:waited_for].sum { |part| part[:thread] || part[:others] ? 0.0 : part[:s] }

      def deaf(stacks)
        weight_s = stacks.sum { |stack| stack[:weight_s] }
        weight_s.positive? ? stacks.sum { |stack| stack[:late_s] } / weight_s : 0.0
      end

      def weigh(stacks)
        weights = Hash.new(0.0)
        stacks.each { |stack| weights[method_at(telling(stack))] += stack[:weight_s] }
        weights
      end

      def parts(weights)
        sum = weights.values.sum
        sum.positive? ? weights.transform_values { |weight| weight / sum } : {}
      end
    end
  end
end
