# frozen_string_literal: true

require_relative "options"
require_relative "doctor/check"

module Headway
  module CLI
    # `headway doctor`: what works on this Ruby and machine, each thing found out by doing it, and what it costs.
    module Doctor
      STATUS_TEXT = { ok: "ok", fault: "FAULT", note: "-" }.freeze
      private_constant :STATUS_TEXT

      class << self
        # @param argv [Array<String>]
        # @return [Integer] 0 when all is well, 1 when something is not
        def call(argv)
          json = false
          Options.new("doctor", "[--json]") do |parser|
            parser.on("--json", "print one JSON object") { json = true }
            parser.separator("")
          end.all(argv)
          checks = examine
          json ? CLI.print_json(doctor: checks.map(&:to_h)) : print_text(checks)
          checks.any?(&:fault?) ? 1 : 0
        end

        private

        def examine
          require_relative "doctor/surroundings"
          surroundings = Surroundings.checks
          return surroundings if surroundings.first.fault?

          require_relative "doctor/workings"
          surroundings + Workings.checks
        end

        def print_text(checks)
          width = checks.map { |check| check.name.length }.max
          puts "Headway #{VERSION}"
          checks.each do |check|
            puts format("  %-5s  %-#{width}s  %s", STATUS_TEXT.fetch(check.status), check.name, check.detail)
          end
        end
      end
    end
  end
end
