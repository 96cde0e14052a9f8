# frozen_string_literal: true

require_relative "../trace"
require_relative "../trace/directory"
require_relative "../recorder/file_name"

module Headway
  module CLI
    # The traces that words on the command line name: files, and directories for every *.headway below them.
    module TraceArguments
      # Of files in a message.
      MOST_NAMES = 3
      private_constant :MOST_NAMES

      class << self
        # @param words [Array<String>]
        # @param command [String]
        # @raise [UsageError] there are none
        def need(words, command)
          raise UsageError, "no trace file: give the file that headway run --record wrote (headway #{command} --help says more)" if words.empty?
        end

        # @param words [Array<String>]
        # @return [Array<String>] files, each once; what can't be read of a directory is left out, and said
        # @raise [UsageError] nothing in a directory can be read
        def files(words)
          words.flat_map { |word| File.directory?(word) ? files_in(word) : word }.uniq { |file| identity(file) }
        end

        # @param files [Array<String>] to be read
        # @param out [String] what is to be written
        # @raise [UsageError] it is one of them, or another trace, as the first of several is where the name before them was forgotten
        def spare(files, out, option)
          raise UsageError, "#{option} #{out} is a trace to be read" if files.any? { |file| File.identical?(file, out) }
          raise UsageError, "#{option} #{out} is a trace, which would be lost: give a file to write to" if Recorder::FileName.trace?(out)
        end

        # What is in a directory may be of several runs, of which only one can be replayed as one: that in which most was done.
        #
        # @param words [Array<String>]
        # @param files [Array<String>] as {files} gives them
        # @return [Array<String>] files
        # @raise [Trace::Error] nothing of a file can be read
        def of_one_run(words, files)
          return files if files.size < 2 || words.none? { |word| File.directory?(word) }

          data = Trace.open(*files).to_h
          runs = Trace::Directory.runs(data[:processes])
          work = data[:threads].each_with_object(Hash.new(0.0)) { |thread, sums| sums[thread[:process]] += thread[:running_s] }
          most = runs.max_by { |run| run.sum { |process| work[process[:id]] } }
          taken = files.values_at(*most.map { |process| process[:id] }.sort)
          CLI.say("of #{runs.size} runs one after the other the one in which most was done is taken: #{names(taken)}") if runs.size > 1
          taken
        end

        # @param processes [Array<Hash>] as in {Trace#to_h}
        # @param files [Array<String>]
        # @return [void]
        def warn_of_runs(processes, files)
          runs = Trace::Directory.runs(processes)
          return if runs.size < 2

          last = files.values_at(*runs.last.map { |process| process[:id] }.sort)
          CLI.say("warning: these traces are of #{runs.size} runs one after the other; the last of them alone is #{names(last)}")
        end

        private

        def identity(file)
          stat = File.stat(file)
          [stat.dev, stat.ino]
        rescue SystemCallError
          file # whoever opens it says what is wrong with it
        end

        def files_in(directory)
          bad = []
          files = Trace::Directory.files(directory) { |file, why| bad << [file, why] }
          if files.empty?
            why = bad.empty? ? "there is no *.headway" : "#{bad.first.join(": ")}#{" (and #{bad.size - 1} more)" if bad.size > 1}"
            raise UsageError, "no trace that can be read in directory #{directory}: #{why}"
          end
          bad.each { |file, why| CLI.say("warning: #{file} is left out: #{why}") }
          files
        rescue SystemCallError => error
          raise UsageError, "directory #{directory} can't be read: #{Reason.of(error)}"
        end

        def names(files)
          more = files.size - MOST_NAMES
          [files.first(MOST_NAMES).join(" "), *("(and #{more} more)" if more.positive?)].join(" ")
        end
      end
    end
  end
end
