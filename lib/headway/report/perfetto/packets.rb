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
          @needs_state = @sequence + Protobuf.number(PACKET[:sequence_flags], NEEDS_STATE)
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
        # @return [String] what follows the time in the packet that begins such a slice
        def begin_tail(track, name, category, output)
          tail(SLICE_BEGIN, track, Protobuf.number(EVENT[:category], intern(:categories, category, output)) +
                                   Protobuf.number(EVENT[:name], intern(:names, name, output)))
        end

        # @param entries [Array<Array(String, Float)>] what the slice's arguments say under the title
        # @return [String] what follows the time in the packet that ends a slice
        def end_tail(track, title = nil, entries = nil, output = nil)
          tail(SLICE_END, track, title ? dictionary(title, entries, output) : "".b)
        end

        # @return [String] a whole slice
        def slice(track, name, category, from_ns, to_ns, output)
          head = begin_tail(track, name, category, output)
          append(append("".b, from_ns, head), to_ns, end_tail(track))
        end

        # @return [String] an event without length
        def instant(track, name, category, time_ns, output)
          append("".b, time_ns,
                 tail(INSTANT, track, Protobuf.number(EVENT[:category], intern(:categories, category, output)) +
                                      Protobuf.number(EVENT[:name], intern(:names, name, output))))
        end

        # Adds the packet of a tail and its time.
        #
        # @return [String] the buffer
        def append(buffer, time_ns, tail)
          time = Protobuf.varint(time_ns)
          buffer << 0x0a << Protobuf.varint(1 + time.bytesize + tail.bytesize) << 0x40 << time << tail
        end

        private

        def tail(type, track, rest)
          @needs_state + Protobuf.bytes(PACKET[:track_event],
                                        Protobuf.number(EVENT[:type], type) +
                                        Protobuf.number(EVENT[:track], track) + rest)
        end

        def dictionary(title, entries, output)
          inner = entries.sum(Protobuf.number(ANNOTATION[:name], intern(:annotation_names, title, output))) do |name, value|
            Protobuf.bytes(ANNOTATION[:entries],
                           Protobuf.number(ANNOTATION[:name], intern(:annotation_names, name, output)) +
                           Protobuf.double(ANNOTATION[:double], value))
          end
          Protobuf.bytes(EVENT[:annotations], inner)
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
