# frozen_string_literal: true

require "optparse"

module Headway
  module Bench
    # The kinds of values that options take, each refused with a sentence that says what would be right.
    module Options
      # Says which option was given what, and what would be right.
      class BadValue < OptionParser::InvalidArgument
        def initialize(text, advice)
          super(text)
          @advice = advice
        end

        def message = "#{args.join(" ")}: #{@advice}"
        alias to_s message
      end

      Count = Object.new
      Counts = Object.new
      Sizes = Object.new
      Positive = Object.new
      Port = Object.new
      Names = Object.new

      class << self
        # @param parser [OptionParser] that is to know the kinds
        def teach(parser)
          parser.accept(Count) { |text| count(text) }
          parser.accept(Counts) { |text| counts(text) }
          parser.accept(Sizes) { |text| sizes(text) }
          parser.accept(Positive) { |text| positive(text) }
          parser.accept(Port) { |text| port(text) }
          parser.accept(Names) { |text| names(text) }
        end

        private

        def names(text)
          names = text.split(",", -1).map(&:strip)
          names.any? && names.none?(&:empty?) ? names : refuse(text, "give names with a comma between them")
        end

        def count(text)
          whole(text, 1..1_000_000) or refuse(text, "give a whole number from 1 to 1000000")
        end

        def counts(text)
          numbers = text.split(",", -1).map { whole(_1.strip, 0..10_000) }
          return numbers.uniq if numbers.any? && numbers.all?

          refuse(text, "give whole numbers from 0 to 10000, such as 0,1,4,16")
        end

        def sizes(text)
          numbers = text.split(",", -1).map { whole(_1.strip, 1..1_000) }
          numbers.any? && numbers.all? ? numbers.uniq : refuse(text, "give whole numbers from 1 to 1000, such as 2,4")
        end

        def positive(text)
          number = Float(text, exception: false)
          refuse(text, "give a number from 0.001 to 3600") unless number&.between?(1e-3, 3600)
          number == number.to_i ? number.to_i : number
        end

        def port(text)
          whole(text, 0..65_535) or refuse(text, "give a port from 1 to 65535, or 0 for any that is free")
        end

        def whole(text, range)
          number = Integer(text, 10, exception: false)
          number if range.cover?(number)
        end

        def refuse(text, advice) = raise(BadValue.new(text, advice))
      end
    end
  end
end
