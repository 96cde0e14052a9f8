# frozen_string_literal: true

require_relative "base"
require_relative "forks"
require_relative "notices"
require_relative "own_thread"
require_relative "reason"
require_relative "integrations/guard"
require_relative "integrations/options"
require_relative "autotune/collector"
require_relative "autotune/knob"
require_relative "autotune/search"

module Headway
  # Tunes this process while it runs, in small steps, each of which must prove itself on the process's own requests and jobs
  # ({Work}): docs/autotune.md. Off unless it is started, and where HEADWAY_AUTOTUNE is 0.
  #
  #   Headway::Autotune.start                                           # the quantum, 10 to 200 ms
  #   Headway::Autotune.start(knobs: { workers: pool }, window: 30)     # and whatever has value, value= and range
  #   Headway::Autotune.current.history                                 # what was tried, and what came of it
  class Autotune
    QUANTUM_MS = (10..200)
    # Looks at backlogs in a window.
    LOOKS = 20
    STOP_S = 2
    # A look that comes later than half a window, and than this, was kept off by a machine that slept or a process that was stopped.
    STOOD_STILL_S = 2
    WINDOWS_CHECK = lambda do |name, value|
      value.is_a?(Integer) && value >= 5 or raise SettingError, "#{name} is #{value.inspect[0, 60]}: give a whole number from 5, such as 8"
    end
    SAMPLES_CHECK = lambda do |name, value|
      value.is_a?(Integer) && value >= 20 or raise SettingError, "#{name} is #{value.inspect[0, 60]}: give a whole number from 20, such as 100"
    end
    QUANTUM_CHECK = lambda do |name, value|
      bounds = Settings::QUANTUM_RANGE_MS
      inside = value.is_a?(Range) && [value.begin, value.end].all? { |bound| bound.is_a?(Numeric) && bounds.cover?(bound) } &&
               value.begin <= value.end
      inside || value == false or
        raise SettingError, "#{name} is #{value.inspect[0, 60]}: give a range of milliseconds, such as 10..200, or false to leave it alone"
    end
    KNOBS_CHECK = lambda do |name, value|
      value.is_a?(Hash) or raise SettingError, "#{name} is #{value.inspect[0, 60]}: give a Hash of names and objects with value, value= and range"
      value.each { |knob, actuator| Knob.new(knob, actuator) }
    end
    CHECKS = { window: Integrations::Options::SECONDS, windows: WINDOWS_CHECK, samples: SAMPLES_CHECK, quantum_ms: QUANTUM_CHECK,
               knobs: KNOBS_CHECK, log: Integrations::Options::CALLABLE }.freeze
    OPTIONS = Integrations::Options.new("Headway::Autotune.start", CHECKS, start: false)
    private_constant :LOOKS, :STOP_S, :STOOD_STILL_S, :WINDOWS_CHECK, :SAMPLES_CHECK, :QUANTUM_CHECK, :KNOBS_CHECK, :CHECKS, :OPTIONS

    private_class_method :new

    # @api private
    def initialize(window: 10, windows: 5, samples: 100, quantum_ms: QUANTUM_MS, knobs: {}, log: nil)
      @broken = false
      @window = window
      @windows = windows
      @samples = samples
      @log = log || ->(line) { warn(line) }
      @knobs = knobs.map { |name, actuator| Knob.new(name, actuator) }
      raise SettingError, "knobs has quantum_ms, which Headway's own is called: give another name" if quantum_ms && knobs.key?(:quantum_ms)

      @knobs.unshift(Knob.new(:quantum_ms, Quantum.new(quantum_ms))) if quantum_ms
      raise SettingError, "quantum_ms is false and there are no knobs: give something to tune" if @knobs.empty?
    end

    # @return [Array<Step>] what was tried in this process, the latest last
    def history = @search.history

    # @return [Hash{Symbol => Numeric}] the setting that has proved best so far
    def base = @search.base

    # @return [Boolean]
    def running? = @thread&.alive? || false

    # @api private
    # @return [Autotune] itself
    def run
      @search = Search.new(knobs: @knobs, values: @search&.base || values, windows: @windows, samples: @samples) { |line| say(line) }
      collector = Collector.new
      wake = @wake = Queue.new
      Work.unsubscribe(@subscription) if @subscription
      @subscription = Work.subscribe_masked { |work| collector.add(work) }
      @thread = OwnThread.start { tune(collector, wake) }
      @thread.name = "headway autotune"
      @thread.thread_variable_set(:fork_safe, true) # spares a preloading Puma its warning: a child starts its own
      @thread.report_on_exception = false
      self
    end

    # @api private
    # @return [void]
    def go_on
      run unless @broken
    end

    # @api private
    # @return [void]
    def stop
      @wake.close
      return if @thread == Thread.current

      @thread.join(STOP_S) || @thread.kill # a knob that hangs is its owner's
    end

    private

    # Whatever goes wrong in here, a knob's own code included, ends the tuning and nothing else.
    def tune(collector, wake)
      set(base) # a forked child may have come into a trial of its parent's
      while wait(wake)
        window = collector.close(@backlogs)
        set(@search.take(window, values)) unless @stood_still
      end
      set(@search.stop(values))
    rescue Exception => error # rubocop:disable Lint/RescueException
      @broken = true
      Notices.add("autotune ended: #{Reason.fault(error)}")
      restore
    ensure
      Work.unsubscribe(@subscription)
    end

    # @return [Boolean] whether the window went by, and it wasn't told to stop
    def wait(wake)
      @backlogs = []
      @stood_still = false
      LOOKS.times do
        asked = now
        wake.pop(timeout: @window / LOOKS.to_f)
        return false if wake.closed?

        @stood_still ||= now - asked > [@window / 2.0, STOOD_STILL_S].max

        backlog&.then { |waiting| @backlogs << waiting }
      end
      true
    end

    def backlog = @knobs.filter_map(&:backlog).then { |backlogs| backlogs.sum unless backlogs.empty? }

    def values = @knobs.to_h { |knob| [knob.name, knob.value] }

    def set(wanted)
      @knobs.each { |knob| knob.value = wanted[knob.name] if knob.value != wanted[knob.name] }
    end

    # Each for itself: one of them may be what is broken.
    def restore
      @knobs.each do |knob|
        Integrations::Guard.guard("autotune's return to #{knob.name} #{base[knob.name]}") { knob.value = base[knob.name] }
      end
    end

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

    def say(line) = @log.call("headway: autotune: #{line}")
  end
end
