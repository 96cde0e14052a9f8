# frozen_string_literal: true

require "optparse"

module Soak
  # What was asked for on the command line.
  Options = Struct.new(:minutes, :parts, :headway, :autotune, :calm, :seed, :left_out, :keep, keyword_init: true) do
    # @return [Options, nil] nil when the help was shown
    # @raise [OptionParser::ParseError]
    def self.parse(arguments, parts)
      options = new(minutes: 20.0, parts:, headway: true, autotune: false, calm: false, seed: Random.new_seed % 1_000_000,
                    left_out: [], keep: false)
      shown = false
      rest = options.parser(parts) { shown = true }.parse(arguments)
      unknown = (rest - parts).first
      raise OptionParser::InvalidArgument, "#{unknown.inspect} is no part: give some of #{parts.join(", ")}" if unknown

      options.parts = rest unless rest.empty?
      shown ? nil : options
    end

    def parser(parts)
      OptionParser.new do |parser|
        parser.banner = "Usage: bin/soak [options] [PART...]   (#{parts.join(", ")}; all of them)"
        parser.on("--minutes N", Float, "in all, shared by the parts alike (#{minutes.round})") do |value|
          raise OptionParser::InvalidArgument, "#{value}: give more than 0, such as 20" unless value.positive?

          self.minutes = value
        end
        parser.on("--without-headway", "the same on stock Ruby, to compare with") { self.headway = false }
        parser.on("--autotune", "Puma tunes itself meanwhile") { self.autotune = true }
        parser.on("--calm", "no worker is told to go or killed: memory is watched for all the time") { self.calm = true }
        parser.on("--seed N", Integer, "what clients and attacks are drawn from (random)") { |value| self.seed = value }
        parser.on("--without A,B", Array, "leave out these routes of the application") { |value| self.left_out = value }
        parser.on("--keep", "leave the servers' files, and say where they are") { self.keep = true }
        parser.on("--help", "this") do
          puts parser
          yield
        end
      end
    end
  end
end
