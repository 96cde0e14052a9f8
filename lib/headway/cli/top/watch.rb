# frozen_string_literal: true

require_relative "columns"
require_relative "frame"
require_relative "sample"
require_relative "terminal"

module Headway
  module CLI
    module Top
      # The live view: asks, draws, and listens to the keyboard, until q or until the process ends.
      class Watch
        INTERVALS = [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0].freeze
        private_constant :INTERVALS

        # @param pid [Integer]
        # @param interval [Float] seconds
        # @param sort [Symbol]
        def initialize(pid, interval:, sort:, terminal: Terminal.new)
          @pid = pid
          @interval = interval
          @sort = sort
          @terminal = terminal
          @skip = 0
        end

        # @return [Integer] the exit status
        def call
          @terminal.take { run }
          puts @ended if @ended
          0
        end

        private

        def run
          due = now
          loop do
            if now >= due
              refresh
              return if @ended

              due = now + @interval
            end
            draw
            event = @terminal.event(due - now)
            return if event == :quit

            due = [due, now + @interval].min if obey(event)
          end
        end

        def refresh
          client = Control::Processes.find(@pid)
          @sample = Sample.new(client.stats, @sample)
          @command = Control::Processes.command_of(@pid)
          @trouble = nil
        rescue Control::ClientError => error
          alive? ? @trouble = error.message : @ended = "process #{@pid} has ended"
          @ended ||= @trouble if @sample.nil?
        end

        def alive?
          Process.kill(0, @pid)
          !Control::Processes.ended?(@pid)
        rescue Errno::ESRCH
          false
        rescue Errno::EPERM
          true
        end

        def draw
          height, width = @terminal.size
          frame = Frame.new(@sample, sort: @sort, command: @command, paint: @terminal.paint)
          @skip = @skip.clamp(0, [frame.size - 1, 0].max)
          lines = frame.lines(width: width, height: height - 1, skip: @skip)
          lines << "" while lines.size < height - 1
          @terminal.draw(lines.first(height - 1) << TextWidth.cut(foot, width))
        end

        def foot
          return @trouble if @trouble

          format("q quit  every %g s (+ -)  sorted by %s (%s)", @interval, @sort,
                 Columns::SORTS.map { |name, column| "#{column.key} #{name}" }.join(", "))
        end

        # @return [Boolean] whether the interval has changed
        def obey(event)
          page = [@terminal.size.first - 8, 1].max
          case event
          when :up then @skip -= 1
          when :down then @skip += 1
          when :page_up then @skip -= page
          when :page_down then @skip += page
          when :longer then return @interval = INTERVALS.find { |seconds| seconds > @interval } || @interval
          when :shorter then return @interval = INTERVALS.reverse.find { |seconds| seconds < @interval } || @interval
          when String then @sort = Columns.sort_of(event) || @sort
          end
          false
        end

        def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      end
    end
  end
end
