# frozen_string_literal: true

require "json"

module Headway
  module Estimate
    # The work by several forked processes of several threads each.
    class Processes
      # What one configuration did.
      Cell = Data.define(:processes, :threads, :per_s, :cpu_cores)

      ROUNDS = 3
      private_constant :ROUNDS

      # @param block [#call]
      # @param call_s [Float] what one call takes
      # @param run_s [Float] how long each configuration runs, about
      def initialize(block, call_s, run_s)
        @block = block
        @call_s = call_s
        @run_s = run_s
      end

      # @param processes [Array<Integer>]
      # @param threads [Array<Integer>]
      # @return [Array<Array<Cell>>] of each round one for every pair, first that of one process with one thread
      def call(processes, threads)
        pairs = [1, *processes].uniq.product(threads)
        pairs = pairs.select { |pair| pair == [1, 1] || processes.include?(pair.first) }
        Array.new(ROUNDS) { pairs.map { |pair| cell(*pair) } }
      end

      private

      def cell(processes, threads)
        # Never more in all than cores could do in a few times the length of a run.
        iterations = [(@run_s / @call_s / [threads / 4.0, 1].max).round, 1].max
        workers = Array.new(processes) { Worker.start { Work.new(@block).seconds(threads, iterations) } }
        workers.each(&:await)
        start = Process.clock_gettime(Process::CLOCK_MONOTONIC)
        workers.each(&:go)
        cpu_s = workers.sum(&:cpu_s)
        wall_s = Process.clock_gettime(Process::CLOCK_MONOTONIC) - start
        Cell.new(processes: processes, threads: threads, per_s: processes * threads * iterations / wall_s, cpu_cores: cpu_s / wall_s)
      ensure
        workers&.each(&:finish)
      end

      # A forked process that says when it is ready, runs when it is told to, and says what it used.
      class Worker
        def self.start(&block)
          new(*IO.pipe, *IO.pipe).tap { |worker| worker.send(:fork_with, &block) }
        end

        def initialize(reader, answer, command, writer)
          @reader = reader
          @answer = answer
          @command = command
          @writer = writer
        end

        def await = read

        def go
          @writer.puts
          @writer.flush
        end

        # @return [Float]
        def cpu_s = read.fetch("cpu_s")

        def finish
          [@reader, @answer, @command, @writer].each(&:close)
          return unless @pid

          Process.kill(:KILL, @pid)
          Process.wait(@pid)
        end

        private

        def fork_with
          @pid = fork do
            [@reader, @writer].each(&:close)
            run { yield }
          rescue Exception => error # whatever it is, the parent raises it
            say(error: Estimate.describe(error))
          ensure
            exit!(0)
          end
          [@answer, @command].each(&:close)
        end

        def run
          say(ready: true)
          @command.gets or exit!(0) # the parent has gone
          before = cpu
          yield
          say(cpu_s: cpu - before)
        end

        def cpu = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)

        def say(answer)
          @answer.puts(JSON.generate(answer))
          @answer.flush
        end

        def read
          line = @reader.gets or raise Error, "a forked process ended before its time"
          answer = JSON.parse(line)
          raise Error, "in a forked process #{answer["error"]}" if answer["error"]

          answer
        end
      end
      private_constant :Worker
    end
    private_constant :Processes
  end
end
