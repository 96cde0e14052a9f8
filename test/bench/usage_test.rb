# frozen_string_literal: true

require_relative "bench_process"
require "headway/cli"
require "socket"

# What is wrong with a command, and help: in this process, because most of the time such a command takes is that of starting a Ruby.
class BenchUsageTest < Minitest::Test
  include BenchProcess

  Said = Struct.new(:out, :err, :status)

  def test_as_a_command
    assert_refused(/unknown benchmark "nope"/, "nope")
  end

  def test_bad_options
    assert_wrong(/no benchmark: give quantum, fairness, yield, offload, cpu, io, processes/)
    assert_wrong(/unknown benchmark "nope"/, "nope")
    assert_wrong(/unknown option --nope/, "quantum", "--nope")
    assert_wrong(/"more" is not expected/, "quantum", "more")
    assert_wrong(/there is no arm "nope".*stock/, "quantum", "--arms", "stock,nope")
    [",", "", "stock,", "stock,,headway"].each { assert_wrong(/--arms.*give names with a comma between them/, "quantum", "--arms", _1) }
    assert_wrong(/no Ruby that can be used/, "cpu", "--ruby", "/nonexistent/ruby")
    assert_wrong(%r{cannot write /nonexistent/p.html}, "cpu", "--plot", "/nonexistent/p.html")
    assert_wrong(/--plot is "p.png": give a name that ends in .html/, "cpu", "--plot", "p.png")
  end

  def test_bad_numbers
    %w[0 -1 abc 1e99 1.5].each { assert_wrong(/--runs.*whole number from 1/, "cpu", "--runs", _1) }
    assert_wrong(/--iterations/, "quantum", "--iterations", "0")
    ["", "a", "1,,4", "-1"].each { assert_wrong(/--cpu-threads.*such as 0,1,4,16/, "fairness", "--cpu-threads", _1) }
    %w[0 -5 nan 1e99 abc].each { assert_wrong(/--server-ms.*from 0.001 to 3600/, "fairness", "--server-ms", _1) }
    assert_wrong(/--port.*65535/, "fairness", "--port", "65536")
  end

  def test_bad_environment
    %w[0 1001].each { assert_wrong(/THREADS is "#{_1}": give a whole number from 1 to 1000$/, "cpu", env: { "THREADS" => _1 }) }
    assert_wrong(/N is "abc"/, "cpu", env: { "N" => "abc" })
    assert_wrong(/CONC is "-1"/, "io", env: { "CONC" => "-1" })
    assert_wrong(/URL is "nonsense"/, "io", "--arms", "stock", env: { "URL" => "nonsense" })
    assert_wrong(/URL is "http:/, "io", "--arms", "stock", env: { "URL" => "http://a b/" })
    assert_wrong(%r{URL is "http://": give one}, "io", "--arms", "stock", env: { "URL" => "http://" })
  end

  def test_a_port_in_use
    TCPServer.open("127.0.0.1", 0) do |server|
      port = server.addr[1].to_s
      assert_wrong(/port #{port} cannot be used/, "io", "--arms", "stock", "--port", port, env: { "URL" => nil })
      assert_wrong(/port #{port} cannot be used/, "fairness", "--arms", "stock", "--port", port)
    end
  end

  def test_an_address_where_nobody_answers
    Socket.open(:INET, :STREAM) do |held| # which nobody else has, and at which nobody listens
      held.bind(Addrinfo.tcp("127.0.0.1", 0))
      result = said("io", "--arms", "stock", env: { "URL" => "http://127.0.0.1:#{held.local_address.ip_port}/" })
      assert_equal 1, result.status
      assert_equal 1, result.err.lines.size, result.err
      assert_match(/cannot be reached/, result.err)
    end
  end

  # At once, or only when it is measured.
  def test_an_address_that_answers_with_an_error
    answering(503) { |url| assert_wrong(/URL is #{url}, which answers with status 503/, "io", "--arms", "stock", env: { "URL" => url }) }
    answering(302, 200, 500) do |url|
      result = said("io", "--arms", "stock", env: { "URL" => url, "REQ" => "1" })
      assert_equal [1, ""], [result.status, result.out], result.err
      assert_match(%r{\Aio 1/\d: .*\nheadway: io failed: .*#{url} answers with status 500 \(RuntimeError\)\n\z}, result.err)
    end
    answering("x") { |url| assert_match(/cannot be reached: wrong status line/, said("io", "--arms", "stock", env: { "URL" => url }).err) }
  end

  # What the programs in bin/ measured may have taken hours.
  def test_an_output_that_cannot_be_written
    skip "no /dev/full here" unless File.writable?("/dev/full")

    programs = { "bench/overview" => "Bench::Overview", "bench/serving" => "Bench::Serving", "predict/validation" => "Predict::Validation" }
    programs.each do |file, name|
      result = Harness::RubyProcess.run("-e", <<~RUBY)
        require "headway/#{file}/command"
        $stdout.reopen("/dev/full", "w")
        exit Headway::#{name}::Command.call(["--help"])
      RUBY
      assert_equal 2, result.status.exitstatus, result.to_s
      assert_match(/\A[a-z-]+: cannot write the output: No space left on device\n\z/, result.err)
    end
  end

  # As where a daemon has closed it: progress is lost, the figures aren't.
  def test_a_closed_stderr
    run = Harness::RubyProcess.run("-e", <<~RUBY)
      exec(#{RbConfig.ruby.dump}, #{EXECUTABLE.dump}, "bench", *%w[quantum --runs 1 --iterations 1 --arms stock --json], err: :close)
    RUBY
    assert_predicate run, :success?, run.to_s
    assert_equal "quantum", JSON.parse(run.out)["bench"]
  end

  def test_arms_of_another_benchmark
    assert_wrong(/no arm "stock": give any of no_hook, thread_per_op/, "offload", "--arms", "stock")
  end

  def test_help
    assert_match(/quantum\|fairness\|yield\|offload\|cpu\|io\|processes/, said("--help").out)
    Headway::Bench::Experiment.all.each_key do |name|
      result = said(name, "--help")
      assert_equal 0, result.status
      assert_match(/--runs N/, result.out)
    end
  end

  private

  # Answers each request with the next status, and the last one from then on.
  def answering(*statuses)
    TCPServer.open("127.0.0.1", 0) do |server|
      answers = Thread.new do
        loop do
          socket = server.accept
          nil until [nil, "\r\n"].include?(socket.gets)
          socket.write("HTTP/1.1 #{statuses.one? ? statuses.first : statuses.shift} X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
          socket.close
        end
      end
      yield "http://127.0.0.1:#{server.addr[1]}/"
    ensure
      answers.kill.join
    end
  end

  def said(*arguments, env: {})
    before = ENV.to_h
    ENV.update("HEADWAY" => nil, **env)
    status = nil
    out, err = capture_io do
      status = Headway::CLI.call(["bench", *arguments])
    rescue SystemExit => error # --help
      status = error.status
    end
    Said.new(out, err, status)
  ensure
    ENV.replace(before)
  end

  # As assert_refused says it of a process.
  def assert_wrong(pattern, *arguments, env: {})
    result = said(*arguments, env:)
    assert_equal [2, ""], [result.status, result.out], result.err
    assert_equal 1, result.err.lines.size, result.err
    assert_match pattern, result.err
  end
end
