# frozen_string_literal: true

require_relative "sentinel"

module Headway
  module CLI
    # Runs the command as a child, for what is to be done after it ended. Signals go on to it, its status comes back.
    module Supervision
      # What does no harm when it comes twice, or is sent to a server alone.
      FORWARDED = %w[CONT TTIN TTOU WINCH].freeze
      # A terminal or a service manager sends these to the child by itself, and what gets one twice may stop at once, in the middle of
      # its cleaning up. So they go on only if they came to us alone.
      OF_GROUPS = %w[INT QUIT TERM HUP USR1 USR2].freeze
      # A terminal's, to a group in the background that reads from it or sets it.
      OF_TERMINALS = %w[TTIN TTOU].freeze
      private_constant :FORWARDED, :OF_GROUPS, :OF_TERMINALS

      class << self
        # @yield in the child: replaces it by the command
        # @return [Process::Status]
        def run(&command)
          ready, go = IO.pipe
          pid = fork do
            go.close
            become(ready, &command)
          rescue Interrupt # before it was to end us without words
            die_of(Signal.list["INT"])
          end
          ready.close
          forward_to(pid) do
            let(go)
            await(pid)
          end
        end

        # Ends this process the way the child ended.
        # @return [Integer] the exit status, if it exited
        def end_like(status)
          return status.exitstatus unless status.signaled?

          die_of(status.termsig)
          128 + status.termsig
        rescue ArgumentError # a crash, which Ruby would report as this process's own: the status a shell gives it says as much
          128 + status.termsig
        end

        private

        def die_of(signal)
          trap(signal, "SYSTEM_DEFAULT") unless signal == Signal.list["KILL"]
          Process.kill(signal, Process.pid)
          sleep 1
        end

        # Only once signals are forwarded: one that ended this process before that must not leave the command alone.
        def become(ready)
          # Ctrl-C before there is a command ends it without words, unless nobody is to heed it, as in the background of a script.
          trap("INT", "IGNORE") if trap("INT", "SYSTEM_DEFAULT") == "IGNORE"
          exit!(1) unless ready.read(1)
          yield
        rescue UsageError => error
          CLI.say(error.message)
          exit!(2)
        end

        def let(go)
          go.write(".")
          go.close
        rescue Errno::EPIPE
          nil # a signal was quicker
        end

        # To a shell, which looks at us, a job that waits for its terminal has to be stopped: others `fg` doesn't continue.
        def await(pid)
          loop do
            status = Process.wait2(pid, Process::WUNTRACED).last
            return status unless status.stopped?

            Process.kill("STOP", Process.pid) if OF_TERMINALS.include?(Signal.signame(status.stopsig)) && !apart?(pid)
          end
        end

        def forward_to(pid)
          sentinel = Sentinel.new(fatal: OF_GROUPS, ignored: FORWARDED)
          before = FORWARDED.to_h { |name| [name, trap(name) { forward(name, pid) }] }
          before.merge!(OF_GROUPS.to_h do |name|
            [name, trap(name) { Thread.new { forward(name, pid) if apart?(pid) || sentinel.alone? } }]
          end)
          yield
        ensure
          before&.each { |name, handler| trap(name, handler) }
          sentinel&.dismiss
        end

        # The command has a process group of its own: what comes to ours doesn't come to it.
        def apart?(pid)
          Process.getpgid(pid) != Process.getpgrp
        rescue Errno::ESRCH
          false
        end

        def forward(name, pid)
          Process.kill(name, pid)
        rescue Errno::ESRCH
          nil # it has just ended
        end
      end
    end
  end
end
