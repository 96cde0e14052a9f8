# frozen_string_literal: true

module Stress
  # Looks into processes that no longer answer, and ends them.
  module Autopsy
    GRACE = 15 # seconds a process has to die of the signal that makes Ruby report its state

    module_function

    # @return [Array<Integer>] the living processes of a group
    def group(leader)
      Dir.glob("/proc/[0-9]*/stat").filter_map do |path|
        state, _, group = File.read(path).rpartition(") ").last.split
        Integer(path[/\d+/]) if Integer(group) == leader && !%w[Z X].include?(state)
      rescue SystemCallError
        nil
      end
    end

    def of_group(leader)
      group(leader).map { |pid| "process #{pid} (#{command_line(pid)}):\n#{of(pid)}" }.join("\n")
    end

    def command_line(pid)
      File.read("/proc/#{pid}/cmdline").tr("\0", " ").strip
    rescue SystemCallError
      "gone"
    end

    # Native stacks where there is a debugger, else what the kernel knows of each thread.
    def of(pid)
      return kernel_view(pid) unless system("command -v gdb >/dev/null")

      IO.popen(["gdb", "-p", pid.to_s, "-batch", "-nx", "-ex", "set pagination off", "-ex", "thread apply all bt 20"],
               in: File::NULL, err: File::NULL, &:read).scrub.gsub(/ \(.{80,}\) (?=at|from)/, " (...) ")
    end

    def kernel_view(pid)
      Dir.glob("/proc/#{pid}/task/*").map do |task|
        "#{File.read("#{task}/comm").chomp}: #{File.read("#{task}/stat").rpartition(") ").last[0]} " \
          "#{File.read("#{task}/wchan") rescue nil}"
      rescue SystemCallError
        nil
      end.compact.join("\n")
    end

    # Ruby answers SIGSEGV with a report of where it is, even when no thread of it can run.
    def end_group(leader)
      signal(:SEGV, leader)
      deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + GRACE
      until group(leader).empty? || Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
        reap(leader)
        sleep 0.05
      end
      signal(:KILL, -leader)
      reap(leader)
    end

    def signal(name, target)
      Process.kill(name, target)
    rescue Errno::ESRCH
      nil
    end

    def reap(pid)
      Process.wait(pid, Process::WNOHANG)
    rescue Errno::ECHILD
      nil
    end
  end
end
