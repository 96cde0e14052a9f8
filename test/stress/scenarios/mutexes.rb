# frozen_string_literal: true

module Stress
  module Scenarios
    # A counter that only mutual exclusion keeps right, with its owners computing, sleeping and passing inside.
    class Mutexes < Scenario
      def round
        threads = rand(2..5)
        times = rand(5..30)
        manner = pick(%i[synchronize try_lock sleep compute pass])
        lock = Thread::Mutex.new
        count = 0
        values_of(Array.new(threads) do
          start_thread do
            times.times do
              enter(lock, manner)
              begin
                before = count
                dawdle(lock, manner)
                count = before + 1
              ensure
                lock.unlock
              end
            end
          end
        end)
        account(:critical_sections, threads * times, count)
        check(!lock.locked?, "a mutex stays locked")
      end

      private

      def enter(lock, manner)
        return lock.lock unless manner == :try_lock

        Thread.pass until lock.try_lock
      end

      def dawdle(_lock, manner)
        case manner
        when :sleep then sleep 0.0002
        when :compute then compute(3000)
        when :pass then Thread.pass
        end
      end
    end
  end
end
