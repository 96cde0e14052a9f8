# frozen_string_literal: true

require "monitor"
require "sqlite3"
require "timeout"
require_relative "../harness/computing"
require_relative "answer"

module Soak
  # The application under attack. Each request brings a number (X-Number), which its answer is made of, and says how long the
  # answer is to be (X-Size); its path says what is done before.
  class Application
    include Harness::Computing

    # Before Ruby 4 Ractor#take at times never returns, without Headway, too: after some 3,000 of them here.
    RACTORS = Ractor.method_defined?(:value)
    private_constant :RACTORS

    # @return [Hash] path => how often of so many requests
    ROUTES = { "compute" => 10, "sleep" => 10, "sql" => 10, "lock" => 8, "queue" => 6, "fails" => 3, "throws" => 3, "timeout" => 8,
               "kill" => 6, "children" => 2, "ractor" => RACTORS ? 1 : 0, "stream" => 8, "callable" => 3, "breaks" => 3, "upload" => 5,
               "big" => 3, "naps" => 6, "fiber" => 4, "collect" => 1, "helpers" => 4, "compress" => 6 }.freeze
    FAILING = %w[fails throws].freeze # 500, by Puma
    BREAKING = %w[breaks].freeze      # cut short in the middle

    class Failure < StandardError; end

    def initialize(database)
      @database = database
      @mutex = Thread::Mutex.new
      @monitor = Monitor.new
      @condition = Thread::ConditionVariable.new
      @own = Thread::Mutex.new
    end

    def call(env)
      route = env["PATH_INFO"].delete_prefix("/")
      return [404, {}, ["no such thing\n"]] unless ROUTES.key?(route)

      number = Integer(env["HTTP_X_NUMBER"])
      size = Integer(env["HTTP_X_SIZE"])
      body = send("do_#{route}", number, size, env)
      headers = { "content-type" => "text/plain", "x-number" => number.to_s, "x-process" => process }
      [200, headers, body || [Answer.of(number, size)]]
    end

    private

    def process = "#{Process.pid} #{GC.count} #{GC.stat(:heap_live_slots)} #{Thread.list.size}"

    def do_compute(number, *) = compute(100_000 + number % 7 * 100_000).then { nil }
    def do_sleep(number, *) = sleep(number % 20 / 1000.0).then { nil }
    def do_naps(*) = 20.times { sleep 0.0002 }.then { nil }
    def do_collect(*) = GC.start
    def do_big(*) = nil

    def do_sql(number, *)
      divisor = number % 17 + 1
      count, = connection.execute("SELECT count(*) FROM numbers WHERE number % ? = 0", [divisor]).first
      count == 5_000 / divisor or raise "SQLite counted #{count}"
      nil
    end

    # A connection is of a thread, and of a process.
    def connection
      owner, connection = Thread.current.thread_variable_get(:soak_connection)
      return connection if owner == Process.pid

      SQLite3::Database.new(@database, readonly: true).tap do |made|
        Thread.current.thread_variable_set(:soak_connection, [Process.pid, made])
      end
    end

    def do_lock(number, *)
      @mutex.synchronize { number.even? ? compute(20_000) : sleep(0.001) }
      @monitor.synchronize { @monitor.synchronize { compute(10_000) } }
      @mutex.synchronize do
        @condition.signal
        @condition.wait(@mutex, 0.002)
      end
      nil
    end

    # Answered by a thread of the process's own, which others ask at the same time.
    def do_queue(number, *)
      reply = Thread::Queue.new
      clerk << [number, reply]
      reply.pop(timeout: 30) == number * 2 or raise "the clerk answered wrongly"
      nil
    end

    def clerk
      @own.synchronize do
        next @clerk if @clerk_of == Process.pid

        @clerk_of = Process.pid
        @clerk = queue = Thread::Queue.new
        Thread.new { loop { queue.pop.then { |number, reply| reply << number * 2 } } }
        queue
      end
    end

    def do_fails(number, *)
      compute(50_000)
      raise Failure, number.to_s
    end

    def do_throws(number, *) = catch(:"other#{number % 3}") { throw :nowhere_to_be_caught, number }

    def do_timeout(number, *)
      place = [-> { loop { 1 + 1 } }, -> { sleep }, -> { Thread::Queue.new.pop }, -> { loop { sleep 0.0001 } },
               -> { nil while true }]
      Timeout.timeout(0.005 + number % 10 / 1000.0) { place[number % place.size].call }
      raise "no timeout"
    rescue Timeout::Error
      Timeout.timeout(20) { compute(10_000) }
      nil
    end

    def do_kill(number, *)
      threads = [Thread.new { loop { 1 + 1 } }, Thread.new { sleep }, Thread.new { @mutex.synchronize { compute(5_000) }; sleep },
                 Thread.new { Thread.current.report_on_exception = false; loop { 1 + 1 } }]
      sleep 0.002 if number.even?
      threads.last.raise(Failure, "stop")
      threads.first(3).each(&:kill)
      threads.first(3).each { |thread| thread.join(30) or raise "a thread outlives its kill" }
      begin
        threads.last.join(30) or raise "a thread outlives an exception"
        raise "an exception got lost"
      rescue Failure
        nil
      end
    end

    def do_helpers(number, *)
      threads = Array.new(4) { |index| Thread.new { index.even? ? compute(30_000) : sleep(0.001); number + index } }
      threads.map(&:value) == Array.new(4) { |index| number + index } or raise "a helper's value got lost"
      nil
    end

    def do_children(number, *)
      status = number % 200
      case number % 3
      when 0
        _, ended = Process.wait2(fork { Thread.new { compute(10_000) }.join; exit!(status) })
        ended.exitstatus == status or raise "a child ended with #{ended}"
      when 1
        system("exit #{status}")
        $?.exitstatus == status or raise "a shell ended with #{$?}"
      else
        `echo #{number}` == "#{number}\n" or raise "a shell's words got lost"
      end
      nil
    end

    def do_ractor(number, *)
      ractor = Ractor.new(number) { |value| 1_000.times.sum + value }
      ractor.value == 499_500 + number or raise "a ractor answered wrongly"
      nil
    end

    def do_fiber(number, *)
      numbers = Enumerator.new { |out| 200.times { |index| sleep 0.0001 if index % 50 == 0; out << number + index } }
      100.times { |index| numbers.next == number + index or raise "a fiber answered wrongly" }
      nil
    end

    # Where the event loop has a pool, that does it, and the timeout strikes the fiber that waits for it.
    def do_compress(number, *)
      text = Answer.of(number, 400_000)
      Timeout.timeout(0.001 + number % 10 / 1000.0) { there_and_back(text) }
    rescue Timeout::Error
      there_and_back(text)
    end

    def there_and_back(text)
      Zlib.inflate(Zlib.deflate(text)) == text or raise "what was compressed came out otherwise"
      nil
    end

    def do_stream(number, size, _env)
      Streamed.new(Answer.parts(number, size, 6)) { |index| index.odd? ? sleep(0.002) : compute(20_000) }
    end

    def do_callable(number, size, _env)
      lambda do |stream|
        Answer.parts(number, size, 6).each { |part| stream.write(part); compute(10_000) }
      ensure
        stream.close
      end
    end

    def do_breaks(number, size, _env)
      Streamed.new(Answer.parts(number, size, 6)) { |index| raise Failure, number.to_s if index == 3 }
    end

    def do_upload(number, size, env)
      env["rack.input"].read == Answer.of(number, size) or raise "the upload of #{number} came in otherwise"
      nil
    end

    # A body that does something before each of its parts.
    class Streamed
      def initialize(parts, &before)
        @parts = parts
        @before = before
      end

      def each
        @parts.each_with_index do |part, index|
          @before.call(index)
          yield part
        end
      end
    end
  end
end
