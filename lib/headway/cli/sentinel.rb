# frozen_string_literal: true

require "socket"

module Headway
  module CLI
    # Tells whether a signal came to this process alone or to its whole process group, as Ctrl-C does, a terminal that is closed, and a
    # service manager's TERM: by a process beside it that does nothing and dies of what the group gets. (Who sent a signal, if Ruby told
    # it, says too little: kill reaches groups as well. A group of its own for the command would take the terminal from it, or from what
    # its output is piped to.)
    class Sentinel
      # Whoever signals all of them gets round to it a moment after us. What it has by then it dies of before it answers.
      PAUSE_S = 0.05
      # It may have to wait for a processor, or be stopped. Looks are counted, not seconds: a machine that stops gives it no time.
      LOOKS = 40
      private_constant :PAUSE_S, :LOOKS

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

          sleep(PAUSE_S)
          answers = answers?
          replace unless answers
          answers
        end
      end

      # @return [void]
      def dismiss
        @lock.synchronize { bury }
      end

      private

      def answers?
        @ours.write(".")
        return true unless LOOKS.times.any? { @ours.wait_readable(PAUSE_S) }

        !@ours.read_nonblock(1, exception: false).nil?
      rescue SystemCallError # it is dead
        false
      end

      def replace
        bury
        post
      end

      def bury
        @ours.close
        Process.wait(@pid)
        @pid = nil
      end

      # It ends with us, too.
      def post
        its, @ours = UNIXSocket.pair
        @pid = fork do
          stand(its)
          exit!
        end
        its.close
      end

      def stand(its)
        @ours.close
        Process.setrlimit(:CORE, 0) # which QUIT would leave
        @ignored.each { |name| trap(name, "IGNORE") }
        @fatal.each { |name| trap(name, "SYSTEM_DEFAULT") }
        its.write(".") while its.read(1)
      rescue SignalException, SystemCallError
        nil # it was quicker
      end
    end
  end
end
