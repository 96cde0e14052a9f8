# frozen_string_literal: true

require "tmpdir"
require_relative "program"

# One job runner: its server is started, jobs are given to it, `headway run` runs it, and what its jobs wrote down is looked at.
class Runner
  JOBS = 20
  APP = File.expand_path("rails", __dir__)
  HEADWAY = [RbConfig.ruby, File.join(Program::ROOT, "exe/headway"), "run", "--policy", "fair", "--summary", "--"].freeze

  def self.call
    Dir.mktmpdir("headway-smoke") do |directory|
      File.chmod(0o755, directory)
      new(directory).call
    end
  end

  def initialize(directory)
    @directory = directory
    @programs = []
    @seen = File.join(directory, "seen")
    @env = { "SEEN" => @seen, "APP_ROOT" => @directory, "RAILS_ENV" => "production", "HEADWAY" => nil }
  end

  # @return [String] what was seen
  def call
    prepare
    runner = start(*HEADWAY, RbConfig.ruby, *command)
    runner.await("#{JOBS} jobs") { lines.size >= JOBS }
    status = runner.stop
    check(status, runner.output)
  ensure
    @programs.reverse_each(&:kill)
  end

  private

  def start(*command, **options)
    Program.new(*command, directory: @directory, env: @env, **options).tap { |program| @programs << program }
  end

  def finish(*command, **options) = Program.finish(*command, directory: @directory, env: @env, **options)

  def ruby(code) = finish(RbConfig.ruby, "-e", code)

  def lines = File.exist?(@seen) ? File.readlines(@seen).map { |line| JSON.parse(line) } : []

  def check(status, output)
    seen = lines
    raise "not with Headway: #{seen.first}" unless seen.all? { |line| line["policy"] == "fair" && line["work"] == work }
    raise "not each job once: #{seen.map { |line| line["number"] }.sort}" unless seen.map { |line| line["number"] }.sort == [*1..JOBS]
    raise "it ended with #{status.inspect}\n#{output}" unless status&.exited? || status&.termsig == 15
    raise "no summary\n#{output}" unless output.match?(/^Headway .*policy fair/)

    "#{JOBS} jobs on #{seen.map { |line| line["thread"] }.uniq.size} threads of #{seen.map { |line| line["pid"] }.uniq.size} processes, " \
      "works named #{work}; told to end by TERM, #{status.exited? ? "status #{status.exitstatus}" : "signal #{status.termsig}"}"
  end

  def work = "Label"

  def gem(name) = Gem::Specification.find_by_name(name)

  # Those whose jobs are Active Job's.
  module Rails
    private

    def prepare
      FileUtils.mkdir_p(File.join(@directory, "config"))
      File.write(File.join(@directory, "config/environment.rb"), "require #{File.join(APP, "config/environment").dump}\n")
      @env["RUNNER"] = self.class.name.gsub(/(?<=.)([A-Z])/, '_\1').downcase
      database
      ruby("require './config/environment'; ActiveRecord::Schema.verbose = false; #{schema}; (1..#{JOBS}).each { Label.perform_later(_1) }")
    end
  end
end
