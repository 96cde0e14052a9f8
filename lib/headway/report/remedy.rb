# frozen_string_literal: true

module Headway
  module Report
    # What to do about waits: have policy fair, in one line, where the figures say that it helps, and else what would, or who tells.
    class Remedy
      # Shorter waits are none that policy fair was made for, and smaller shares are worth no change.
      LONG_S = Summary::Verdict::LONG_S
      MUCH = Summary::Verdict::MUCH
      # Longer commands would hide what is said.
      COMMAND_LONGEST = 60
      # Needs no quotes in a shell.
      PLAIN = %r{\A[\w/.:%@+-]+\z}
      # Where RubyGems or Bundler found them.
      SERVER = %r{\A\S*/(?:bin|exe)/(puma|sidekiq|rackup|falcon)(?= |\z)}
      # Or another program of a gem, if the bundle has that.
      PROGRAM = %r{\A/\S*/(?:bin|exe)/([\w-]+)(?= |\z)}
      private_constant :LONG_S, :MUCH, :COMMAND_LONGEST, :PLAIN, :SERVER, :PROGRAM

      # @param data [Hash] as {Trace#to_h} returns it
      # @param paths [Array<String>] of its files, which a process knows by their names alone; none: there are none to ask
      def initialize(data, paths)
        @paths = paths
        @processes = data[:processes]
        @longest_s = data[:totals][:wait][:max_s]
        @no_policy = Summary::Verdict.no_policy(*data[:totals].values_at(:ready_batch_s, :ready_s, :gc_s, :running_s))
      end

      # @param id [Integer, nil] the waiter's process; nil: work of any
      # @param share [Float] of its time that it waited
      # @param ahead [String] how policy fair would let it go
      # @return [String] a sentence; "" when there is nothing to advise
      def sentence(id, share, ahead: "first")
        return "" if @longest_s < LONG_S || share < MUCH

        process = process_of(id)
        return " Policy fair is on already: #{asking} says whether more processes help." if fair?(process)
        return " #{@no_policy}" if @no_policy

        if process[:preempt] == "none" # M:N threads
          return " Policy fair would let it go #{ahead}, but not with M:N threads: " \
                 "`env -u RUBY_MN_THREADS headway run --policy fair -- #{command(process)}`."
        end

        # By name, as the program may be what set another policy.
        " With policy fair it would go #{ahead}: `headway run --policy fair -- #{command(process)}`."
      end

      # @param share [Float] of its time that it waited
      # @return [String] a sentence, where the GVL was free meanwhile; "" where it only takes so long to wake a thread
      def processor(share)
        return "" if @longest_s < LONG_S || share < MUCH

        " No policy helps there, but more processor time does: other programs, a quota or threads without the GVL took it."
      end

      # @return [String] a sentence, where the holder heeded no interrupt
      def native_code = " #{Summary::Verdict::NATIVE_CODE}"

      # @return [String] a sentence on what policy fair gains then; "" under that
      def once_heeded(id, share)
        @no_policy || fair?(process_of(id)) ? "" : sentence(id, share, ahead: Summary::Verdict::ONCE_HEEDED)
      end

      # @return [String] who tells how many threads and processes are right
      def asking = "#{"of a recording (--record FILE), " if @paths.empty?}`headway advise #{files}`"

      private

      def process_of(id) = @processes.find { |one| id ? one[:id] == id : one[:policy] != "fair" }

      def fair?(process) = process.nil? || process[:policy] == "fair"

      def files
        path = @paths.size == 1 ? @paths.first : directory
        path && path.size <= COMMAND_LONGEST && PLAIN.match?(path.scrub) ? path : "FILE"
      end

      # Where all files are that are to be asked, and are found by their names.
      def directory
        directories = @paths.map { |one| File.dirname(one) }.uniq
        directories.first if directories.one? && @paths.all? { |one| Trace::Directory.of?(one) }
      end

      def command(process)
        text = process[:command].to_s
        titled = Trace::Title.command(text) and return titled

        text = text.sub(SERVER) { |path| "#{"bundle exec " if path.include?("/bundle/") || lock}#{$1}" }
        text = text.sub(PROGRAM) { |path| bundled?($1) ? "bundle exec #{$1}" : path }
        return "COMMAND" if text.empty? || text.size > COMMAND_LONGEST || text.start_with?("-") || text.match?(/[^[:print:]]/)

        Trace::Title.in_a_shell(text)
      end

      def bundled?(gem) = lock.to_s.match?(/^ +#{gem} \(/)

      # Of the bundle here, if there is one that can be read.
      def lock
        @lock ||= File.read("Gemfile.lock", encoding: "UTF-8:-").scrub
      rescue SystemCallError
        nil
      end
    end
  end
end
