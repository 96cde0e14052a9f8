# frozen_string_literal: true

require "fileutils"
require "json"
require_relative "../draft"
require_relative "../reason"
require_relative "../recorder/file_name"

module Headway
  module Metrics
    # The processes of one application on one machine, which keep their figures in one directory: a scrape reaches any one of
    # them and must answer for all. Each writes a file of its own every few seconds; nobody waits for anybody.
    class Siblings
      # A file that nobody renewed for so many periods belongs to a process that has ended, whoever has its number now.
      STALE_PERIODS = 6
      # Nothing else in the directory is looked at, let alone removed.
      NAME = /\Aheadway-([1-9]\d*)\.json\z/
      private_constant :STALE_PERIODS, :NAME
      @all = {}

      # One for each directory: Rails makes what is mounted anew whenever its routes change.
      #
      # @param directory [String]
      # @return [Siblings]
      # @raise [SettingError] when nothing can be written there
      def self.at(directory)
        raise SettingError, "directory is \"\": give a path" if directory == ""

        @all[Recorder::FileName.absolute(directory, from: "directory")] ||= new(directory)
      end

      # @param directory [String] made if need be; for this application on this machine alone
      # @param every [Numeric] seconds
      # @raise [SettingError] when nothing can be written there
      def initialize(directory, every: 5)
        @directory = Recorder::FileName.absolute(directory, from: "directory")
        @every = every
        @read = {}
        @publishing = Mutex.new
        FileUtils.mkdir_p(@directory)
        File.writable?(@directory) or raise SettingError, "directory is #{directory.inspect}: give one that can be written to"
        @reporter = Reporter.new(every: every, to: @directory, last: false) { |families| publish(families) }.start
      rescue SystemCallError, TypeError => error
        raise SettingError, "directory is #{directory.inspect}: give one that can be written to (#{Reason.of(error)})"
      end

      # What is said of this process is in its file before, so that no sibling that is asked next says less: a counter that goes back
      # is taken for one that began at zero again.
      #
      # Of two servers in one directory each has a worker 0: those that share a number have their process number, too.
      #
      # @param age [Numeric] seconds that what is said of this process may be old: then it is what its file says. Siblings' files
      #   are looked at each time, as somebody may have been told of what is new in them
      # @return [Array<Family>] of all, each series with a label worker
      def families(age = 0)
        all = [of_this_process(age), *others]
        return @families if @all&.size == all.size && @all.zip(all).all? { |before, process| before.equal?(process) }

        @families = together(all)
        @all = all # last, whatever strikes before
        @families
      end

      # @return [void]
      def stop
        @reporter.stop
        File.delete(path)
      rescue Errno::ENOENT
        nil
      end

      private

      def path
        File.join(@directory, "headway-#{::Process.pid}.json")
      end

      def together(all)
        numbers = all.map(&:first).tally
        all = all.flat_map { |worker, pid, families| labelled(families, numbers[worker] > 1 ? "#{worker}-#{pid}" : worker) }
        all.group_by(&:name).values.map do |same|
          Family.new(*same.first.to_a.first(3), same.map(&:series).inject(:merge))
        end
      end

      # A forked child has its parent's, which is not about it.
      def of_this_process(age)
        published, at = @publishing.synchronize { @published }
        old = published && published[1] == ::Process.pid ? now - at : Float::INFINITY
        return published if old < age
        return @published.first if @reporter.report

        # Nothing can be written: what is in its file is what siblings tell, until it is too old for them.
        old < @every * STALE_PERIODS ? published : [Metrics.worker, ::Process.pid, Metrics.collect]
      end

      # A master that only forks has nothing to tell, and is no worker.
      def publish(families)
        @publishing.synchronize do # neither is answered without the other
          if Headway.started? || Metrics.worker?
            text = JSON.generate([Metrics.worker, families.map { |family| dump(family) }], allow_nan: true)
            make_directory
            Draft.write(path) { |draft| File.write(draft, text, mode: Draft::NEW) }
          end
          @published = [[Metrics.worker, ::Process.pid, families], now]
        end
      end

      # Whoever clears up may have removed it; not what it was in, as with a release that is gone.
      def make_directory
        Dir.mkdir(@directory) unless File.directory?(@directory)
      rescue Errno::EEXIST # a sibling has
        nil
      end

      def dump(family)
        [*family.to_a.first(3), family.series.map { |labels, value| [labels, value.is_a?(Distribution) ? value.to_a : value] }]
      end

      def others
        before, @read = @read, {}
        Dir.children(@directory).filter_map do |name|
          pid = name[NAME, 1]&.to_i
          read(File.join(@directory, name), pid, before) if pid && pid != ::Process.pid
        end
      rescue SystemCallError # somebody has removed it
        []
      end

      # A file may vanish at any time: siblings end, and others clear up too.
      def read(file, pid, before)
        stat = File.stat(file)
        return unless stat.file? # who opens a pipe waits for whoever writes to it
        return File.delete(file) && nil if Time.now - stat.mtime > @every * STALE_PERIODS || gone?(pid)

        seen = [stat.ino, stat.mtime, stat.size]
        (@read[pid] = before[pid]&.first == seen ? before[pid] : [seen, parsed(file, pid)]).last
      rescue StandardError # a file of another version, too
        nil
      end

      def parsed(file, pid)
        worker, families = JSON.parse(File.read(file, encoding: "UTF-8:-"), allow_nan: true) # gauges of the program's own may be no number
        [worker, pid, families.map { |family| load(*family) }]
      end

      # As {dump} makes it, or nothing of the file is taken: what is odd would show only where all of them are put together.
      def load(name, type, help, series)
        [name, type, help].all?(String) && Family::TYPES.include?(type.to_sym) or raise ArgumentError
        values = series.to_h { |labels, value| [labels.transform_keys(&:to_sym), value.is_a?(Array) ? distribution(*value) : number(value)] }
        Family.new(name, type.to_sym, help, values)
      end

      def distribution(bounds, counts, sum, count)
        bounds.size == counts.size or raise ArgumentError
        [*bounds, *counts, sum, count].each { |value| number(value) }
        Distribution.new(bounds, counts, sum, count)
      end

      def number(value)
        value.is_a?(Numeric) ? value : raise(ArgumentError)
      end

      def gone?(pid)
        ::Process.kill(0, pid)
        false
      rescue Errno::ESRCH
        true
      rescue Errno::EPERM
        false
      end

      def now
        ::Process.clock_gettime(::Process::CLOCK_MONOTONIC)
      end

      def labelled(families, worker)
        families.map do |family|
          Family.new(family.name, family.type, family.help, family.series.transform_keys { |labels| beside(labels, worker) })
        end
      end

      # A label of the program's own that has this name gets the one that Prometheus would give it.
      def beside(labels, worker)
        name = :worker
        name = :"exported_#{name}" while labels.key?(name)
        { worker: worker, **labels.transform_keys(worker: name) }
      end
    end
  end
end
