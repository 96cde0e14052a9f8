# frozen_string_literal: true

require_relative "../advise"

module Headway
  module Advise
    # The settings worth a look: thread counts and process counts in growing steps, with the slices and policies that differ. Of a server
    # that has one thread for each process, more of these than there are cores, too: while one waits, another has its core.
    class Candidates
      THREADS = [1, 2, 3, 5, 8, 12, 16, 24, 32, 48, 64].freeze
      PROCESSES = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64].freeze
      SCHEDULING = [[:stock, Settings::VM_SLICE_MS], [:stock, 10], [:quantum, 10], [:fair, 100]].freeze
      # Before it every slice is the VM's own.
      SLICES_SINCE = Gem::Version.new("3.4")
      private_constant :THREADS, :PROCESSES, :SCHEDULING, :SLICES_SINCE

      # @param workload [Workload]
      # @param rate [Float, nil] of open arrivals
      # @param processes_most [Integer, nil] as memory allows; nil: one a core, with one thread each any number
      # @param threads_most [Integer, nil]
      def initialize(workload, rate:, processes_most: nil, threads_most: nil, cores: nil)
        @workload = workload
        @current = Predict.recorded(workload).with(rate: rate)
        one_thread = Predict::Server.of(workload)&.one_thread?
        cores ||= workload.cores
        @processes = [*PROCESSES, @current.processes].uniq
        @processes.select! { |count| count <= [cores, @current.processes].max } unless one_thread
        @processes.select! { |count| count <= processes_most } if processes_most
        @processes = [1] if @processes.empty?
        @threads = one_thread ? [@current.threads] : [*THREADS, @current.threads].uniq
        @threads.select! { |count| count <= threads_most } if threads_most
        @bounded = !processes_most.nil? || !threads_most.nil?
        @current_allowed = @threads.include?(@current.threads) && @processes.include?(@current.processes)
      end

      # @return [Predict::Setting] as recorded, with the rate asked for
      attr_reader :current

      # @return [Boolean] whether less is allowed than the cores would take
      def bounded? = @bounded

      # @return [Boolean] whether the current one is within what was given
      def current_allowed? = @current_allowed

      # @return [Array<Predict::Setting>] the current one too, when it is allowed
      def settings
        grounds = Predict::Grounds.new(@workload)
        all = @processes.product(@threads, scheduling).map do |processes, threads, (policy, quantum_ms)|
          @current.with(processes:, threads:, policy:, quantum_ms:)
        end
        all.reject { |setting| grounds.refusal_of(setting) }
      end

      private

      def scheduling
        process = @workload.typical_process
        slices = Gem::Version.correct?(process[:ruby]) && Gem::Version.new(process[:ruby]) >= SLICES_SINCE
        known = SCHEDULING.reject { |policy, quantum_ms| policy == :stock && quantum_ms != Settings::VM_SLICE_MS && !slices }
        known.select! { |policy,| policy == :stock } if process[:preempt] == "none" # M:N threads
        (known + [[@current.policy, @current.quantum_ms]]).uniq { |policy, quantum_ms| [policy, quantum_ms.to_f] }
      end
    end
  end
end
