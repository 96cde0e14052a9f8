# frozen_string_literal: true

# What may watch a program: each arm starts before the work and stops after it, and says what it wrote.
module Arms
  Written = Struct.new(:events, :bytes)

  # Headway, measuring only or recording as well.
  class Headway
    def initialize(mode = nil)
      @mode = mode
    end

    def version = "headway #{::Headway::VERSION}"

    def start(path)
      require "headway"
      ::Headway.start(policy: :observe)
      ::Headway::Recorder.start(file: path, mode: @mode) or raise "nothing records" if @mode
    end

    def stop(path)
      return unless @mode

      ::Headway::Recorder.dump(path) if @mode == :flight
      dropped = ::Headway::Recorder.stats[:dropped]
      ::Headway::Recorder.stop
      events = ::Headway::Trace.open(path).to_h[:processes].first[:events]
      raise "#{dropped} events were dropped" unless dropped.zero? || @mode == :flight

      Written.new(events, File.size(path))
    end
  end

  # Counters only.
  class GVLTools
    METRICS = %i[GlobalTimer LocalTimer WaitingThreads].freeze

    def version = "gvltools #{::GVLTools::VERSION}"

    def start(_path)
      require "gvltools"
      METRICS.each { |metric| ::GVLTools.const_get(metric).enable }
    end

    def stop(_path) = METRICS.each { |metric| ::GVLTools.const_get(metric).disable } && nil
  end

  # A line of JSON for each event.
  class GVLTracing
    def version = "gvl-tracing #{::GvlTracing::VERSION}"

    def start(path)
      require "gvl-tracing"
      ::GvlTracing.start(path)
    end

    def stop(path)
      ::GvlTracing.stop
      Written.new(File.foreach(path).count { |line| line.include?('"ph": "') }, File.size(path))
    end
  end

  # A sampling profiler that records GVL events as well.
  class Vernier
    def version = "vernier #{::Vernier::VERSION}"

    def start(path)
      require "vernier"
      ::Vernier.start_profile(out: path)
    end

    def stop(_path) = ::Vernier.stop_profile && nil
  end

  # Nobody watches.
  class None
    def version = "nothing"
    def start(_path) = nil
    def stop(_path) = nil
  end

  ALL = {
    "nothing" => None.new,
    "headway observe" => Headway.new,
    "headway stream" => Headway.new(:stream),
    "headway flight" => Headway.new(:flight),
    "gvltools" => GVLTools.new,
    "gvl-tracing" => GVLTracing.new,
    "vernier" => Vernier.new,
    "nothing, again" => None.new # how much of what the others differ by is the machine's
  }.freeze
end
