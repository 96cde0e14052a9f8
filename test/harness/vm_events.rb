# frozen_string_literal: true

require "harness/vm_fixture"

module Harness
  # The thread events of the VM during a block, in the order they fired.
  class VMEvents
    Event = Struct.new(:kind, :thread, :native_thread, :at_ns, :main_ractor)

    def self.record
      VMFixture.start_recording
      begin
        yield
      ensure
        rows = VMFixture.stop_recording
      end
      new(rows.map { |row| Event.new(*row) })
    end

    attr_reader :events

    def initialize(events)
      @events = events
    end

    # Only those of one thread (or of a thread's number, when it may be gone).
    def of(thread)
      number = thread.is_a?(Integer) ? thread : VMFixture.number_of(thread)
      self.class.new(events.select { |event| event.thread == number })
    end

    def kinds = events.map(&:kind)

    def count(kind) = events.count { |event| event.kind == kind }

    # Seconds from each event of one kind to the next event, where that is of the other kind.
    def spans(from, to)
      events.group_by(&:thread).values.flat_map do |own|
        own.each_cons(2).filter_map { |a, b| (b.at_ns - a.at_ns) / 1e9 if a.kind == from && b.kind == to }
      end
    end

    def waits = spans(:ready, :resumed)
    def holds = spans(:resumed, :suspended)
  end
end
