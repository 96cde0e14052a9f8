# frozen_string_literal: true

require_relative "../control/processes" if Headway.supported?

module Headway
  class Web
    # This process and its siblings, which are the processes of the same user and process group that run Headway: a server's workers
    # and their master. All are asked through their control sockets. However many ask for the state, the processes are asked once a
    # second at most, and who comes meanwhile gets the answer before.
    class Processes
      FRESH_S = 0.9
      ANSWER_S = 1 # how long a process is waited for; one that was late isn't asked again for a while
      PAUSE_S = 10
      MOST_PROCESSES = 64
      MOST_THREADS = 100
      PROCESS = %i[running ready suspended wait wait_histogram switches preemptions threads].freeze
      THREAD = %i[number name state batch running ready suspended switches].freeze
      private_constant :FRESH_S, :ANSWER_S, :PAUSE_S, :MOST_PROCESSES, :MOST_THREADS, :PROCESS, :THREAD

      def initialize
        @lock = Mutex.new
      end

      # @yieldreturn [Hash] what else there is to tell
      # @return [String] JSON: the state of all processes
      def text(&more)
        return @text if current? || (@text && @pid == ::Process.pid && @lock.locked?)

        # Not try_lock, between which and an ensure a server's timeout may strike, and the lock be held for good. Who finds it free and
        # comes too late all the same waits for the answer.
        @lock.synchronize do
          refresh(more) unless current?
          @text
        end
      end

      # Has who asks next get a new answer: something was changed.
      # @return [void]
      def forget
        @at = -Float::INFINITY
      end

      # @param pid [Integer]
      # @return [Control::Client, nil] of this process or a sibling
      def client(pid)
        path = pid.is_a?(Integer) && paths[pid]
        path && Control::Client.new(pid, path)
      end

      private

      # A forked child has its parent's text, which is not about it.
      def current?
        @text && @pid == ::Process.pid && now - @at < FRESH_S
      end

      def refresh(more)
        @late = {} unless @pid == ::Process.pid
        text = Web.json({ notices: notices, processes: all, **more.call })
        @text = text # first: what strikes in between leaves it to be made anew
        @at = now
        @pid = ::Process.pid
      end

      def all
        found = paths.sort.first(MOST_PROCESSES).filter_map { |pid, path| look_at(pid, path) }
        found << own if Headway.started? && found.none? { |process| process[:pid] == ::Process.pid }
        found
      end

      def paths
        return {} unless Headway.supported?

        group = ::Process.getpgrp
        Control::Processes.paths.select { |pid, _| group_of(pid) == group }
      end

      def group_of(pid)
        ::Process.getpgid(pid)
      rescue SystemCallError
        nil
      end

      def look_at(pid, path)
        late = @late[pid]
        return { pid: pid, error: late.last } if late && now - late.first < PAUSE_S

        told(Control::Client.new(pid, path, limit: ANSWER_S).stats)
      rescue Control::ClientError => error
        return if group_of(pid).nil? || !File.socket?(path)

        @late = @late.select { |_, other| now - other.first < PAUSE_S }.merge!(pid => [now, error.message])
        { pid: pid, error: error.message }
      end

      # Without its socket, which HEADWAY_CONTROL=0 switches off.
      def own
        stats = Headway.stats
        told({ pid: ::Process.pid, command: $PROGRAM_NAME, **stats, blame: { weight: 0, lines: [] }, recorder: Recorder.stats })
      end

      def told(stats)
        living = stats[:threads].select { |thread| thread[:alive] }
        shown = living.max_by(MOST_THREADS) { |thread| thread[:running] + thread[:ready] }.sort_by { |thread| thread[:number].to_i }
        stats.slice(:pid, :headway, :ruby, :policy, :preempt, :quantum_ms, :wall, :blame, :work)
             .merge(recorder: (stats.dig(:recorder, :mode) unless stats.dig(:recorder, :failure)),
                    command: cut(Control::Processes.command_of(stats[:pid]) || stats[:command]), process: stats[:process].slice(*PROCESS),
                    threads: shown.map { |thread| thread.slice(*THREAD).merge(name: cut(thread[:name])) },
                    threads_left_out: living.size - shown.size + stats[:threads_left_out].to_i)
      end

      def cut(text)
        text.to_s.dup.force_encoding(Encoding::UTF_8).scrub("?")[0, 200]
      end

      def notices
        off = if !Headway.supported? then [] # it is among the notices
              elsif !Headway.started? then ["Headway is not started in this process (#{::Process.pid})."]
              elsif Control.path.nil? then ["Process #{::Process.pid} has no control socket: only the process that answers is shown, and its settings can't be changed here."]
              else []
              end
        (off + Headway.notices).first(20).map { |notice| cut(notice) }
      end

      def now
        ::Process.clock_gettime(::Process::CLOCK_MONOTONIC)
      end
    end
  end
end
