# frozen_string_literal: true

require_relative "../protobuf"

module Headway
  module Report
    class Perfetto
      # The packets of one sequence of a Perfetto trace. Names are written once and then meant by number; what doesn't
      # change from one event of a track to the next is encoded once, so that an event costs its time and a copy.
      class Packets
        # Fields of the published schema, by message.
        TRACE_PACKET = 1
        PACKET = { timestamp: 8, sequence: 10, track_event: 11, interned: 12, sequence_flags: 13, descriptor: 60 }.freeze
        DESCRIPTOR = { uuid: 1, name: 2, process: 3, thread: 4, parent: 5 }.freeze
        PROCESS = { pid: 1, command: 2, name: 6, labels: 8 }.freeze
        THREAD = { pid: 1, tid: 2, name: 5 }.freeze
        EVENT = { category: 3, annotations: 4, type: 9, name: 10, track: 11 }.freeze
        ANNOTATION = { name: 1, double: 5, entries: 11 }.freeze
        INTERNED = { categories: 1, names: 2, annotation_names: 3 }.freeze
        SLICE_BEGIN = 1
        SLICE_END = 2
        INSTANT = 3
        STATE_CLEARED = 1
        NEEDS_STATE = 2
        # A Ruby thread may run on any native one and share it, so it gets a number that no native thread has: Linux
        # counts up to 4,194,304.
        FIRST_TID = 1 << 23
        private_constant(*constants(false))

        def initialize
          @tracks = 0
          @interned = INTERNED.to_h { |kind, _| [kind, {}] }
          @sequence = Protobuf.number(PACKET[:sequence], 1)
          @entry_heads = {}
          @needs_state = @sequence + Protobuf.number(PACKET[:sequence_flags], NEEDS_STATE)
          @before_event = @needs_state + Protobuf.bytes(PACKET[:track_event], "")[0...-1] # its length is to follow
        end

        # @return [String] the packet that comes first
        def start
          packet(@sequence + Protobuf.number(PACKET[:sequence_flags], STATE_CLEARED))
        end

        # @return [Integer] a number no other track has
        def new_track
          @tracks += 1
        end

        # @return [String] describes a process' track
        def process(track, process)
          labels = ["Ruby #{process[:ruby]}", "policy #{process[:policy]}"]
          descriptor(track, PROCESS.values_at(:pid, :command, :name, :labels).zip(
            [process[:pid], process[:command], process[:command], labels]
          ).sum("".b) { |field, value| field_of(field, value) }, DESCRIPTOR[:process])
        end

        # @return [String] describes a thread's track
        def thread(track, pid, id, name)
          descriptor(track, Protobuf.number(THREAD[:pid], pid) + Protobuf.number(THREAD[:tid], FIRST_TID + id) +
                            Protobuf.text(THREAD[:name], name), DESCRIPTOR[:thread])
        end

        # @return [String] describes a track beneath another one
        def child(track, parent, name)
          packet(Protobuf.bytes(PACKET[:descriptor],
                                Protobuf.number(DESCRIPTOR[:uuid], track) +
                                Protobuf.number(DESCRIPTOR[:parent], parent) +
                                Protobuf.text(DESCRIPTOR[:name], name)) + @sequence)
        end

        # @param output [#<<] takes the packets that give a name its number, which has to come first
        # @return [Event] the beginning of such a slice
        def beginning(track, name, category, output)
          event(SLICE_BEGIN, track, named(name, category, output))
        end

        # @return [Event] the end of a slice
        def ending(track)
          event(SLICE_END, track, "".b)
        end

        # What ends of slices are made of whose arguments say something, for each name a number: what stands before the
        # event's length, the event's own fields, and the arguments' title. After it comes {#entry_head} and the number, by turns.
        #
        # @return [Array<String>]
        def pieces_of_a_telling_end(track, title, output)
          title = Protobuf.number(ANNOTATION[:name], intern(:annotation_names, title, output))
          [@before_event, event_head(SLICE_END, track), title]
        end

        # @return [String] all of an entry but its number, a double
        def entry_head(name, output)
          @entry_heads[name] ||= begin
            named = Protobuf.number(ANNOTATION[:name], intern(:annotation_names, name, output))
            Protobuf.bytes(ANNOTATION[:entries], named + Protobuf.double(ANNOTATION[:double], 0.0))[0...-8].freeze
          end
        end

        # @return [String] a whole slice
        def slice(track, name, category, from_ns, to_ns, output)
          buffer = "".b
          beginning(track, name, category, output).append(buffer, Protobuf.varint(from_ns))
          ending(track).append(buffer, Protobuf.varint(to_ns))
        end

        # @return [String] an event without length
        def instant(track, name, category, time_ns, output)
          event(INSTANT, track, named(name, category, output)).append("".b, Protobuf.varint(time_ns))
        end

        # An event but for its time.
        class Event
          TIMESTAMP = 0x40
          PACKET = 0x0a
          private_constant :TIMESTAMP, :PACKET

          # @param rest [String] the packet's fields after its time
          def initialize(rest)
            @rest = rest
          end

          attr_reader :rest

          # @param time [String] nanoseconds as a varint
          # @return [String] the buffer with the packet added to it
          def append(buffer, time)
            buffer << PACKET << Protobuf.varint(1 + time.bytesize + @rest.bytesize) << TIMESTAMP << time << @rest
          end
        end

        private

        def event_head(type, track)
          Protobuf.number(EVENT[:type], type) + Protobuf.number(EVENT[:track], track)
        end

        def event(type, track, rest)
          head = event_head(type, track)
          Event.new(@before_event + Protobuf.varint(head.bytesize + rest.bytesize) << head << rest)
        end

        def named(name, category, output)
          Protobuf.number(EVENT[:category], intern(:categories, category, output)) +
            Protobuf.number(EVENT[:name], intern(:names, name, output))
        end

        def intern(kind, text, output)
          known = @interned[kind]
          known[text] || begin
            number = known[text] = known.size + 1
            entry = Protobuf.bytes(INTERNED[kind], Protobuf.number(1, number) + Protobuf.text(2, text))
            output << packet(Protobuf.bytes(PACKET[:interned], entry) + @needs_state)
            number
          end
        end

        def descriptor(track, whose, field)
          packet(Protobuf.bytes(PACKET[:descriptor],
                                Protobuf.number(DESCRIPTOR[:uuid], track) + Protobuf.bytes(field, whose)) + @sequence)
        end

        def field_of(field, value)
          case value
          when Integer then Protobuf.number(field, value)
          when Array then value.sum("".b) { |one| Protobuf.text(field, one) }
          else Protobuf.text(field, value)
          end
        end

        def packet(content)
          Protobuf.bytes(TRACE_PACKET, content)
        end
      end
    end
  end
end
