# frozen_string_literal: true

require_relative "../advise"

module Headway
  module Advise
    # Chooses: of the settings that meet what is to be met (with none: all that keep up) those that do most, within a few per cent;
    # of these the least latency, unless latency was what had to be met and is; of these the cheapest. Cheap is few processes, then
    # few threads, then little change; or, where nothing meets it, to come near. What was recorded stays where nothing is surer or
    # gains anything.
    class Choice
      SAME_RATE = 0.03
      SAME_LATENCY = 0.10
      # A gain that is smaller isn't worth a change.
      WORTH = 0.05
      # Of the bootstrap samples: fewer, and the next cheapest is looked at, so many of them.
      LIKELY = 0.7
      LOOKS = 8
      # By so many of the samples a setting must be likelier to meet what the current one only just misses.
      SURER = 0.2
      # Figures that differ by less are the same.
      SAME = 0.01
      private_constant :SAME_RATE, :SAME_LATENCY, :WORTH, :LOOKS, :SURER, :SAME

      # @return [Predict::Figures]
      attr_reader :recommended, :current
      # @return [Predict::Figures, nil] the best that isn't of the same processes, policy and quantum, nor does just the same
      attr_reader :next_best

      # @param workload [Workload]
      # @param candidates [Candidates]
      # @param slos [Array<Slo>]
      def initialize(workload, candidates, slos, **options)
        @workload = workload
        @slos = slos
        @options = options
        looks = Predict::Parallel.map(candidates.settings) { |setting| Predict::Figures.new(workload, setting, replications: 0, **options) }
        looks.reject!(&:refusal)
        @meeting = looks.reject(&:overloaded?).select { |figures| meets?(figures) }
        @possible = @meeting.any? || slos.empty? && looks.any? { |figures| !figures.overloaded? }
        order = @possible ? ranked(@meeting, candidates.current) : closest(looks, candidates.current)
        @current = closely(candidates.current)
        @current_allowed = candidates.current_allowed?
        @bounded = candidates.bounded?
        order = looks.max_by(1, &:requests_per_s) if order.empty? && !@current_allowed # of what doesn't keep up, either
        choose(order)
      end

      # @return [Boolean] whether anything meets what is to be met
      def possible? = @possible

      # @return [Boolean] whether less was allowed than the cores would take
      def bounded? = @bounded

      # @return [Boolean] nothing better is known than the setting that was recorded
      def already_right? = recommended.setting == current.setting

      # @param figures [Predict::Figures]
      # @return [Boolean]
      def meets?(figures)
        @slos.all? { |slo| slo.values(figures, @workload).first&.<=(slo.limit_ms) }
      end

      # @return [Float, nil] the share of bootstrap samples in which all is met; with nothing to meet, in which it is better than the
      #   current setting; nil: it is that, or can't be compared
      def sureness(figures)
        return if figures.overloaded?
        return better_share(figures) if @slos.empty?

        met = in_step(@slos.map { |slo| slo.values(figures, @workload).drop(1).map { |value| value <= slo.limit_ms } })
        met.empty? ? nil : met.count(&:all?).fdiv(met.size)
      end

      private

      def closely(setting) = Predict::Figures.new(@workload, setting, **@options)

      def choose(order)
        best = order.first
        best = nil if best && keep_current?(best)
        best &&= likely(order)
        @recommended = best.nil? || no_surer?(best) ? @current : best
        other = order.find { |figures| unlike?(figures.setting, @recommended.setting) && figures.setting != @current.setting && !same?(figures) }
        @next_best = other && closely(other.setting)
      end

      def same?(figures)
        [[figures.requests_per_s, @recommended.requests_per_s], [latency(figures), latency(@recommended)]].all? { |one, other| (one - other).abs <= SAME * other }
      end

      # The same requests are drawn for all settings: a sample is compared with its like, and where as much is done by latency.
      def better_share(figures)
        return if @current.overloaded? || figures.setting == @current.setting

        as_much = rate_gain(figures).abs < WORTH
        scores = [figures, @current].map { |one| as_much ? latencies(one).map(&:-@) : one.rates }
        pairs = scores.first.zip(scores.last).drop(1)
        pairs.count { |one, other| one > other }.fdiv(pairs.size) if pairs.any? && scores.map(&:size).uniq.one?
      end

      # What only just meets it by what happened to be recorded isn't advised while a little more meets it for sure.
      def likely(order)
        return closely(order.first.setting) if @slos.empty? || @meeting.empty?

        surest = nil
        order.first(LOOKS).each do |figures|
          look = closely(figures.setting)
          surest = look if surest.nil? || sure(look) > sure(surest)
          break if sure(surest) >= LIKELY
        end
        surest
      end

      def sure(figures) = sureness(figures) || (meets?(figures) ? 1 : 0)

      def unlike?(one, other)
        one.processes != other.processes || one.policy != other.policy || one.quantum_ms != other.quantum_ms
      end

      # It meets all, and what would be gained is next to nothing.
      def keep_current?(best)
        return false if !@current_allowed || @current.overloaded?
        return excess(@current) <= (1 + SAME_LATENCY) * excess(best) unless possible?
        return false if !meets?(@current) || best.setting.processes < @current.setting.processes
        return false if @slos.any? && sure(@current) < LIKELY

        rate_gain(best) < WORTH && (@slos.any? || latency_gain(best) < SAME_LATENCY)
      end

      # As open as whether the current one meets it; and the setting isn't likely to meet it with fewer processes, or to do more, either.
      def no_surer?(best)
        return false if @slos.empty? || @meeting.empty? || !@current_allowed || @current.overloaded?
        return false if sure(best) - sure(@current) >= SURER

        sure(best) < LIKELY || (best.setting.processes >= @current.setting.processes && rate_gain(best) < WORTH)
      end

      def rate_gain(best) = @current.setting.rate ? 0 : (best.requests_per_s / @current.requests_per_s) - 1

      def latency_gain(best) = 1 - (latency(best) / latency(@current))

      def ranked(looks, current)
        quick, slow = current.rate ? [looks, []] : looks.partition { |figures| figures.requests_per_s >= (1 - SAME_RATE) * looks.map(&:requests_per_s).max }
        least = quick.map { |figures| latency(figures) }.min
        alike, worse = @slos.any? && @possible ? [quick, []] : quick.partition { |figures| latency(figures) <= (1 + SAME_LATENCY) * least }
        alike.sort_by { |figures| cost(figures, current) } + worse.sort_by { |figures| latency(figures) } +
          slow.sort_by { |figures| -figures.requests_per_s }
      end

      # None meets it: those that come nearest, and then do most.
      def closest(looks, current)
        near = looks.reject(&:overloaded?).sort_by { |figures| excess(figures) }
        alike, farther = near.partition { |figures| excess(figures) <= (1 + SAME_LATENCY) * excess(near.first) }
        ranked(alike, current) + farther
      end

      # How many times what was asked for.
      def excess(figures) = @slos.map { |slo| (slo.values(figures, @workload).first || Float::INFINITY) / slo.limit_ms }.max || 0

      def latency(figures) = latencies(figures).first || Float::INFINITY

      # Over the classes: a policy that is good to one at the other's cost is judged by both. Where most requests are of classes too rare
      # to tell, all are one. As simulated with all requests, then with each bootstrap sample.
      def latencies(figures)
        logs = judged_by.filter_map do |kind|
          values = %w[p99_ms p95_ms mean_ms].lazy.map { |key| figures.samples(key, kind) }.find(&:any?)
          values&.map { |value| Math.log([value, 1e-6].max) }
        end
        in_step(logs).map { |values| Math.exp(values.sum / values.size) }
      end

      def judged_by
        @judged_by ||= @workload.kinds.select { |kind| kind.count >= Predict::Figures::LEAST.fetch("mean_ms") }
                                .then { |kinds| 2 * kinds.sum(&:count) < @workload.count ? [nil] : kinds }
      end

      # Transposed; a bootstrap sample may have none of a rare class, whose list is shorter then.
      def in_step(lists)
        shortest = lists.map(&:size).min || 0
        lists.map { |values| values.first(shortest) }.transpose
      end

      def cost(figures, current)
        setting = figures.setting
        changes = %i[threads policy quantum_ms].count { |key| setting.public_send(key) != current.public_send(key) }
        [setting.processes, setting.threads, @possible ? changes : excess(figures), changes]
      end
    end
  end
end
