# frozen_string_literal: true

require "tmpdir"
require_relative "program"

# Libraries that use threads, signals, timeouts, locks and forks of their own: the checks of each, in libraries/NAME.rb, in a process
# with Headway by each of the ways of it, beside threads that compute. Where one fails it is run without Headway, too.
class Libraries
  # What it is run with: gems whose versions are told. Another one is a line here, and a file of checks.
  ALL = {
    "rack-timeout" => %w[rack-timeout puma],
    "concurrent-ruby" => %w[concurrent-ruby],
    "connection_pool" => %w[connection_pool],
    "sequel" => %w[sequel sqlite3],
    "active_record" => %w[activerecord sqlite3],
    "timeout" => %w[timeout net-http],
    "timeout-default" => [], # Ruby's own, outside of the bundle
    "grpc" => %w[grpc google-protobuf],
    "native" => %w[nokogiri msgpack bcrypt google-protobuf],
    "callbacks" => %w[ffi eventmachine],
    "mariadb" => %w[mysql2 trilogy],
    "puma-workers" => %w[puma puma_worker_killer],
    "schedules" => %w[rufus-scheduler fugit listen],
    "drb" => %w[drb request_store parallel]
  }.freeze
  WAYS = { "fair" => %w[fair signal], "poll" => %w[fair poll], "quantum" => %w[quantum signal] }.freeze
  HEADWAY = [RbConfig.ruby, File.join(Program::ROOT, "exe/headway"), "run", "--quantum", "10"].freeze
  OUTSIDE = { "RUBYOPT" => nil, "BUNDLE_GEMFILE" => nil }.freeze
  private_constant :ALL, :WAYS, :HEADWAY, :OUTSIDE

  class << self
    def names = ALL.keys

    # @return [String] what was seen
    def call(only = names) = only.map { |name| new(name).call }.join(", ")
  end

  def initialize(name)
    @name = name
    @program = File.join(__dir__, "libraries", "#{name}.rb")
    @env = { "HEADWAY" => nil, **(ALL.fetch(name).empty? ? OUTSIDE : {}) }
  end

  def call
    return "#{@name} (left out: #{missing} is missing)" if missing

    seen = WAYS.map { |way, (policy, preempt)| run(*HEADWAY, "--policy", policy, "--preempt", preempt, "--") || raise(failed(way)) }
    "#{versions} (#{seen.uniq.join(", ")} checks)"
  end

  private

  # A server that is no gem's, and the headers its clients are built with (see the Gemfile).
  def missing
    "mariadb-server or libmariadb-dev" if @name == "mariadb" && Gem::Specification.find_all_by_name("mysql2").empty?
  end

  # @return [String, nil] how many checks held, nil when one didn't
  def run(*command)
    Dir.mktmpdir("headway-smoke") do |directory|
      @output = Program.finish(*command, RbConfig.ruby, @program, directory: directory, env: @env)
      @output[/^all right: (\d+)/, 1]
    rescue RuntimeError => error
      @output = error.message
      nil
    end
  end

  def failed(way)
    output = @output
    "#{@name} with Headway (#{way}):\n#{output}\n#{run ? "Without Headway nothing fails." : "Without Headway:\n#{@output}"}"
  end

  def versions
    gems = ALL.fetch(@name)
    gems.empty? ? @name : gems.map { |gem| "#{gem} #{Gem::Specification.find_by_name(gem).version}" }.join(" and ")
  end
end
