# frozen_string_literal: true

require "socket"

module Headway
  module Metrics
    module Adapters
      # Headway's metrics as StatsD datagrams: counters as what was added, gauges as they are, histograms as _sum and _count. Counters of
      # several processes add up; of a gauge each would overwrite the others', so it says whose it is: {Metrics.worker}.
      #
      #   Headway::Metrics::Adapters::StatsD.install(host: "127.0.0.1", port: 8125)
      class StatsD
        # What fits into one datagram on any network.
        DATAGRAM_BYTES = 1400
        private_constant :DATAGRAM_BYTES

        # @param host [String]
        # @param port [Integer]
        # @param tags [Boolean] labels as DogStatsD's tags; false: in the name, for servers that know no tags
        # @param every [Numeric] seconds between two reports
        # @return [Reporter] at work; its stop ends it
        # @raise [SettingError] a value that means nothing
        def self.install(host: "127.0.0.1", port: 8125, tags: true, every: 10)
          Reporter.for([host, port]) do
            adapter = new(host, port, tags: tags)
            Reporter.new(every: every, to: "StatsD at #{host}:#{port}") { |families| adapter.report(families) }
          end
        end

        # @param host [String]
        # @param port [Integer]
        # @raise [SettingError]
        def initialize(host, port, tags: true)
          raise SettingError, "host is #{host.inspect[0, 60]}: give a name or an address" unless host.is_a?(String) && !host.empty?
          raise SettingError, "port is #{port.inspect[0, 60]}: give a number from 1 to 65535" unless port.is_a?(Integer) && port.between?(1, 65_535)
          raise SettingError, "tags is #{tags.inspect[0, 60]}: give true or false" unless [true, false].include?(tags)

          @host = host
          @port = port
          @tags = tags
          @deltas = Deltas.new
        end

        # @param families [Array<Family>]
        # @return [void]
        def report(families)
          socket = connect # first: while the host isn't known, all is still to be told
          lines = @deltas.flat(families).filter_map { |change| line(change) unless change.type == :counter && change.number.zero? }
          pack(lines).each { |text| write(socket, text) }
        rescue Errno::ECONNREFUSED
          nil # nobody listens yet; the next report may find somebody
        ensure
          socket&.close
        end

        private

        # IPv4 first, as other clients do: localhost is often ::1, too, where few servers of StatsD listen, and a datagram that nobody takes
        # is nobody's to tell of.
        def connect
          addresses = Addrinfo.getaddrinfo(@host, @port, nil, :DGRAM).partition(&:ipv4?).flatten
          begin
            addresses.shift.connect
          rescue SystemCallError
            addresses.empty? ? raise : retry
          end
        end

        # What no datagram can hold is in one by itself.
        def write(socket, text)
          socket.write(text)
        rescue Errno::EMSGSIZE => error
          Integrations::Guard.note("#{text[/[^:]+/]} for StatsD at #{@host}:#{@port}", error)
        end

        def pack(lines)
          lines.each_with_object([]) do |line, texts|
            if texts.any? && texts.last.bytesize + line.bytesize < DATAGRAM_BYTES then texts.last << "\n" << line
            else texts << +line
            end
          end
        end

        def line(change)
          number = change.number
          return said(change, number, "c") unless change.type == :gauge

          # A sign is taken for a change of the gauge, not for what it is: below zero it starts from there.
          number.negative? ? "#{said(change, 0, "g")}\n#{said(change, number, "g")}" : said(change, number, "g")
        end

        def said(change, number, kind)
          labels = change.type == :gauge ? of_this_process(change.labels) : change.labels
          labels = labels.transform_values { |value| value.gsub(/[:|,#@\s]/, "_") }
          return "#{change.name}:#{number}|#{kind}#{"|##{labels.map { _1.join(":") }.join(",")}" unless labels.empty?}" if @tags

          "#{[change.name, *labels.values.map { _1.tr(".", "_") }].join(".")}:#{number}|#{kind}"
        end

        def of_this_process(labels)
          { **labels.transform_keys { |label| label == :worker ? :exported_worker : label }, worker: Metrics.worker }
        end
      end
    end
  end
end
