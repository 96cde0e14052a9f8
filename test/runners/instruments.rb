# frozen_string_literal: true

require "tmpdir"
require_relative "program"

# Profilers and monitors that have hooks, signals and native threads of their own, each in one process with Headway.
class Instruments
  ALL = %w[vernier stackprof gvltools datadog newrelic_rpm sentry-ruby].freeze
  PROGRAM = File.expand_path("instrumented.rb", __dir__)
  HEADWAY = [RbConfig.ruby, File.join(Program::ROOT, "exe/headway"), "run", "--policy", "fair"].freeze

  # @return [String] what was seen
  def self.call
    Dir.mktmpdir("headway-smoke") do |directory|
      ALL.map do |name|
        options = { directory: directory, env: { "HEADWAY" => nil } }
        [[], ["--record", File.join(directory, "#{name}.headway")]].each do |recorded|
          output = Program.finish(*HEADWAY, *recorded, "--", RbConfig.ruby, PROGRAM, name, **options)
          raise "#{name} #{recorded.first}\n#{output}" unless output.match?(/^all right: fair/)
        end
        "#{name} #{Gem::Specification.find_by_name(name).version}"
      end.join(", ")
    end
  end
end
