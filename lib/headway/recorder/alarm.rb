# frozen_string_literal: true

require_relative "../own_thread"

module Headway
  module Recorder
    # What makes the flight recorder dump by itself: a signal, or somebody who noticed something. Each dump gets a file of its own:
    # out.signal-1.headway, out.request-1.headway. (A wait that takes too long is the native extension's to notice: core/watch.c.)
    module Alarm
      # A program that always waits too long must not spend its time dumping. (core/watch.c has the same of its own.)
      MOST_DUMPS = 10
      PAUSE_S = 5
      private_constant :MOST_DUMPS, :PAUSE_S

      class << self
        # @param options [Options]
        # @return [void]
        def start(options)
          @options = options
          listen(options.on_signal) if options.on_signal
        end

        # @return [void]
        def stop
          @options = nil
          give_back(@signal) if @signal
          @signal = @previous = @handler = nil
        end

        # Dumps on a thread of its own, so that whoever noticed something isn't held up; now and then, however often it is asked.
        #
        # @param why [String]
        # @return [Boolean] whether it will
        def ring(why)
          now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
          @rung = [] unless @rung_in == Process.pid
          @rung_in = Process.pid
          return false if @rung.size >= MOST_DUMPS || (@rung.any? && now < @rung.last + PAUSE_S) || Recorder.stats[:mode] != :flight

          @rung << now
          OwnThread.start { dump(why) }.name = "headway recorder"
          true
        end

        private

        # Ruby and the system keep some signals for themselves.
        def listen(signal)
          @handler = proc { dump("signal") }
          @previous = trap(signal, @handler)
          @signal = signal
        rescue ArgumentError, SystemCallError => error
          Notices.add("no dump on a signal: #{error.message}")
        end

        # Unless the program has taken it meanwhile. Our handler in between, not the one before: that one may end the process.
        def give_back(signal)
          found = trap(signal, @handler) # nil: it was ignored
          trap(signal, found.equal?(@handler) ? @previous : found)
        end

        def dump(why)
          Recorder.try_dump(Native.record_next_path(Native.record_path || "headway-#{Process.pid}.headway", why))
        end
      end
    end
  end
end
