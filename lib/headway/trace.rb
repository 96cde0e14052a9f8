# frozen_string_literal: true

require_relative "base"

module Headway
  # What one or several trace files say: who ran, who waited and because of whom. The files, each of one process, are brought to
  # one clock; times count from the start of the earliest process.
  #
  #   trace = Headway::Trace.open("out.headway", "out.4242.headway")
  #   trace.to_h[:threads].each { |thread| puts "#{thread[:name]} waited #{thread[:ready_s]} s" }
  #
  # A file that is damaged, cut short or still being written is read up to there, and its process says so under `:damage`.
  # docs/trace-format.md describes the files.
  class Trace
    class Error < Headway::Error; end

    # Why a trace may have no end, said of its process.
    ENDLESS = "killed, called exit!, became another program or goes on, or the file was cut"

    if Headway.supported?
      Native = Headway::Native::Traces
      private_constant :Native
    end

    # The class has to be there already: its constant is autoloaded.
    require_relative "trace/analysis"
    require_relative "trace/directory"
    require_relative "trace/events"
    require_relative "trace/title"

    # @param paths [Array<String, #to_path>]
    # @param lanes [Boolean] whether the lanes will be wanted too: one pass then does for both
    # @raise [Error] when nothing of a file can be read; its message names the file, what is wrong, and where
    def self.open(*paths, lanes: false)
      raise ArgumentError, "no trace file given" if paths.empty?
      raise Error, "traces can't be read here: #{Headway.unsupported_reason}" unless Headway.supported?

      new(paths.map { |path| File.path(path) }, lanes)
    end

    # @param path [String, #to_path]
    # @return [String, nil] why nothing of this file can be read; nil: something can
    def self.fault(path)
      answer = Native.check(File.path(path))
      reason(answer) unless answer.is_a?(Integer)
    end

    # @param damage [String, nil] what is wrong with a file
    # @return [Boolean] only that it has no end, be it between two blocks or in one: see {ENDLESS}
    def self.endless?(damage) = damage.to_s.start_with?("cut short")

    # @return [Array<String>]
    attr_reader :paths

    # @return [Hash] the analysis; see docs/trace-format.md, *What a trace says*
    def to_h
      @to_h ||= analysis.to_h
    end

    # @return [Array<Hash>] `{ thread:, start_s:, segments:, bytes: }` for each thread. The bytes hold the segments, one after the
    #   other without gaps from start_s on, as LEB128 varints of (duration in units of 100 ns << 2 | state): 0 running, 1 ready,
    #   2 suspended, 3 not there.
    def lanes
      analysis(lanes: true).lanes
    end

    # @return [Array<Hash>] the same for each process's GC, `{ process:, start_s:, segments:, bytes: }`: 0 none, 1 GC
    def gc_lanes
      analysis(lanes: true).gc_lanes
    end

    # All events in the order of their times, read from the files while one goes through them.
    #
    # @param process [Integer, nil] the id of the only process wanted; each has a file, which stays open until it is read
    # @return [Enumerator<Array>] process's id, time in seconds, thread's number, kind (a Symbol) and value: of marks the name, of
    #   :blame the stack's id for {#stack}, of :known the state (0 suspended, 1 ready, 2 running)
    def events(process = nil)
      origins = analysis.origins_ns
      ids = process ? [process] : @files.each_index
      Enumerator.new do |yielder|
        sources = ids.map { |id| Events::Source.new(id, open_file(id), origins[id]) }
        Events.new(sources).each { |event| yielder << event }
      end
    end

    # @return [Array<Array(String, String, Integer)>] method, file and line of each of the stack's frames, leaf first
    def stack(process, id)
      @stacks ||= {}
      (@stacks[process] ||= open_file(process).close).stack(id)
    end

    def self.reason(answer)
      _, offset, what = answer
      "#{what}#{" (at byte #{offset})" if offset.positive?}"
    end
    private_class_method :new, :reason

    # @api private
    def initialize(paths, lanes)
      @paths = paths.freeze
      @want_lanes = lanes
      # A file may grow: what is there now is what every later pass reads.
      @files = paths.map { |path| [path, size_of(path)].freeze }.freeze
    end

    private

    # It may have gone since.
    def open_file(process)
      path, size = @files.fetch(process)
      Native::File.new(path, size)
    rescue IOError => error
      raise Error, "#{path}: #{error.message}"
    end

    def size_of(path)
      answer = Native.check(path)
      answer.is_a?(Integer) ? answer : refuse(path, answer)
    end

    def analysis(lanes: @want_lanes)
      return @analysis if @analysis && (@analysis.lanes? || !lanes)

      answer = Native.analyse(@files, lanes)
      refuse(@paths[answer.first], answer) if answer.is_a?(Array)
      @analysis = Analysis.new(answer, @paths.map { |path| File.basename(path) })
    end

    def refuse(path, answer)
      raise Error, "#{path}: #{self.class.send(:reason, answer)}"
    end
  end
end
