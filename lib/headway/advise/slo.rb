# frozen_string_literal: true

require_relative "../advise"
require_relative "../summary"

module Headway
  module Advise
    # What is to be met: a figure of the latency of all requests, or of one class, and how many milliseconds it may be.
    Slo = Data.define(:key, :limit_ms, :kind) do
      # @param text [String] such as "p99=50ms" or "checkout:p95=0.2s"; several with commas
      # @return [Array<Slo>]
      # @raise [SettingError]
      def self.parse(text)
        # A class is called so in UTF-8, whatever the locale makes of what was typed.
        Predict::Grid.words(Summary::Text.plain(text)).map do |word|
          match = /\A\s*(?:(.+):)?(mean|p50|p95|p99)\s*<?=\s*(\d{1,12}(?:\.\d+)?)\s*(us|µs|ms|s)\s*\z/.match(word)
          raise SettingError, "--slo is #{word.inspect}: give mean, p50, p95 or p99 and a time, such as p99=50ms or checkout:p95=0.2s" unless match

          limit_ms = match[3].to_f * { "us" => 0.001, "µs" => 0.001, "ms" => 1, "s" => 1000 }.fetch(match[4])
          raise SettingError, "--slo is #{word.inspect}: the time must be above 0" unless limit_ms.positive?

          new(key: "#{match[2]}_ms", limit_ms: limit_ms, kind: match[1])
        end
      end

      # @param workload [Workload]
      # @raise [SettingError] it names a class that isn't there, or too rare for the figure
      def check(workload)
        names = workload.kinds.map(&:name)
        raise SettingError, "--slo names #{kind.inspect}: the trace has #{names.first(10).join(", ")}" if kind && !names.include?(kind)

        count = kind ? kind_of(workload).count : workload.count
        least = Predict::Figures::LEAST.fetch(key)
        raise SettingError, "--slo #{self}: only #{count} such #{workload.things} are in the trace, and it takes #{least} to tell: record for longer" if count < least
      end

      # @param figures [Predict::Figures]
      # @return [Array<Float>] its value as simulated with all requests, then with each bootstrap sample, in milliseconds
      def values(figures, workload) = figures.samples(key, kind && kind_of(workload))

      # @return [Float] its value as recorded, in milliseconds
      def recorded_ms(workload)
        1000 * (kind ? kind_of(workload).to_h : workload.latency).fetch(:"#{key.delete_suffix("_ms")}_s")
      end

      def to_s = "#{"#{kind}:" if kind}#{key.delete_suffix("_ms")}=#{Predict.number(limit_ms)}ms"

      private

      def kind_of(workload) = workload.kinds.find { |one| one.name == kind }
    end
  end
end
