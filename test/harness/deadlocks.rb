# frozen_string_literal: true

module Harness
  # Programs whose threads all wait for one another.
  DEADLOCKS = {
    "a queue nobody fills" => "Thread::Queue.new.pop",
    "a join of a thread that stopped" => "Thread.new { Thread.stop }.join",
    "two mutexes in opposite order" => <<~RUBY
      a, b = Thread::Mutex.new, Thread::Mutex.new
      has_a, has_b = Thread::Queue.new, Thread::Queue.new
      x = Thread.new { a.synchronize { has_a << 1; has_b.pop; b.synchronize { 1 } } }
      y = Thread.new { b.synchronize { has_b << 1; has_a.pop; a.synchronize { 1 } } }
      [x, y].each(&:join)
    RUBY
  }.freeze
end
