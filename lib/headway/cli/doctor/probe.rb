# frozen_string_literal: true

module Headway
  module CLI
    module Doctor
      # The small experiments of the doctor. Each takes well under two seconds.
      module Probe
        NAP_S = 0.002
        # A write to /dev/null is about the cheapest thing that gives the GVL up and takes it again: ready, running and
        # suspended, one event each.
        EVENTS_A_ROUND = 3
        ROUNDS = 2000
        private_constant :NAP_S, :EVENTS_A_ROUND, :ROUNDS

        class << self
          # How late a thread wakes from a nap while another one computes.
          #
          # @param naps [Integer]
          # @return [Array<Float>] seconds
          def lateness(naps)
            beside_computing_thread do
              Array.new(naps) do
                start = now
                sleep(NAP_S)
                [now - start - NAP_S, 0.0].max
              end
            end
          end

          # What the hooks add to giving up the GVL and taking it again when nobody competes. Rounds with and without
          # hooks alternate, so that a machine that changes speed meanwhile changes both.
          #
          # @param pairs [Integer]
          # @return [Array<Float>] nanoseconds an event
          def event_cost_ns(pairs)
            File.open(File::NULL, "w") do |sink|
              rounds_s(sink)
              Array.new(pairs) do
                without = rounds_s(sink)
                with = with_hooks { rounds_s(sink) }
                (with - without) * 1e9 / (ROUNDS * EVENTS_A_ROUND)
              end
            end
          end

          # @return [Hash] a figure as in every --json: median, min, max, n
          def figure(values, digits)
            sorted = values.sort
            middle = (sorted[(sorted.size - 1) / 2] + sorted[sorted.size / 2]) / 2.0
            { "median" => middle.round(digits), "min" => sorted.first.round(digits),
              "max" => sorted.last.round(digits), "n" => sorted.size }
          end

          private

          def beside_computing_thread
            ending = false
            computing = Thread.new do
              count = 0
              count += 1 until ending
            end
            sleep(0.01) # long enough to be seen as CPU-bound
            yield
          ensure
            ending = true
            computing&.join
          end

          def with_hooks
            Headway.start(policy: :observe)
            yield
          ensure
            Headway.stop
          end

          def rounds_s(sink)
            start = now
            ROUNDS.times { sink.syswrite("x") }
            now - start
          end

          def now
            Process.clock_gettime(Process::CLOCK_MONOTONIC)
          end
        end
      end
    end
  end
end
