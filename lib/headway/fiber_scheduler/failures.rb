# frozen_string_literal: true

module Headway
  class FiberScheduler
    # The exceptions that fibers end with: reported at once, as Ruby does for threads; the first is raised when the loop ends.
    class Failures
      # These are about the process, and go on to the loop.
      PASSING = [SystemExit, SignalException, NoMemoryError].freeze
      private_constant :PASSING

      # @return [Integer]
      attr_reader :count

      # @param handler [#call, nil]
      def initialize(handler)
        @handler = handler
        @count = 0
      end

      # Runs a fiber's block.
      def watch
        yield
      rescue *PASSING => error
        raise unless @holding

        @held ||= error
        nil
      rescue Stop
        nil
      rescue Exception => error
        add(error)
        nil
      end

      # From now on nothing goes on to the loop until {raise_held}: fibers are being stopped, and each of them is to be told.
      def hold
        @holding = true
      end

      # @raise [Exception] the first that would have gone on
      def raise_held
        raise @held if @held
      end

      # @raise [Exception] the first that no handler took
      def raise_first
        first = @first or return
        @first = nil
        raise first
      end

      private

      def add(error)
        @count += 1
        return handle(error) if @handler

        @first ||= error
        report(error) if Thread.current.report_on_exception
      end

      def handle(error)
        @handler.call(error, Fiber.current)
      rescue StandardError => handler_error
        @first ||= error
        report(error)
        report(handler_error)
      end

      # What fails in here would take the loop down.
      def report(error)
        $stderr.write("#{Fiber.current.inspect} terminated with exception (report_on_exception is true):\n", words(error))
      rescue IOError, SystemCallError
        nil # stderr is gone
      end

      # Somebody else's error may have a message that raises.
      def words(error)
        error.full_message
      rescue StandardError => fault
        "#{error.backtrace&.first}: #{error.class}, whose message raises #{fault.class}\n"
      end
    end
    private_constant :Failures
  end
end
