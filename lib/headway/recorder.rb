# frozen_string_literal: true

require_relative "processors"
require_relative "recorder/options"
require_relative "recorder/alarm"
require_relative "recorder/loops"

module Headway
  # Records who ran, who waited and because of whom, into a trace file.
  #
  #   Headway::Recorder.start(file: "out.headway")                          # streams everything to the file
  #   Headway::Recorder.start(file: "out.headway", mode: :flight,           # keeps the last million events ...
  #                           wait_threshold: 0.5, on_signal: "PROF")       # ... and writes them when something happens
  #
  # A forked child writes a file of its own: out.PID.headway. Given a directory, each process writes HOST-PID-TIME.headway there, so
  # that a fleet may share one.
  module Recorder
    NOTHING = { mode: nil, file: nil, events: 0, dropped: 0, bytes: 0, folded: 0, slots: 0 }.freeze
    private_constant :NOTHING

    class << self
      # Starts recording, after it has ended a recording under way; starts Headway too, with policy observe, if it isn't.
      #
      # @param given [Hash]
      # @option given [String, nil] :file where the trace goes; in mode flight, where {stop} and the end of the process dump to. A directory, or
      #   a name with %h (host), %p (process id) or %t (time), see {FileName}
      # @option given [Integer] :events the ring's size, 24 bytes each; rounded up to a power of two; 100,000,000 at most
      # @option given [:stream, :flight, nil] :mode default: stream with a file, else flight
      # @option given [Numeric, nil] :seconds mode flight leaves out of a dump what is older than so many seconds, 0.001 to 86,400
      # @option given [Numeric, nil] :wait_threshold seconds, 0.001 to 3,600; mode flight dumps when a wait has lasted that long, while
      #   it lasts. A native thread does it, which needs no GVL
      # @option given [String, nil] :on_signal mode flight dumps at this signal, such as "PROF"
      # @return [Boolean] whether it records now; {Headway.notices} says why when it doesn't
      # @raise [SettingError] a value that means nothing
      def start(**given)
        options = Options.check(**given)
        return false unless Headway.started? || Headway.start(policy: :observe)

        finish
        reason = Native.record_start(options.file, options.flight?, options.events, nanoseconds(options.wait_threshold),
                                     nanoseconds(options.seconds), about)
        return refuse(options, reason) if reason

        stop_at_exit
        Alarm.start(options)
        true
      end

      # Stops. What was recorded is in the file then; mode flight dumps to its file, if it has one. Where it can't, {Headway.notices}
      # says why, and the recording goes on, so that it may be dumped elsewhere; the next stop ends it all the same.
      #
      # @return [Boolean] whether it was recording
      def stop = end_recording { Native.record_keep }

      # As {stop}, but ends the recording, whatever becomes of the dump.
      #
      # @return [Boolean] whether it was recording
      # @api private
      def finish = end_recording { false }

      # Writes what the flight recorder holds, and goes on recording.
      #
      # @param path [String, nil] default: the file given to {start}, else headway-PID.headway here
      # @return [String, nil] the path; nil: HEADWAY=0 switches all off
      # @raise [Error] no flight recorder runs, or the file can't be written, or isn't to be: it is there and is no trace
      def dump(path = nil)
        return if Settings.disabled?

        path = Native.record_path || "headway-#{Process.pid}.headway" if path.nil?
        path = FileName.absolute(path)
        done = Native.record_dump(path)
        raise Error, "no dump to #{path}: #{done}" if done.is_a?(String)

        path
      end

      # @return [Boolean]
      def recording?
        Native.recording?
      end

      # @return [Hash] mode, file, events recorded, events dropped, bytes written, stacks folded, slots of the ring
      def stats
        flight, events, dropped, bytes, folded, slots = Native.record_state
        return NOTHING if slots.nil?

        { mode: flight ? :flight : :stream, file: Native.record_path, events: events, dropped: dropped, bytes: bytes,
          folded: folded, slots: slots }
      end

      # @return [String, nil] what ended a recording before its time
      def failure
        path, why = Native.record_failure
        path && "recording stopped: #{path}: #{why}"
      end

      # @return [String, nil] why there is no dump of a wait that took too long
      def undumped
        path, why = Native.record_undumped
        path && "no dump to #{path}: #{why}"
      end

      # Registered as early as recording may start, so it comes after the program's own.
      #
      # @return [void]
      def stop_at_exit
        @at_exit ||= at_exit { finish } && true
      end

      # A dump nobody called for: says what goes wrong instead of raising it.
      #
      # @return [String, nil] the path
      def try_dump(path)
        dump(path)
      rescue Error, SettingError => error
        Notices.add(error.message)
        nil
      end

      private

      def end_recording
        flight, = Native.record_state
        unwritten = flight && Native.record_path && !try_dump(Native.record_path)
        if unwritten && yield
          Notices.add("the recording goes on: dump it to another file; the next stop ends it")
          return true
        end
        Alarm.stop
        return false if flight.nil?

        stopped = Native.record_stop
        Loops.close
        [failure, undumped].compact.each { |text| Notices.add(text) }
        stopped
      end

      def refuse(options, reason)
        Notices.add("recording is off: #{[options.file, reason].compact.join(": ")}")
        false
      end

      def nanoseconds(seconds)
        (seconds.to_f * 1e9).round
      end

      def about
        preempt = Platform.many_to_many? ? "none" : Headway.preempt.to_s
        quota = Quota.find
        [RUBY_VERSION, VERSION, Headway.policy.to_s, preempt, command, Processors.count(quota), quota&.path.to_s]
      end

      # Where no locale is set, words are bytes, and may not go together with one the program set.
      def command
        [$PROGRAM_NAME, *ARGV].map { |word| word.to_s.b }.join(" ").force_encoding(Encoding::UTF_8).scrub("?")
      end
    end
  end
end
