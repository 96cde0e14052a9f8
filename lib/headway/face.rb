# frozen_string_literal: true

require_relative "notices"
require_relative "recorder"
require_relative "stats"
require_relative "thread_handle"
require_relative "control"
require_relative "integrations/puma_races"

# The public face, over the native extension.
module Headway
  @settings = Settings.resolve(env: {})
  @starts = 0
  # What code has set before the start.
  @set = {}

  class << self
    # Starts scheduling, or changes the settings when started already. What isn't given stays as it is: as started before, by a server's
    # configuration for one, or as set since the last stop. Else the environment decides, then the defaults; HEADWAY_POLICY and
    # HEADWAY_PREEMPT override arguments.
    #
    # @param policy [:fair, :quantum, :observe, nil]
    # @param quantum_ms [Numeric, nil] 1 to 4,294,967; default 100, or RUBY_THREAD_DEFAULT_QUANTUM_MS
    # @param preempt [:signal, :poll, nil]
    # @param record [String, nil] a trace file to stream to: see {Recorder.start}
    # @return [Boolean] whether Headway is at work; {notices} says why when it isn't
    # @raise [SettingError] a value, of an argument or in the environment, that means nothing
    def start(policy: nil, quantum_ms: nil, preempt: nil, record: nil)
      return off if Settings.disabled?

      control = !Control.off?
      given = { policy: policy, quantum_ms: quantum_ms, preempt: preempt }.compact
      started = configure(Settings.resolve(**(started? ? settings.to_h : @set), **given))
      Integrations::PumaRaces.watch if started
      Control.open if started && control
      Recorder.start(file: record) if started && record
      started
    end

    # Stops: no hook, signal handler or native thread is left at work. (In a forked child whose parent had started Headway the
    # hooks stay, and do nothing.)
    #
    # @return [Boolean] whether it was started
    def stop
      Autotune.stop
      Control.close # first, so that no client starts another recording
      Recorder.finish
      Integrations::PumaRaces.unwatch
      @set = {}
      stopped = Native.stop
      Metrics::Reporter.report_last unless autoload?(:Metrics) || Metrics.autoload?(:Reporter) # the next start begins at zero
      stopped
    end

    # @return [Boolean]
    def started?
      Native.started?
    end

    # @return [Integer] how often Headway was started: each time its figures begin anew
    # @api private
    attr_reader :starts

    # @return [:fair, :quantum, :observe] in force, or of the last start
    def policy
      settings.policy
    end

    # @param value [:fair, :quantum, :observe]
    # @raise [SettingError]
    def policy=(value)
      change(policy: Settings.policy(value))
    end

    # @return [:signal, :poll]
    def preempt
      Native.signal_lost? ? :poll : settings.preempt
    end

    # @return [Numeric] milliseconds a batch thread may hold the GVL while another one waits; under `fair` three of them in a turn for
    #   who has computed for less than a second
    def quantum_ms
      settings.quantum_ms
    end

    # @param value [Numeric] milliseconds, 1 to 4,294,967
    # @raise [SettingError]
    def quantum_ms=(value)
      change(quantum_ms: Settings.quantum_ms(value))
    end

    # @param thread [Thread]
    # @return [ThreadHandle] what Headway knows of the thread, and its own quantum
    def thread(thread = Thread.current)
      ThreadHandle.new(thread)
    end

    # What the current thread did since the start; two of them tell what it did in between. Costs some hundred nanoseconds.
    #
    # @return [Array(Float, Float, Float), nil] seconds running, ready and suspended; nil: Headway doesn't know the thread
    def thread_account
      Native.account
    end

    # Runs the block with the current thread as a batch thread: under `fair` it makes way for interactive threads from the start (for 2 ms
    # at the most it doesn't where its pieces are of a millisecond, as they end anyway), and until it first blocks it goes ahead of no thread
    # that has computed for less than a second. Of such blocks that a thread is in, in whichever of its fibers, the one entered last counts.
    # @return what the block returns
    def batch(&block)
      Native.in_class(Native::BATCH, &block)
    end

    # Runs the block with the current thread as an interactive one, however long it computes: under `fair` it makes way as on stock Ruby
    # only, for the VM's own time slice.
    # @return what the block returns
    def interactive(&block)
      Native.in_class(Native::INTERACTIVE, &block)
    end

    # Gives way if somebody waits for the GVL; costs next to nothing when nobody does.
    # @return [Boolean] whether it gave way
    def pass
      Native.pass
    end

    # Runs the block on a worker thread while the fiber waits, so that the event loop goes on; without a scheduler only this thread
    # waits. See {OffloadPool#run}.
    # @param deadline [Numeric, nil] seconds
    # @return what the block returns
    # @raise as {OffloadPool#run}; what the block raises
    def offload(deadline: nil, &block)
      OffloadPool.default.run(deadline: deadline, &block)
    end

    # @!method mark(name)
    #   Records a span with the block, an instant without one. Costs next to nothing when nothing records, and never raises.
    #   @param name [String, Symbol] some 4,000 different ones are kept apart
    #   @return what the block returns

    # @return [Hash] since the start: times in seconds; wait: from ready to running; hold: from running to suspended.
    #   Of each living thread, waited_for: whom it waited for, as [{ name:, number:, seconds: }, …], name nil: nobody held the GVL;
    #   caused: what others waited for it, nil where too many threads live to tell them apart. Threads that ended are a row for each
    #   name, of so many (count). All keys: docs/json.md. blame: the stacks that held the GVL meanwhile, see {Stats.blame}
    def stats
      Stats.new(self).to_h
    end

    # Measures how much of its time the block needs no GVL, so how many threads would pay. It is called over and over, by several
    # threads at once, for some seconds.
    #
    # @param options [Hash] see {Estimate.call}
    # @return [Estimate::Result]
    # @raise [Estimate::Error] when it can't be measured; what the block raises is raised
    def yield_fraction(**options, &block)
      Estimate.call(block, **options)
    end

    # @return [Array<String>] why something is off
    def notices
      Notices.all
    end

    private

    def off
      Notices.add(Settings.odd_switch) if Settings.odd_switch
      false
    end

    # They may also be changed from outside, through the control socket.
    def settings
      @settings = Control.changes || @settings
    end

    def change(**changes)
      wanted = Settings.new(*settings.to_a).tap { |settings| changes.each { |name, value| settings[name] = value } }.freeze
      return configure(wanted) if started?

      @set = @set.merge(changes)
      @settings = wanted
    end

    def configure(wanted)
      anew = !started?
      effective = Platform.many_to_many? ? observing(wanted) : wanted
      failure = Native.start(Native::POLICIES.index(effective.policy), Native::PREEMPTS.index(effective.preempt),
                             (effective.quantum_ms * 1_000_000).round, Settings.pull?)
      if failure
        Notices.add("Headway is off: #{failure}")
        return false
      end
      @settings = effective
      @starts += 1 if anew
      true
    end

    # Under M:N scheduling a Ruby thread has no native thread of its own that a signal could be sent to.
    def observing(wanted)
      return wanted if wanted.policy == :observe

      Notices.add("RUBY_MN_THREADS=#{ENV["RUBY_MN_THREADS"]}: Headway only observes under M:N scheduling")
      Settings.new(:observe, wanted.quantum_ms, wanted.preempt).freeze
    end
  end
end
