# frozen_string_literal: true

module Soak
  # What came of the requests, and what was done to the server that may explain it. Asked and told by all clients' threads.
  class Tally
    TOLD = 10 # of a kind
    AROUND = 2 # seconds by which what was done to a server may come before or after what it explains

    def initialize
      @lock = Thread::Mutex.new
      @counts = Hash.new(0)
      @served = Hash.new(0)
      @kills = {}
      @restarts = []
      @failures = []
      @states = {}
      @on_hang = -> {}
    end

    # What is done at the first hang: it says what the server is at.
    def on_hang(&block) = @on_hang = block

    attr_reader :failures, :counts

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

    def count(kind) = @lock.synchronize { @counts[kind] += 1 }

    # @param process [String, nil] as the application told it: its number, GCs, objects, threads
    def served(process)
      pid, collections, slots, threads = process&.split&.map(&:to_i)
      return unless pid

      @lock.synchronize do
        @served[pid] += 1
        @states[pid] = { collections:, slots:, ruby_threads: threads }
      end
    end

    # @return [Hash] pid => requests answered
    def answered = @lock.synchronize { @served.dup }
    def state(pid) = @lock.synchronize { @states[pid] }

    def killed(pid) = @lock.synchronize { @kills[pid] = now }

    # From now on until so many seconds later workers come and go.
    def restarting(seconds) = @lock.synchronize { @restarts << [now, now + seconds] }

    def fail(kind, what)
      what = [what, seen_hanging].compact.join("\n") if kind == :hung
      @lock.synchronize do
        @counts[kind] += 1
        @failures << "#{kind}: #{what}" if @counts[kind] <= TOLD
      end
    end

    # @return [Boolean] whether a worker was killed meanwhile: the one it was (of an answer that began), or any
    def kill_explains?(started, pid = nil)
      @lock.synchronize do
        @kills.any? { |killed, at| (pid.nil? || killed == pid) && at.between?(started - AROUND, now + AROUND) }
      end
    end

    def restart_explains?(started) = @lock.synchronize { @restarts.any? { |from, to| from - AROUND < now && to > started } }

    # @param samples [Samples] of the processes: what grew is a failure, too
    # @param files [String, nil] where they were left
    # @return [Boolean] whether nothing went lost
    def report(title, samples, out, files)
      samples.failures.each { |failure| fail(:grows, failure) }
      out.puts "#{title}: #{self}", samples.lines.map { |line| "  #{line}" }
      out.puts(@failures.map { |failure| "  LOST #{failure.gsub("\n", "\n    ")}" })
      out.puts "  its files: #{files}" if files
      @failures.empty?
    end

    def to_s = @lock.synchronize { @counts.sort.map { |kind, count| "#{kind} #{count}" }.join(", ") }

    private

    def seen_hanging
      @lock.synchronize { @seen ? return : @seen = true }
      @on_hang.call
    end
  end
end
