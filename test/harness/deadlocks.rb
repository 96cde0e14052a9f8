# frozen_string_literal: true

module Harness
  # Programs whose threads all wait for one another.
  DEADLOCKS = {
    "a queue nobody fills" => "Thread::Queue.new.pop",
    "a join of a thread that stopped" => "Thread.new { Thread.stop }.join",
    "two mutexes in opposite order" => <<~RUBY
      a, b = Thread::Mutex.new, Thread::Mutex.new
      x = Thread.new { a.synchronize { sleep 0.01 until b.locked?; b.synchronize { 1 } } }
      y = Thread.new { b.synchronize { sleep 0.01 until a.locked?; a.synchronize { 1 } } }
      [x, y].each(&:join)
    RUBY
  }.freeze
end
