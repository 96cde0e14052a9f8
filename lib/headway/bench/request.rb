# frozen_string_literal: true

require "json"

module Headway
  module Bench
    # What somebody asked `headway bench` for: filled from options, then carried out.
    class Request
      # @param experiment [Class] a subclass of {Experiment}
      def initialize(experiment, env: ENV)
        @experiment = experiment
        @env = env
        @settings = {}
        @arms = experiment.arms
        @names = @arms::DEFAULTS
        @rubies = []
        @runs = 3
      end

      # @param parser [OptionParser] to define the options on
      def define(parser)
        parser.separator("#{@experiment.purpose}\n\n")
        Options.teach(parser)
        parser.on("--arms LIST", Options::Names, "which arms (default #{@arms::DEFAULTS.join(",")}#{other_arms})") { @names = _1 }
        parser.on("--ruby PATH", "add an arm: the plain program under", "another Ruby") { @rubies << Interpreter.new(_1) }
        parser.on("--runs N", Options::Count, "runs of each arm (default #{@runs})") { @runs = _1 }
        parser.on("--json", "print the figures as JSON") { @json = true }
        parser.on("--plot FILE", "draw the figures, as an HTML page") { @plot = page(_1) }
        @experiment.options(parser, @settings)
      end

      # Runs the benchmark, and prints and draws its figures.
      #
      # @raise [UsageError, Error]
      def call
        Picture.check(@plot) if @plot
        experiment = @experiment.new(@experiment.settings_from(@env).merge(@settings))
        result = Runner.new(experiment, arms, interpreter:, runs: @runs).call
        puts @json ? JSON.generate(result) : Table.new(result, experiment)
        return unless @plot

        Picture.new([[result, experiment]]).write(@plot)
        Progress.puts "The picture is in #{@plot}"
      end

      private

      # Whoever gives another form's name expects that form.
      def page(path)
        return path if ["", ".html", ".htm"].include?(File.extname(path).downcase)

        raise UsageError, "--plot is #{path.scrub.inspect}: give a name that ends in .html, as it draws a page"
      end

      def other_arms
        others = @arms::KINDS.keys - @arms::DEFAULTS
        ";\n#{" " * 37}also #{others.join(",")}" if others.any?
      end

      def interpreter = @interpreter ||= Interpreter.current

      # What cannot run here is left out, and said.
      def arms
        wanted = @arms.choose(@names, interpreter) + @rubies.map { @arms.foreign(_1) }
        able = wanted.reject do |arm|
          arm.trouble&.tap { |trouble| Progress.puts("#{arm.name} is left out: #{trouble}") }
        end
        able.any? ? able : raise(UsageError, "none of these arms can run here")
      end
    end
  end
end
