# frozen_string_literal: true

module Headway
  # What a pool raises of its own.
  class OffloadPool
    # A pool was used after {close}.
    class ClosedError < Error; end

    # The queue is full, and the pool's rule is :raise.
    class FullError < Error; end

    # An operation's deadline passed, and it was never started, or was stopped.
    class DeadlineError < Error; end

    # Something killed the thread an operation ran on, so that its result is unknown.
    class WorkerError < Error; end

    # The process forked while an operation was under way: raised in the child's copy of the fiber that waited for it.
    class ForkError < Error; end
  end
end
