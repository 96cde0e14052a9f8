# frozen_string_literal: true

module Soak
  # What a process has of the system: resident memory, native threads, open descriptors.
  module Figures
    module_function

    # @return [Hash, nil] nil of one that is gone
    def of(pid)
      File.directory?("/proc/self/task") ? from_proc(pid) : from_ps(pid)
    rescue Errno::ENOENT, Errno::ESRCH
      nil
    end

    def from_proc(pid)
      status = File.read("/proc/#{pid}/status")
      rss = status[/^VmRSS:\s+(\d+)/, 1] or return
      { rss_kb: Integer(rss), threads: Integer(status[/^Threads:\s+(\d+)/, 1]), descriptors: Dir.children("/proc/#{pid}/fd").size }
    end

    # Elsewhere threads are counted as lines (macOS), descriptors not at all.
    def from_ps(pid)
      rss = IO.popen(["ps", "-o", "rss=", "-p", pid.to_s], &:read).to_i
      return if rss.zero?

      { rss_kb: rss, threads: IO.popen(["ps", "-M", "-p", pid.to_s], err: File::NULL, &:readlines).size - 1, descriptors: 0 }
    end

    # Least squares: by how much y grows for each unit of x.
    # @param points [Array<(Numeric, Numeric)>]
    def slope(points)
      return 0.0 if points.size < 3

      mean_x = points.sum(&:first) / points.size.to_f
      mean_y = points.sum(&:last) / points.size.to_f
      spread = points.sum { |x, _| (x - mean_x)**2 }
      spread.zero? ? 0.0 : points.sum { |x, y| (x - mean_x) * (y - mean_y) } / spread
    end
  end
end
