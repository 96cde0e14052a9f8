# frozen_string_literal: true

# What RUBYOPT loads into every Ruby under `headway run`. Any Ruby may get here, JRuby and Ruby 2 too, in any state: it
# must never break the program it is loaded into. Keep to syntax that Ruby 2.0 parses.

module Headway
  # Starts Headway in a program that doesn't know about it.
  module Autostart
    # These become another program: in this process, under its name, or by exec.
    BUNDLERS = %w[bundle bundler].freeze
    # Package tools say nothing of themselves when they are not the command that was run.
    TOOLS = ["gem", *BUNDLERS].freeze
    # A trace of more is worth something, and takes time to read.
    SLIGHT_BYTES = 1_000_000
    private_constant :BUNDLERS, :SLIGHT_BYTES

    class << self
      # @return [void]
      def call
        return if ENV["HEADWAY"] == "0"

        require_relative "platform"
        require_relative "settings"
        require_relative "version"
        require_relative "copies" # where this one does nothing, too, another one's files are not to be laid over these
        return say_once("is off: #{Settings.odd_switch}") if Settings.disabled?
        return say_once("does nothing here: #{Platform.reason}") if Platform.reason

        load_headway
        # Before anything the program registers: at_exit blocks run last in, first out.
        prepare_summary if ENV["HEADWAY_SUMMARY"] == "1"
        return unless Headway.start

        say_slice
        record_program(ENV["HEADWAY_RECORD"]) if ENV["HEADWAY_RECORD"]
      rescue LoadError, StandardError => error
        say_once("does nothing here: #{error.message.lines.first.to_s.chomp}")
      rescue Interrupt
        # Of the program nothing has begun, so nothing of it is to be told or unwound.
        trap("INT", "SYSTEM_DEFAULT")
        Process.kill("INT", Process.pid)
        sleep 1
        exit!(130) # as a shell says it, of a container's first process: that one the system spares
      end

      # Headway.stats counts from now on, and so do these, of which a forked child has its parent's, too.
      #
      # @return [void]
      def start_afresh
        @quota.start_afresh if @quota
        @collected_ns = GC.total_time
      end

      private

      # By absolute path, because under `bundle exec` the gem need not be in the bundle. The last place on the load path
      # leaves the program's own files in front. When the program requires Headway itself, this copy or another one, that finds this
      # one in force, and joins it to the Rails there may be by then.
      def load_headway
        return if Headway.respond_to?(:start)

        lib = File.expand_path("..", __dir__)
        require "rbconfig" # which --disable=gems leaves out
        $LOAD_PATH.push(lib) unless $LOAD_PATH.include?(lib)
        require File.join(lib, "headway", "base")
      end

      # Bundler says so when it is about to load a program, by the name it gives the process. One that execs instead has recorded
      # nothing, which would be a trace beside the program's own.
      def record_program(path)
        return record(path) unless BUNDLERS.include?(File.basename($PROGRAM_NAME))

        renamed = proc do
          begin
            untrace_var(:$0, renamed)
            record(path)
          rescue LoadError, StandardError => error
            say_once("records nothing here: #{error.message.lines.first.to_s.chomp}")
          end
        end
        trace_var(:$0, renamed)
      end

      # The command itself writes the file it was told to. A Ruby it started writes one of its own, as a forked child does.
      def record(path)
        command = Process.pid.to_s == ENV["HEADWAY_RUN_PID"]
        return if !command && TOOLS.include?(File.basename($PROGRAM_NAME))
        return record_beside_others(path) if Headway::Recorder::FileName.unique?(path)

        Headway::Recorder.start(:file => command ? path : own_path(path))
      end

      def own_path(path)
        extension = File.extname(path)
        "#{path[0, path.length - extension.length]}.#{Process.pid}#{extension}"
      end

      # By exec a process may become one program after the other, and their names differ by the time. (Where they don't, the next
      # trace replaces the last.)
      def record_beside_others(path)
        pid, before = ENV["HEADWAY_RECORDED"].to_s.split(" ", 2)
        drop_if_slight(before.to_s) if pid == Process.pid.to_s
        return unless Headway::Recorder.start(:file => path)

        ENV["HEADWAY_RECORDED"] = "#{Process.pid} #{Headway::Recorder.stats[:file]}"
      end

      # What looked for the program, as the command rails does, and then became it: nobody can have waited there.
      def drop_if_slight(trace)
        return unless File.file?(trace) && File.size(trace) <= SLIGHT_BYTES

        File.delete(trace) if Headway::Trace.fault(trace) || Headway::Trace.open(trace).to_h[:threads].size <= 1
      rescue Headway::Error, SystemCallError
        nil # it stays
      end

      def prepare_summary
        require_relative "summary"
        started_in = Process.pid
        @quota = Quota.find
        start_afresh
        Forks.watch(self, :daemons => true)
        at_exit { print_summary(started_in) }
      end

      # One write, so that the summaries of several processes don't mix. Nothing here may change the exit status.
      def print_summary(started_in)
        stats = Headway.stats
        return unless summary_wanted?(stats, started_in)

        cpu_s = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
        summary = Summary.new(stats, :cpu_s => cpu_s, :gc_s => (GC.total_time - @collected_ns) / 1e9, :quota => @quota && @quota.use,
                                     :notices => Headway.notices + untold, :many_to_many => Platform.many_to_many?)
        STDERR.write(summary.to_s(:room => TextWidth.of_terminal(STDERR)))
      rescue IOError, SystemCallError
        nil # stderr is gone
      end

      # A summary is of threads and their waits for the GVL.
      def untold
        return [] if ENV["HEADWAY_RECORD"]

        kinds = []
        kinds << "which requests and jobs waited, and behind what code" unless Headway.autoload?(:Work)
        kinds << "what kept an event loop" if defined?(::Async::Scheduler) || !Headway.autoload?(:FiberScheduler)
        kinds.map { |kind| "#{kind}, a recording tells: --record FILE" }
      end

      # The command itself always prints one, and so does every Ruby it started, package tools excepted. A forked child
      # does when it ran more than one thread: then it is a worker, and otherwise it has nothing to tell.
      def summary_wanted?(stats, started_in)
        return true if Process.pid.to_s == ENV["HEADWAY_RUN_PID"]
        return !TOOLS.include?(File.basename($PROGRAM_NAME)) if Process.pid == started_in

        stats[:threads].inject(0) { |sum, row| sum + row[:count] } > 1
      end

      def say_slice
        return if Platform.timeslice? || Headway.quantum_ms <= Settings::VM_SLICE_MS

        say_once("the quantum asked for is #{Headway.quantum_ms} ms, but Ruby #{RUBY_VERSION} still ends a slice " \
                 "after its own #{Settings::VM_SLICE_MS} ms (longer ones need Ruby 3.4)")
      end

      # Once for this process and those it starts.
      def say_once(text)
        return if ENV["HEADWAY_SAID"] == text

        ENV["HEADWAY_SAID"] = text
        STDERR.puts("headway: #{text}")
      rescue IOError, SystemCallError
        nil
      end
    end
  end

  Autostart.call
end
