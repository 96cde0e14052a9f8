# frozen_string_literal: true

require "etc"

module Headway
  # How many processors this process has: those it may run on, or as many as its CPU quota (a container's, say) is worth.
  module Processors
    # A group's files, in the two versions of Linux's control groups: where groups are mounted, and what one says.
    VERSIONS = {
      "" => ["sys/fs/cgroup", ->(at) { File.read(File.join(at, "cpu.max")).split }],
      "cpu" => ["sys/fs/cgroup/cpu", ->(at) { %w[quota period].map { |what| File.read(File.join(at, "cpu.cfs_#{what}_us")) } }]
    }.freeze
    private_constant :VERSIONS

    class << self
      # @return [Integer] with a quota, rounded up: how many processes are of use
      def count
        [Etc.nprocessors, quota&.ceil].compact.min
      end

      # The groups above have a say, too. In a container its own group may be all that is seen, and that at the root. No other fiber
      # runs meanwhile: under a scheduler, files are read so that others may, and those who ask are about to make what there is one of.
      #
      # @param root [String] of the file system
      # @return [Float, nil] how many processors' time it may use; nil: no limit is known
      def quota(root = "/")
        least = proc { groups(root).flat_map { |controller, group| limits(root, controller, group) }.min }
        Fiber.respond_to?(:blocking) ? Fiber.blocking(&least) : least.call # Ruby 3.1 and older have none
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
        quota / period if quota&.positive? && period&.positive?
      rescue SystemCallError
        nil
      end
    end
  end
  private_constant :Processors
end
