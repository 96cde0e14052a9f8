# frozen_string_literal: true

module Headway
  # A limit on the processor time of this process and its like: a container's, say. Once a period's is used up, all their threads stand
  # still until the next period.
  class Quota
    # A group's files, in the two versions of Linux's control groups: where groups are mounted, and what one says.
    VERSIONS = {
      "" => ["sys/fs/cgroup", ->(at) { File.read(File.join(at, "cpu.max")).split }],
      "cpu" => ["sys/fs/cgroup/cpu", ->(at) { %w[quota period].map { |what| File.read(File.join(at, "cpu.cfs_#{what}_us")) } }]
    }.freeze
    private_constant :VERSIONS

    class << self
      # The groups above have a say, too. In a container its own group may be all that is seen, and that at the root.
      #
      # @param root [String] of the file system
      # @return [Quota, nil] the least; nil: no limit is known
      def find(root = "/")
        alone { groups(root).flat_map { |controller, group| limits(root, controller, group) }.min_by(&:processors) }
      end

      # Under a scheduler, files are read so that other fibers may run, and those who ask are about to make what there is one of.
      #
      # @api private
      def alone(&block)
        Fiber.respond_to?(:blocking) ? Fiber.blocking(&block) : yield # Ruby 3.1 and older have none
      end

      private

      def limits(root, controller, group)
        mount, read = VERSIONS.fetch(controller)
        parts = group.split("/").reject(&:empty?)
        (0..parts.size).filter_map { |depth| limit(read, File.join(root, mount, *parts.first(depth))) }
      end

      # Lines of ID:CONTROLLERS:GROUP.
      def groups(root)
        lines = File.readlines(File.join(root, "proc/self/cgroup"), chomp: true)
        lines.flat_map do |line|
          _, controllers, group = line.split(":", 3)
          names = controllers.to_s.empty? ? [""] : controllers.split(",")
          (names & VERSIONS.keys).map { |name| [name, group.to_s] }
        end
      rescue SystemCallError
        []
      end

      def limit(read, group)
        quota, period = read.call(group).map(&:to_f)
        new(quota / period, File.join(group, "cpu.stat")) if quota&.positive? && period&.positive?
      rescue SystemCallError
        nil
      end
    end

    # @return [Float] how many processors' time may be used
    attr_reader :processors
    # @return [String] the file that tells how often it was used up
    attr_reader :path

    def initialize(processors, path)
      @processors = processors
      @path = path
      @before = [0, 0]
    end

    # Counts from now on.
    #
    # @return [void]
    def start_afresh
      @before = read
    end

    # @return [Hash{Symbol => Integer}] of the periods since {start_afresh}, or since there is the group, that it had something to do in:
    #   how many (:periods), and in how many of them it was used up (:exhausted)
    def use
      %i[periods exhausted].zip(read.zip(@before).map { |now, before| [now - before, 0].max }).to_h
    end

    private

    def read
      text = Quota.alone { File.read(@path) }
      %w[nr_periods nr_throttled].map { |name| text[/^#{name} (\d+)$/, 1].to_i }
    rescue SystemCallError
      [0, 0]
    end
  end
  private_constant :Quota
end
