# frozen_string_literal: true

require_relative "options"
require_relative "process_argument"
require_relative "recording"
require_relative "../recorder/file_name"

module Headway
  module CLI
    # `headway ctl`: settings of a running process, read and changed.
    module Ctl
      # As they may be typed, and what they are called in the protocol.
      NAMES = { "policy" => :policy, "quantum" => :quantum_ms, "quantum_ms" => :quantum_ms, "preempt" => :preempt }.freeze
      private_constant :NAMES

      class << self
        # @param argv [Array<String>]
        # @return [Integer] the exit status
        # @raise [UsageError]
        def call(argv)
          options = {}
          pid, *words = parser(options).leading(argv)
          options[:json] = true if words.delete("--json") # a value may well begin with a dash, so options end at the PID
          action = words.shift
          raise UsageError, "no process: give a PID, such as headway ctl 4711 get (headway top lists them)" if pid.nil?

          pid = ProcessArgument.pid(pid)
          case action
          when "get" then get(pid, words, options[:json])
          when "set" then set(pid, words, options[:json])
          when "dump" then dump(pid, words, options[:json])
          when "record" then Recording.call(pid, words, json: options[:json])
          else raise UsageError, "#{action ? "#{action.scrub.inspect} is no action" : "nothing to do"}: give get, set, dump or record"
          end
        end

        private

        def parser(options)
          Options.new("ctl", "[--json] PID get [NAME] | set NAME VALUE... | dump [PATH] | record start|stop ...") do |parser|
            parser.on("--json", "print one JSON object") { options[:json] = true }
            parser.separator("")
            parser.separator("NAME is policy (fair, quantum, observe), quantum (milliseconds) or preempt (signal, poll).")
            parser.separator("get without a NAME prints all, get stats everything that is counted, as JSON.")
            parser.separator("set takes several pairs of NAME and VALUE, and changes all of them or none.")
            parser.separator("get recorder prints what is recorded, dump writes what the flight recorder holds into a file.")
            parser.separator("record start [FILE] begins a recording, record stop ends it. FILE must not be there yet.")
            parser.separator("  --mode stream (with a FILE: all of it) or flight (the last events, for dump)")
            parser.separator("  --events N          the ring's size")
            parser.separator("  --seconds S         flight: dumps leave out what is older")
            parser.separator("  --wait-threshold S  flight: a wait of S seconds dumps by itself")
            parser.separator("")
          end
        end

        def get(pid, words, json)
          raise UsageError, "#{words[1].scrub.inspect} is not expected here: get takes one NAME" if words.size > 1
          return print_stats(pid) if words.first == "stats"
          return Recording.print(ProcessArgument.ask(pid, &:recorder), json: json) if words.first == "recorder"

          name = setting(words.first, ", preempt, recorder or stats") if words.any?
          settings = ProcessArgument.ask(pid, &:settings)
          if json then CLI.print_json(settings: name ? settings.slice(name) : settings)
          elsif name then puts value(settings.fetch(name))
          else print_settings(settings)
          end
          0
        end

        def set(pid, words, json)
          raise UsageError, "nothing to set: give a NAME and a VALUE, such as headway ctl #{pid} set quantum 10" if words.empty?

          pairs = words.each_slice(2).map { |name, text| [setting(name), text, name] }
          pairs.each { |_, text, name| raise UsageError, "#{name} needs a value (headway ctl --help says which)" if text.nil? }
          values = pairs.to_h { |key, text, name| [key, Settings.public_send(key, text, from: name)] }
          settings = ProcessArgument.ask(pid) { |client| client.set(values) }
          json ? CLI.print_json(settings: settings) : print_settings(settings)
          0
        end

        def dump(pid, words, json)
          raise UsageError, "#{words[1].scrub.inspect} is not expected here: dump takes one PATH" if words.size > 1

          path = words.first && Recorder::FileName.absolute(words.first)
          path = ProcessArgument.ask(pid) { |client| dump_of(client, path) }
          json ? CLI.print_json(dump: path) : puts(path)
          0
        end

        def dump_of(client, path)
          client.dump(path)
        rescue Control::ClientError => error
          raise UsageError, "#{error.message}#{": #{way_to_dump(client)}" if error.no_flight_recorder?}"
        end

        # There is one recording at a time.
        def way_to_dump(client)
          stream = client.recorder or return "headway ctl #{client.pid} record start --mode flight begins one"
          "what is recorded is in #{Summary::Text.plain(stream[:file])} once headway ctl #{client.pid} record stop has ended it"
        end

        def setting(name, others = " or preempt")
          NAMES[name] || raise(UsageError, "no setting is named #{name.scrub.inspect}: give policy, quantum#{others}")
        end

        def print_stats(pid)
          stats = ProcessArgument.ask(pid, &:stats)
          require "json"
          puts JSON.pretty_generate(stats)
          0
        end

        def print_settings(settings)
          puts "policy   #{settings[:policy]}", "quantum  #{value(settings[:quantum_ms])} ms", "preempt  #{settings[:preempt]}"
        end

        def value(value)
          value.is_a?(Float) && value == value.floor ? value.to_i.to_s : value.to_s
        end
      end
    end
  end
end
