# frozen_string_literal: true

require_relative "answer"
require_relative "application"
require_relative "http"

module Soak
  # Clients of every kind, each on a thread of its own. They ask until they are told to stop, and account for each answer.
  class Clients
    KINDS = %i[keep keep keep keep once once slow hang_up half pipeline].freeze
    # What Puma says to the second of two requests sent at once when it is told to stop between them.
    SHUTTING_DOWN = "Unable to add work while shutting down"
    ROUTES = Application::ROUTES.flat_map { |route, share| [route] * share }.freeze

    # @param left_out [Array<String>] routes
    # @param pause [Numeric] seconds between a client's requests, at most
    def initialize(port, tally, seed, left_out: [], pause: 0.01)
      @port = port
      @tally = tally
      @routes = ROUTES - left_out
      @pause = pause
      @seed = seed
      @numbers = Thread::Mutex.new
      @last = 0
    end

    def start(count)
      @threads = Array.new(count) do |index|
        kind = KINDS[index % KINDS.size]
        Thread.new { live(kind, Random.new(@seed + index)) }.tap { |thread| thread.name = "client #{index}, #{kind}" }
      end
      self
    end

    # @return [Array<Thread>] those that never came to an end
    def stop
      @over = true
      deadline = @tally.now + HTTP::LIMIT + 30
      @threads.reject { |thread| thread.join([deadline - @tally.now, 0.1].max) }
    end

    private

    def live(kind, random)
      until @over
        send(kind, random)
        sleep @pause * random.rand
      end
    rescue StandardError => error
      @tally.fail(:client, error.full_message(highlight: false))
    end

    def number = @numbers.synchronize { @last += 1 }
    def size(random, route) = route == "big" ? random.rand(200_000..1_000_000) : random.rand(20..3_000)

    def keep(random)
      connection = connect or return
      random.rand(1..60).times do
        break if @over || !ask(connection, random, @routes.sample(random:))

        sleep @pause * random.rand
      end
    ensure
      connection&.close
    end

    def once(random)
      connection = connect or return
      ask(connection, random, @routes.sample(random:), { "Connection" => "close" })
    ensure
      connection&.close
    end

    def slow(random)
      connection = connect(receive_buffer: 8_192) or return
      route = %w[big stream upload sql].sample(random:)
      ask(connection, random, route, slowly: random.rand * 0.02)
    ensure
      connection&.close
    end

    # Goes before the answer is there, in the middle of it, or with something of it unread.
    def hang_up(random)
      connection = connect or return
      route = @routes.sample(random:)
      connection.send_request("/#{route}", numbered(number, size(random, route)), upload: route == "upload" ? "short" : nil)
      case random.rand(3)
      when 0 then sleep random.rand * 0.02
      when 1 then connection.read_some(random.rand(1..500))
      end
      @tally.count(:hung_up)
    rescue *HTTP::GONE, IO::TimeoutError
      @tally.count(:hung_up)
    ensure
      connection&.close(roughly: random.rand(2).zero?)
    end

    # Half a request, and then the rest late or never.
    def half(random)
      connection = connect or return
      number = self.number
      connection.write("GET /sql HTTP/1.1\r\nHost: a\r\nX-Number: #{number}\r\n")
      sleep random.rand * 0.3
      return @tally.count(:half) if random.rand(2).zero?

      judged(number, "sql", 50, first: false) do # a server that ends closes whoever hasn't said all
        connection.write("X-Size: 50\r\n\r\n")
        connection.read
      end
    rescue *HTTP::GONE
      @tally.count(:half)
    ensure
      connection&.close
    end

    # The second request before the first one is answered.
    def pipeline(random)
      connection = connect or return
      asked = Array.new(random.rand(2..5)) { [number, %w[sql compute lock sleep].sample(random:), size(random, "sql")] }
      requests = asked.map { |number, route, size| "GET /#{route} HTTP/1.1\r\nHost: a\r\n#{lines(numbered(number, size))}\r\n" }
      connection.write(requests.join)
      asked.each_with_index do |(number, route, size), index|
        break unless judged(number, route, size, first: index.zero?) { connection.read }
      end
    rescue *HTTP::GONE
      @tally.count(:closed_kept)
    ensure
      connection&.close
    end

    def lines(headers) = headers.map { |name, value| "#{name}: #{value}\r\n" }.join
    def numbered(number, size) = { "X-Number" => number, "X-Size" => size }

    def connect(**options)
      HTTP.new(@port, **options)
    rescue HTTP::Refused => error
      @tally.restart_explains?(@tally.now) ? @tally.count(:refused_in_restart) : @tally.fail(:refused, error.message)
      sleep 0.2
      nil
    rescue HTTP::Hanging => error
      @tally.fail(:hung, error.message)
      nil
    end

    def ask(connection, random, route, headers = {}, slowly: nil)
      number = self.number
      size = size(random, route)
      upload = Answer.of(number, size) if route == "upload"
      judged(number, route, size, first: connection.asked.zero?) do
        connection.request("/#{route}", headers.merge(numbered(number, size)), upload:, slowly:, chunked: upload && number.odd?)
      end
    end

    # @return [Boolean] whether the connection is good for another request
    def judged(number, route, size, first:)
      started = @tally.now
      response = yield
      judge(response, number, route, size, started)
    rescue HTTP::Unanswered
      unanswered(number, route, first, started)
      false
    rescue HTTP::Hanging => error
      what = "#{route} #{number} of #{Thread.current.name}#{", on a kept connection" unless first}: #{error.message}"
      @tally.kill_explains?(started) ? @tally.count(:hung_by_kill) : @tally.fail(:hung, what)
      false
    rescue HTTP::Nonsense => error
      # Puma says 500 in the middle of a body that breaks.
      return @tally.count(:broken_as_asked) && false if Application::BREAKING.include?(route)

      @tally.fail(:nonsense, "#{route} #{number}: #{error.message}")
      false
    end

    def unanswered(number, route, first, started)
      if !first then @tally.count(:closed_kept) # both may close a kept connection whenever they like
      elsif @tally.kill_explains?(started) then @tally.count(:dropped_by_kill)
      elsif @tally.restart_explains?(started) then @tally.count(:dropped_in_restart)
      else @tally.fail(:dropped, "#{route} #{number}, after #{(@tally.now - started).round(3)} s")
      end
    end

    def judge(response, number, route, size, started)
      process = response.headers["x-process"]
      pid = process.to_i if process
      return cut(response, number, route, size, started, pid) unless response.whole
      return refused(response, number, route, started) if response.status == 503

      expected = Application::FAILING.include?(route) ? 500 : 200
      return refused(response, number, route, started) if response.body == SHUTTING_DOWN

      if response.status != expected
        @tally.fail(:status, "#{route} #{number}: #{response.status} #{response.body[0, 300]}")
      elsif expected == 200 && response.headers["x-number"] != number.to_s
        @tally.fail(:mixed, "#{route} #{number}: the headers are of #{response.headers["x-number"]}")
      elsif response.body != (expected == 500 ? "failed #{number}" : Answer.of(number, size))
        return cut(response, number, route, size, started, pid) if route == "callable" && partly?(response, number, size)

        @tally.fail(:wrong, "#{route} #{number}: #{response.body.bytesize} bytes that begin with " \
                            "#{response.body[0, 60].inspect}, for #{Answer.of(number, size).bytesize} of #{number}:#{size}:")
      else
        @tally.count(:whole)
        @tally.served(process)
      end
      response.headers["connection"] != "close" && route != "callable"
    end

    def refused(response, number, route, started)
      explained = @tally.restart_explains?(started) || @tally.kill_explains?(started)
      return @tally.count(:busy_in_restart) && false if explained

      @tally.fail(:status, "#{route} #{number}: #{response.status} #{response.body[0, 300]}")
      false
    end

    def partly?(response, number, size) = Answer.of(number, size).start_with?(response.body)

    def cut(response, number, route, size, started, pid)
      if !partly?(response, number, size) then @tally.fail(:mixed, "#{route} #{number}, cut short: #{response.body[0, 80].inspect}")
      elsif Application::BREAKING.include?(route) then @tally.count(:broken_as_asked)
      elsif @tally.kill_explains?(started, pid) then @tally.count(:cut_by_kill)
      else
        @tally.fail(:cut, "#{route} #{number} of process #{pid}: #{response.body.bytesize} bytes of " \
                          "#{Answer.of(number, size).bytesize}, after #{(@tally.now - started).round(2)} s")
      end
      false
    end
  end
end
