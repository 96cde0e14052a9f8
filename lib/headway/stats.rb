# frozen_string_literal: true

module Headway
  # Turns the native snapshot into the hash that {Headway.stats} returns.
  class Stats
    # Threads that are not told apart any more, as the native part numbers them, and the time nobody held the GVL.
    OTHERS = -1
    NOBODY = 0
    BLAME_STACKS = 20
    private_constant :OTHERS, :NOBODY, :BLAME_STACKS

    # @return [Hash, nil] the row of one living thread
    def self.of(thread)
      threads = Native.threads
      index = threads.index(thread)
      index && living(threads, Native.snapshot(threads)[:threads], only: index).first
    end

    # @return [Hash] the process's row alone, which is cheap
    def self.process
      Native.snapshot([])[:process]
    end

    # @return [Array<Hash>] rows of living threads; only: of the one at this place
    def self.living(threads, rows, only: nil)
      named = threads.zip(rows).map { |thread, row| [Native.thread_name(thread), row] if row }
      names = named.compact.to_h { |name, row| [row[:number], name] }
      (only ? [named[only]] : named).compact.map do |name, row|
        { name: name, alive: true, count: 1 }.merge(row, waited_for: waited_for(row[:waited_for], names))
      end
    end

    def initialize(headway)
      @headway = headway
    end

    # @return [Hash]
    def to_h
      threads = Native.threads
      snapshot = Native.snapshot(threads)
      {
        policy: @headway.policy, preempt: @headway.preempt, quantum_ms: @headway.quantum_ms, wall: snapshot[:wall],
        process: snapshot[:process].merge(threads: snapshot[:threads].compact.size), work: snapshot[:work],
        threads: self.class.living(threads, snapshot[:threads]) + ended(snapshot[:ended]), blame: self.class.blame
      }
    end

    # @param most [Integer] stacks at the most
    # @return [Hash] what held the GVL while others waited; weight: waiting threads x seconds; late: of that, what was behind code
    #   that heeded no interrupt for 50 ms and longer
    def self.blame(most = BLAME_STACKS)
      samples, weight, late, folded, rows = Native.blame(most)
      stacks = rows.map do |row_weight, count, frames|
        { weight: row_weight, samples: count,
          frames: frames.map { |method, file, line| { method: method, file: file, line: line } } }
      end
      { samples: samples, weight: weight, late: late, folded: folded, stacks: stacks }
    end

    # @param rows [Array] as the native snapshot has them
    # @param names [Hash{Integer => String}] of living threads, by number
    # @return [Array<Hash>] name (nil: nobody, the GVL was free), number, seconds
    def self.waited_for(rows, names)
      rows.map do |number, seconds, ended|
        name = if number == NOBODY then nil
               elsif number == OTHERS then "(others)"
               else names[number] || ended || "(ended)"
               end
        { name: name, number: number.positive? ? number : nil, seconds: seconds }
      end
    end

    private

    # For whom threads waited is not kept beyond their end; a trace has it.
    def ended(rows)
      rows.map { |row| { name: row[:name], alive: false, number: nil, batch: nil, quantum_ms: nil, waited_for: nil }.merge(row) }
    end
  end
end
