# frozen_string_literal: true

module Headway
  module CLI
    # Tells whether a signal came to this process alone or to its whole process group, as Ctrl-C does: by a process beside it that
    # does nothing and dies of what the group gets. (Who sent a signal, if Ruby told it, says too little: kill reaches groups as
    # well. A group of its own for the command would take the terminal from it, or from what its output is piped to.)
    class Sentinel
      # Death takes it a moment of a processor, for which it may have to wait: a second. Looks are counted, not seconds: a machine
      # that stops gives it no time to die.
      LOOKS = 100
      PAUSE_S = 0.01
      private_constant :LOOKS, :PAUSE_S

      # @param fatal [Array<String>] signals that are to be told apart
      # @param ignored [Array<String>] others that the group may get
      def initialize(fatal:, ignored:)
        @fatal = fatal
        @ignored = ignored
        @lock = Mutex.new
        post
      end

      # To be asked once for each signal that came, on a thread that may wait.
      #
      # @return [Boolean] whether it came to this process alone; false also when the command has ended, which leaves nobody to tell
      def alone?
        @lock.synchronize do
          next false unless @pid

          died = LOOKS.times.any? { Process.wait(@pid, Process::WNOHANG) || (sleep(PAUSE_S) && false) }
          post if died
          !died
        end
      end

      # @return [void]
      def dismiss
        @lock.synchronize do
          @ours.close
          Process.wait(@pid)
          @pid = nil
        end
      end

      private

      # It ends with us, too.
      def post
        its, ours = IO.pipe
        @ours&.close
        @ours = ours
        @pid = fork do
          stand(its, ours)
          exit!
        end
        its.close
      end

      def stand(pipe, other_end)
        other_end.close
        Process.setrlimit(:CORE, 0) # which QUIT would leave
        @ignored.each { |name| trap(name, "IGNORE") }
        @fatal.each { |name| trap(name, "SYSTEM_DEFAULT") }
        pipe.read
      rescue Interrupt
        nil # it was quicker
      end
    end
  end
end
