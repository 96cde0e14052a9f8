# frozen_string_literal: true

require_relative "../summary"

module Headway
  module Report
    # How threads and frames are called in every report. Names come from the program that was recorded: any length, any
    # characters, the same one for a hundred threads, or none.
    class Labels
      # What the block of a method says of itself is of no use to whoever looks for the method.
      PART_OF = /\A(?:(?:block|rescue|ensure)(?: \(\d+ levels?\))? in )+/.freeze
      NOBODY = "nobody (the GVL was free)"
      OTHERS = "other threads"
      # What the recorder writes where a function has no file.
      C_FUNCTION = "<cfunc>"
      # Of a path, what tells files apart.
      PARTS = 2
      private_constant :PART_OF, :NOBODY, :OTHERS, :C_FUNCTION, :PARTS

      # @param data [Hash] as {Trace#to_h} returns it
      def initialize(data)
        @processes = data[:processes].to_h { |process| [process[:id], process] }
        threads = data[:threads]
        @several = @processes.size > 1
        @pids = data[:processes].map { |process| process[:pid] }.tally
        @taken = threads.map { |thread| [thread[:process], short_name(thread)] }.tally
        @labels = threads.to_h { |thread| [thread[:id], build(thread)] }
      end

      # @param id [Integer, nil] a thread's; nil for nobody
      # @return [String] a label that no other thread of the trace has
      def thread(id)
        id.nil? ? NOBODY : @labels.fetch(id) { "thread #{id}" }
      end

      # @return [String] the same in a sentence
      def thread_in_text(id) = thread(id).tr("`", "'")

      # @param part [Hash] of a thread's waited_for
      # @return [String] whom it stands for
      def holder(part)
        part[:others] ? OTHERS : thread(part[:thread])
      end

      # @param room [Integer, nil] characters: what is longer goes without the first folders of its path, but never without the file and the line
      # @return [String] `Class#method file:line`
      def self.frame(frame, room: nil)
        method, where = frame[:method].to_s, place(frame)
        where = ending(where, room - method.length - 1) if room
        [method, where].reject(&:empty?).join(" ")
      end

      # @return [String] `file:line`, or as much of it as is known
      def self.place(frame)
        file = frame[:file].to_s
        return "" if file.empty? || file == C_FUNCTION

        frame[:line].to_i.positive? ? "#{file}:#{frame[:line]}" : file
      end

      # @param place [String, nil] `file:line`; empty, or nil: not known
      # @return [String] a method as a sentence names it
      def self.code(method, place)
        Summary::Text.plain("#{quoted(method)}#{" (#{place.split("/").last(PARTS).join("/")})" unless place.to_s.empty?}")
      end

      # Whoever shows a sentence goes by its backquotes, of which a name (Kernel#`, for one) may have one.
      #
      # @return [String] as in a sentence
      def self.quoted(name) = "`#{Summary::Text.plain(name).tr("`", "'")}`"

      # What is evaluated may be said to be in a file of any name, also of one that no file can have.
      #
      # @return [String]
      def self.basename(path) = File.basename(path.tr("\0", "?"))

      # @param kind [Hash] a row of the trace's work
      # @return [String] as in a sentence
      def self.work(kind) = kind[:name].empty? ? "work without a name" : quoted(Summary::Text.cut(kind[:name]))

      # @return [String] the method a frame belongs to, without the blocks around the very line
      def self.method_of(frame)
        name = frame[:method].to_s.sub(PART_OF, "")
        return name unless name.empty? || name.start_with?("<")

        file = basename(frame[:file].to_s)
        [name, file].reject(&:empty?).join(" of ")
      end

      def self.ending(path, room)
        folders = path.split("/")
        last = folders.pop(PARTS)
        return path if path.length <= room || folders.empty?

        folders.shift until folders.empty? || ["…", *folders, *last].join("/").length <= room
        ["…", *folders, *last].join("/")
      end
      private_class_method :ending

      private

      def build(thread)
        name = short_name(thread)
        number = "thread #{thread[:number]}"
        alike = @taken[[thread[:process], name]] > 1
        name = unnamed(thread) || number if name.empty?
        known_by = [*(number if alike && name != number), *(process(thread[:process]) if @several)]
        known_by.empty? ? name : "#{name} (#{known_by.join(", ")})"
      end

      # Names may differ only where they are cut.
      def short_name(thread) = Summary::Text.thread(thread[:name])

      # Containers have a process 1 each.
      def process(id)
        process = @processes[id] || {}
        alike = @pids[process[:pid]].to_i > 1
        "process #{process[:pid]}#{" of #{Summary::Text.cut(process[:file], 80)}" if alike && process[:file]}"
      end

      def unnamed(thread)
        site = thread[:site].to_s
        "thread of #{Summary::Text.cut(Labels.basename(site))}" unless site.empty?
      end
    end
  end
end
