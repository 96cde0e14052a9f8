# frozen_string_literal: true

module Headway
  module Bench
    class Overview
      # A loop of requests beside computing threads, against a slow server and a fast one.
      class Requests < Section
        GOALS = { 60 => { 1 => "≥ 0.98", 4 => "≥ 0.95", 16 => "≥ 0.95" }, 1 => Hash.new("≥ 0.95") }.freeze

        def rows
          GOALS.flat_map do |server_ms, goals|
            experiment = Fairness.new("server_ms" => server_ms, "seconds" => @scale.seconds)
            samples = samples_of(experiment)
            (experiment.config["cpu_threads"] - [0]).flat_map do |threads|
              beside = "#{server_ms} ms server, #{threads} CPU #{threads == 1 ? "thread" : "threads"}"
              [
                row("#{beside}: request rate, against none", goals[threads], rates(samples, threads.to_s)),
                row("#{beside}: wait p50", "≤ 30 µs", waits(samples, threads.to_s, "wait_p50_us")),
                row("#{beside}: wait p99", "≤ 1 ms", waits(samples, threads.to_s, "wait_p99_us"))
              ]
            end
          end
        end

        private

        def rates(samples, threads)
          samples.transform_values do |runs|
            beside, alone = [threads, "0"].map { |count| runs.map { _1[count]["requests_per_s"] } }
            Cell.ratio(Statistics.paired_ratio(beside, alone), runs.size)
          end
        end

        def waits(samples, threads, key)
          samples.transform_values { |runs| Cell.median(runs.map { _1[threads][key] }, "µs") }
        end
      end
    end
  end
end
