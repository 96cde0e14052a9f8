# frozen_string_literal: true

require "open3"
require "rbconfig"

module Stress
  module Scenarios
    # Programs started in every way Ruby has.
    class Spawns < Scenario
      RUBY = [RbConfig.ruby, "--disable=gems"].freeze

      def round
        manners = Array.new(rand(1..3)) { pick(%i[by_system by_backticks by_popen by_spawn by_open3 by_exec by_ruby killed]) }
        done = values_of(manners.map { |manner| start_thread { send(manner) } })
        check(done.all?) { "one of #{manners.join(", ")} went wrong: #{done}" }
        account(:programs, manners.size, done.count(true))
      end

      private

      def by_system = system("exit 7") == false && $?.exitstatus == 7
      def by_backticks = `echo hello` == "hello\n" && $?.success?
      def by_popen = IO.popen(["cat"], "r+") { |io| io.write("text"); io.close_write; io.read } == "text"

      def by_spawn
        IO.pipe do |reader, writer|
          pid = spawn("echo spawned; exit 3", out: writer)
          writer.close
          text = reader.read
          Process.wait2(pid).last.exitstatus == 3 && text == "spawned\n"
        end
      end

      def by_open3
        out, err, status = Open3.capture3("cat; echo err >&2; exit 5", stdin_data: "in")
        [out, err, status.exitstatus] == ["in", "err\n", 5]
      end

      def by_exec
        Process.wait2(fork { exec("/bin/sh", "-c", "exit 9") }).last.exitstatus == 9
      end

      def by_ruby
        pid = fork { exec(*RUBY, "-e", "Thread.new { exit 11 }.join") }
        Process.wait2(pid).last.exitstatus == 11
      end

      def killed
        pid = spawn("sleep 600")
        Process.kill(:TERM, pid)
        Process.wait2(pid).last.termsig == Signal.list["TERM"]
      end
    end
  end
end
