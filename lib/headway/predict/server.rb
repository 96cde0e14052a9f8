# frozen_string_literal: true

require_relative "../predict"

module Headway
  module Predict
    # A server, or what does jobs: how it is told, its configuration's file and the option that names it, the lines of its counts there,
    # and the words of its command line that overrule these.
    #
    # @!attribute [r] threads
    #   @return [Array, nil] how the count is found in the file, and how it is written; nil: each process has one, whatever one sets
    # @!attribute [r] processes
    #   @return [Array, nil] the same of processes; nil: no file has it
    Server = Data.define(:name, :command, :file, :option, :threads, :processes, :words) do
      def initialize(name:, command:, file: nil, option: nil, threads: nil, processes: nil, words: {}) = super

      # @param workload [Workload]
      # @return [Server, nil] what its typical process is
      def self.of(workload)
        command = workload.typical_process[:command].to_s
        self::ALL.find { |one| one.command.match?(command) }
      end

      # @return [Boolean] whether a process does one thing at a time
      def one_thread? = threads.nil?
    end

    class Server
      UNICORNS = [/\A\s*worker_processes\b[^\r\n]*/, ->(count) { "worker_processes #{count}" }].freeze
      private_constant :UNICORNS

      ALL = [
        new(name: "Puma", command: /\bpuma\b|\brails\s+s(erver)?\b/i, file: "config/puma.rb", option: /-C|--config/,
            threads: [/\A\s*threads\b[^\r\n]*/, ->(count) { "threads #{count}, #{count}" }],
            processes: [/\A\s*workers\b[^\r\n]*/, ->(count) { "workers #{count == 1 ? 0 : count}" }],
            words: { threads: [/(?<=\s)(?:-t ?|--threads[ =])\K\d+(?::\d+)?(?!\S)/, ->(count) { "#{count}:#{count}" }],
                     processes: [/(?<=\s)(?:-w ?|--workers[ =])\K\d+(?!\S)/, ->(count) { count == 1 ? "0" : count.to_s }] }),
        new(name: "Sidekiq", command: /\bsidekiq\b/i, file: "config/sidekiq.yml", option: /-C|--config/,
            threads: [/\A\s*:?concurrency:[^\r\n]*/, ->(count) { ":concurrency: #{count}" }],
            words: { threads: [/(?<=\s)(?:-c ?|--concurrency[ =])\K\d+(?!\S)/, ->(count) { count.to_s }] }),
        new(name: "Unicorn", command: %r{\A(?:\S*/)?unicorn(?:_rails)?(?= |\z)}, file: "config/unicorn.rb", option: /-c|--config-file/, processes: UNICORNS),
        new(name: "Pitchfork", command: %r{\A(?:\S*/)?pitchfork(?= |\z)}, file: "config/pitchfork.rb", option: /-c|--config-file/, processes: UNICORNS),
        new(name: "Resque", command: %r{\bresque:work(?:ers)?\b|\Aresque-\d|(?:\A|/)resque work\b}),
        new(name: "Delayed Job", command: /\bdelayed_job\b|\bjobs:work(?:off)?\b/)
      ].freeze
    end
  end
end
