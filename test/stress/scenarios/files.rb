# frozen_string_literal: true

module Stress
  module Scenarios
    # Files written, copied, renamed, read back; a counter in a file under flock.
    class Files < Scenario
      def round
        jobs = rand(1..3)
        done = values_of(Array.new(jobs) { |number| start_thread { round_trip(number) } })
        account(:files, jobs, done.count(true))
        count_under_lock(rand(2..4), rand(2..6))
      end

      private

      def path(name) = File.join(@run.directory, "file-#{@rounds}-#{name}")

      def round_trip(number)
        text = "line #{number}\n" * (1000 * (number + 1))
        write_file(path(number), text)
        IO.copy_stream(path(number), path("copy-#{number}"))
        File.rename(path("copy-#{number}"), path("renamed-#{number}"))
        listed = Dir.glob(path("renamed-#{number}")).size == 1
        same = File.foreach(path("renamed-#{number}")).to_a.join == text
        File.delete(path(number), path("renamed-#{number}"))
        listed && same
      end

      def count_under_lock(threads, times)
        counter = path("counter")
        write_file(counter, "0")
        values_of(Array.new(threads) { start_thread { times.times { increment(counter) } } })
        check_equal((threads * times).to_s, File.read(counter), "counter under flock")
        File.delete(counter)
      end

      def increment(counter)
        File.open(counter, "r+") do |file|
          file.flock(File::LOCK_EX)
          count = Integer(file.sysread(20))
          file.sysseek(0)
          file.syswrite(count + 1)
        end
      end
    end
  end
end
