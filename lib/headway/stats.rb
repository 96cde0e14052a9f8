# frozen_string_literal: true

module Headway
  # Turns the native snapshot into the hash that {Headway.stats} returns.
  class Stats
    # "#<Thread:0x… FILE:LINE STATUS>"
    CREATION_SITE = /\A#<Thread:0x\h+(?:@\S+)? (?<site>.+) [a-z_]+>\z/
    private_constant :CREATION_SITE

    # @return [String] the thread's name, else where it was created
    def self.name_of(thread)
      return "main" if thread == Thread.main && thread.name.to_s.empty?

      name = thread.name.to_s
      name.empty? ? thread.to_s[CREATION_SITE, :site] || thread.to_s : name
    end

    def initialize(headway)
      @headway = headway
    end

    # @return [Hash]
    def to_h
      threads = Thread.list
      snapshot = Native.snapshot(threads)
      {
        policy: @headway.policy, preempt: @headway.preempt, quantum_ms: @headway.quantum_ms, wall: snapshot[:wall],
        process: snapshot[:process].merge(threads: snapshot[:threads].compact.size), threads: living(threads, snapshot[:threads]) + ended(snapshot[:ended])
      }
    end

    private

    def living(threads, rows)
      threads.zip(rows).filter_map do |thread, row|
        { name: self.class.name_of(thread), alive: true, count: 1 }.merge(row) if row
      end
    end

    def ended(rows)
      rows.map { |row| { name: row[:name], alive: false, batch: nil, quantum_ms: nil }.merge(row) }
    end
  end
end
