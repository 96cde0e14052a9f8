# frozen_string_literal: true

module Stress
  # What was issued and what of it was accounted for, by kind.
  class Ledger
    attr_reader :issued, :accounted

    def initialize
      @lock = Thread::Mutex.new
      @issued = Hash.new(0)
      @accounted = Hash.new(0)
    end

    def account(kind, issued, accounted)
      @lock.synchronize do
        @issued[kind] += issued
        @accounted[kind] += accounted
      end
    end

    def add(issued, accounted)
      (issued.keys | accounted.keys).each { |kind| account(kind, issued.fetch(kind, 0), accounted.fetch(kind, 0)) }
    end

    # @return [Hash] kind => [issued, accounted] where the two differ
    def open_items
      @issued.keys.to_h { |kind| [kind, [@issued[kind], @accounted[kind]]] }.reject { |_, (issued, accounted)| issued == accounted }
    end

    def to_s
      @issued.keys.sort.map { |kind| @issued[kind] == @accounted[kind] ? "#{kind} #{@issued[kind]}" : "#{kind} #{@accounted[kind]} OF #{@issued[kind]}" }.join(", ")
    end
  end
end
