# frozen_string_literal: true

require "json"

module Headway
  module Bench
    # A process of a benchmark's own, which prints JSON lines and is never left behind.
    class Child
      # Runs a program to its end.
      #
      # @param command [Array<String>]
      # @param env [Hash] what differs from our own environment
      # @param limit_s [Numeric] after which the program counts as stuck and is killed
      # @return [Hash] the JSON line that the program printed
      def self.run(command, env: {}, limit_s: 60)
        child = new(command, env:)
        child.result(limit_s)
      ensure
        child&.kill
      end

      # Starts the process, in a group of its own so that a Ctrl-C at the terminal reaches it through us alone. One that comes meanwhile
      # waits until it is known whom to kill.
      def initialize(command, env: {})
        interrupted = false
        before = trap("INT") { interrupted = true }
        @name = File.basename(command.grep(/\.rb\z/).last || command.first, ".rb")
        input, @input = IO.pipe
        @output, output = IO.pipe
        @errors, errors = IO.pipe
        @pid = Process.spawn(env, *command, in: input, out: output, err: errors, pgroup: true)
        trap("INT", before)
        raise Interrupt if interrupted
      rescue SystemCallError => e
        raise Error, "cannot run #{command.first}: #{e.message}"
      rescue Interrupt
        kill
        raise
      ensure
        trap("INT", before)
        [input, output, errors].each { _1&.close }
      end

      # @return [Hash] the first line, from a process that goes on running
      def first_line(limit_s)
        raise Error, "#{@name} said nothing within #{limit_s} s" unless @output.wait_readable(limit_s)

        line = @output.gets or raise Error, failure(@errors.read)
        JSON.parse(line)
      end

      # @param line [Object] what a process that waits for it reads
      # @return [void]
      def tell(line)
        @input.puts(line)
      rescue Errno::EPIPE
        raise Error, failure(@errors.read)
      end

      # @param name [String, Symbol] of a signal, for the process and those it forked
      # @return [void]
      def signal(name)
        Process.kill(name, -@pid)
      rescue Errno::ESRCH, Errno::EPERM
        nil # it has ended, as whoever asks it next will see
      end

      # @return [Hash] the last line, once the process has ended
      def result(limit_s)
        output, errors = drain(limit_s)
        status = reap
        raise Error, failure(errors) unless status.success?

        JSON.parse(output.lines.last || "")
      rescue JSON::ParserError
        raise Error, "#{@name} printed no result: #{last_line(output + errors)}"
      end

      # Ends the process whatever it is doing; does nothing when it has ended.
      def kill
        return unless @pid

        signal(:KILL)
        reap
      ensure
        [@input, @output, @errors].each { _1&.close }
      end

      private

      # Reads both pipes together: a child that fills one while we wait on the other would hang.
      def drain(limit_s)
        deadline = now + limit_s
        texts = { @output => +"", @errors => +"" }
        open = texts.keys
        until open.empty?
          readable, = IO.select(open, nil, nil, [deadline - now, 0].max)
          raise Stuck, "#{@name} did not finish within #{limit_s.round} s" unless readable

          readable.each do |pipe|
            chunk = pipe.read_nonblock(65_536, exception: false)
            chunk ? (texts[pipe] << chunk unless chunk == :wait_readable) : open.delete(pipe)
          end
        end
        texts.values
      end

      def reap
        return unless @pid

        _, status = Process.wait2(@pid)
        @pid = nil
        status
      rescue Errno::ECHILD
        @pid = nil
      end

      def failure(errors) = "#{@name} failed: #{last_line(errors)}"

      # Ruby prints the message of an exception first and the backtrace under it.
      def last_line(text)
        lines = text.lines.map(&:strip).reject(&:empty?)
        lines.find { _1.match?(/\((\w|::)+\)\z/) } || lines.last || "it said nothing"
      end

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
