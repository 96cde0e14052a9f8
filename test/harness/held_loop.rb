# frozen_string_literal: true

module Harness
  # A fiber that keeps its event loop for so long of the thread's own time: who watches gets a processor meanwhile, too, however busy the
  # machine is.
  module HeldLoop
    # For programs in a process of their own.
    HOLD = <<~RUBY
      def hold_the_loop
        from = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID)
        nil while Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) < from + 0.2
      end
    RUBY
    class_eval(HOLD)
    private :hold_the_loop
  end
end
