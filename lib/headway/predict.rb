# frozen_string_literal: true

require_relative "workload"

module Headway
  # What another number of threads or processes, another quantum or policy would do to a recorded workload.
  module Predict
    # One configuration: rate is of open arrivals, in requests a second over all processes; nil: each thread takes the next
    # request at once.
    Setting = Data.define(:processes, :threads, :policy, :quantum_ms, :rate) do
      # @return [Integer] of all processes
      def all_threads = processes * threads

      # @return [String] such as "2 x 5 fair, quantum 100 ms"
      def to_s = "#{processes} x #{threads} #{policy}, quantum #{Predict.number(quantum_ms)} ms"

      # @return [Hash] of the JSON object
      def to_json_h
        { "processes" => processes, "threads" => threads, "policy" => policy.to_s, "quantum_ms" => quantum_ms, "rate_per_s" => rate }
      end
    end

    autoload :Span, File.expand_path("predict/span", __dir__)
    autoload :Parallel, File.expand_path("predict/parallel", __dir__)
    autoload :Figures, File.expand_path("predict/figures", __dir__)
    autoload :Server, File.expand_path("predict/server", __dir__)
    autoload :Grounds, File.expand_path("predict/grounds", __dir__)
    autoload :Grid, File.expand_path("predict/grid", __dir__)
    autoload :Document, File.expand_path("predict/document", __dir__)
    autoload :Validation, File.expand_path("predict/validation", __dir__)
    autoload :Plot, File.expand_path("predict/plot", __dir__)

    # Threads are busy for this share of their time when each takes the next request at once.
    CLOSED_FROM = 0.9
    private_constant :CLOSED_FROM
    # What a trace can't tell.
    CLOSED = "clients that wait for their answers come no faster than they get them (--rate closed tries it)"

    module_function

    # @param workload [Workload]
    # @return [Float, nil] the rate of open arrivals it was recorded at; nil: it was closed
    def recorded_rate(workload)
      workload.marked? && workload.busy < CLOSED_FROM ? workload.rate : nil
    end

    # @param workload [Workload]
    # @return [Setting] as recorded
    def recorded(workload) = Setting.new(**workload.setting, rate: recorded_rate(workload))

    # @param rate [Float] requests a second
    # @return [String] with one digit after the point where it says something, or of less than one two
    def per_second(rate) = rate >= 1 || rate.zero? ? number(rate.round(1)) : format("%.2g", rate)

    # @return [String] without a fraction that says nothing
    def number(value) = value == value.to_i ? value.to_i.to_s : value.to_s
  end
end
