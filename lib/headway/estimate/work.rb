# frozen_string_literal: true

module Headway
  module Estimate
    # Runs the work, in threads of its own.
    class Work
      # @param block [#call]
      def initialize(block)
        @block = block
      end

      # @param threads [Integer]
      # @param iterations [Integer] of each
      # @return [Float] seconds from the start of all to the end of the last
      def seconds(threads, iterations)
        gate = Thread::Queue.new
        workers = Array.new(threads) do
          thread do
            gate.pop
            iterations.times { @block.call }
          end
        end
        Thread.pass until gate.num_waiting == threads
        start = now
        gate.close
        finish(workers)
        now - start
      ensure
        end_all(workers)
      end

      # @param iterations [Integer]
      # @return [Sample] of one thread
      def metered(iterations)
        times = others_s = nil
        worker = thread do
          before_s = others_cpu_s
          times = Native.metered { iterations.times { @block.call } }
          others_s = others_cpu_s - before_s
        end
        finish([worker])
        raise Error, "something else is being metered" unless times

        Sample.from(times, iterations, others_s)
      ensure
        end_all([worker])
      end

      private

      def thread
        Thread.new do
          Thread.current.name = "headway yield"
          Thread.current.report_on_exception = false
          ForkGuard.guard
          yield
          true
        end
      end

      # What the work raised is raised here. A thread that the work ended has no value.
      def finish(workers)
        return if workers.all?(&:value)

        raise Error, "the work ends its thread: leave out what kills or exits the current thread"
      end

      def end_all(workers)
        workers&.compact&.each(&:kill)&.each(&:join)
      rescue Exception # rubocop:disable Lint/RescueException
        nil # what they raised is being raised already
      end

      # CPU time of the process that isn't this thread's.
      def others_cpu_s
        Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) - Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID)
      end

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
    private_constant :Work
  end
end
