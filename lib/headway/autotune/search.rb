# frozen_string_literal: true

require_relative "comparison"
require_relative "signature"

module Headway
  class Autotune
    # One step that was tried. before, after: {class => { per_s:, p99_ms: }}; outcome: :kept, :reverted, or :abandoned, which says
    # nothing of the step.
    Step = Data.define(:at, :knob, :from, :to, :outcome, :reason, :before, :after)

    # Decides, from windows alone, what to set next. It watches some windows, sets one knob one step further, watches as many, and, if
    # these are better, goes back to see whether that was the step's doing: then the step is kept. Each setting is tried once, until
    # the work becomes other work, which only windows under the base can tell: of work that waits for a lock or a pool, a step itself
    # moves what is suspended. A window with too few works counts for nothing, and so does the first one after a change.
    class Search
      HISTORY_MOST = 200
      # What a step needs to be kept, see {Comparison}: with ten windows before and five after, all must be better, which happens by
      # chance once in 3,000 times.
      CERTAINTY = 3.0
      # Windows in a row that must look like other work.
      DEPARTURES = 2

      # @return [Array<Step>] the latest {HISTORY_MOST}
      attr_reader :history

      # @return [Hash{Symbol => Numeric}] the setting that has proved best so far
      attr_reader :base

      # @param knobs [Array<Knob>]
      # @param values [Hash{Symbol => Numeric}] as they are set
      # @param windows [Integer] to compare with as many
      # @param samples [Integer] works a window needs
      # @yieldparam line [String] what it does, and why
      def initialize(knobs:, values:, windows:, samples:, &log)
        @knobs = knobs
        @windows = windows
        @samples = samples
        @log = log
        @history = []
        @direction = nil
        settle(values)
        forget
      end

      # @param window [Window] under the setting there is
      # @param values [Hash{Symbol => Numeric}] that setting
      # @return [Hash{Symbol => Numeric}] the setting there is to be, which differs in one knob at most
      def take(window, values)
        return adopt(values) if values != @set
        return scarce if window.count < @samples

        @scarce = 0
        if @unsettled
          @unsettled = false
        elsif @set == @base && (departure = departed(window))
          start_over(departure) if departure != :maybe
        else
          public_send(@state, window)
        end
        @set
      end

      # @param values [Hash{Symbol => Numeric}] the setting there is
      # @return [Hash{Symbol => Numeric}] the setting to leave behind: what somebody else has set stays
      def stop(values)
        left = left_by(values)
        abandon("stopped")
        left
      end

      # @api private
      def watch(window)
        @before = [*@before, window].last(@windows)
        return if @before.size < @windows

        @signature ||= Signature.new(@before)
        @tried[@starved] = true if @starved # with enough work at once without it, it was that step that kept it from being done
        @starved = nil
        @trial = next_trial
        return rest unless @trial

        say("#{knob_named} #{@from} -> #{@to}, to see what it does")
        go(@trial, :try)
      end

      # @api private
      def try(window)
        @after << window
        comparison = Comparison.new(@before, @after)
        return if @after.size < @windows && !(@after.size >= 2 && comparison.alarming?)
        return finish(:reverted, comparison.reason) unless comparison.verdict == :better || @signature.departure(window)

        say("#{knob_named} #{@to} -> #{@from}: #{comparison.reason}; back, to see whether that was the step")
        go(@base, :check)
      end

      # @api private
      def check(window)
        @again << window
        return if @again.size < @windows

        comparison = Comparison.new([*@before, *@again], @after, certainty: CERTAINTY)
        case comparison.verdict
        when :better then finish(:kept, comparison.reason)
        when :worse then finish(:reverted, comparison.reason)
        else finish(:reverted, "it is the same without: #{comparison.reason}")
        end
      end

      private

      def go(setting, state)
        @set = setting
        @state = state
        @unsettled = true
      end

      def settle(values)
        @signature = @starved = nil if values != @base
        @base = @set = values
        watch_anew
      end

      def watch_anew
        @state = :watch
        @trial = nil
        @before, @after, @again = [], [], []
        @unsettled = false
        @scarce = 0
      end

      def forget
        @tried = {}
        @signature = @starved = nil
        @resting = false
        @departures = 0
      end

      # Nothing is left to try.
      def rest
        say("nothing left to try: #{described(@base)} stays until the work changes") unless @resting
        @resting = true
      end

      def next_trial
        moves = @knobs.product([-1, 1])
        moves.unshift(@direction) if @direction
        moves.each do |knob, direction|
          @knob = knob.name
          @from = @base[@knob]
          @to = knob.next_value(@from, direction) or next
          trial = @base.merge(@knob => @to)
          next if @tried[trial]

          @moving = [knob, direction]
          return trial
        end
        nil
      end

      def finish(outcome, reason)
        record(outcome, reason)
        changed = @set != (outcome == :kept ? @trial : @base)
        @tried[outcome == :kept ? @base : @trial] = true
        if outcome == :kept
          @base = @trial
          @direction = @moving
          @signature = nil # how much work comes now may be the step's doing
        end
        @set = @base
        watch_anew
        @unsettled = changed
      end

      def abandon(reason)
        return unless @trial

        record(:abandoned, reason)
        changed = @set != @base
        @set = @base
        watch_anew
        @unsettled = changed
      end

      def start_over(departure)
        say("the work has changed: #{departure}")
        abandon("the work changed meanwhile")
        watch_anew
        forget
      end

      # @return [String, :maybe, nil]
      def departed(window)
        departure = @signature&.departure(window)
        @departures = departure ? @departures + 1 : 0
        departure && (@departures < DEPARTURES ? :maybe : departure)
      end

      # Somebody else set it, or what was set isn't what is in force.
      def adopt(values)
        left = left_by(values)
        say("#{described(left)} was set from elsewhere") if left != @base
        @tried[@trial] = true if @trial
        abandon("#{described(left)} was set from elsewhere")
        settle(left)
        @unsettled = left != values
        @set
      end

      # A step that hasn't proved itself is no more than before because another knob was set.
      def left_by(values) = values.to_h { |name, value| [name, value == @set[name] ? @base[name] : value] }

      def scarce
        @scarce += 1
        @starved = nil if @set == @base && @scarce > 1 # there is little to do whatever is set
        return @set if @scarce <= 2 * @windows

        @starved = @trial if @state == :try
        abandon("too little work to tell")
        @set
      end

      def record(outcome, reason)
        say("#{knob_named} #{@from} -> #{@to} #{outcome}: #{reason}")
        @history = [*@history, Step.new(at: (@after.last || @before.last)&.at, knob: @knob, from: @from, to: @to, outcome: outcome,
                                        reason: reason, before: figures(@before), after: figures(@after))].last(HISTORY_MOST)
      end

      def figures(windows)
        windows.flat_map { |window| window.classes.to_a.map { |name, kind| [name, kind, window.seconds] } }
               .group_by(&:first).transform_values do |rows|
          seconds = windows.sum(&:seconds)
          { per_s: rows.sum { |_, kind,| kind.count } / seconds.to_f, p99_ms: Statistics.median(rows.map { |_, kind,| kind.p99_s * 1000.0 }) }
        end
      end

      def knob_named = @knob.to_s

      def described(values) = values.map { |name, value| "#{name} #{value}" }.join(", ")

      def say(text) = @log&.call(text)
    end
  end
end
