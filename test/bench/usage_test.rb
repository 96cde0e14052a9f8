# frozen_string_literal: true

require_relative "bench_process"
require "socket"
require "tmpdir"

class BenchUsageTest < Minitest::Test
  include BenchProcess

  def test_bad_options
    assert_refused(/no benchmark: give quantum, fairness, yield, offload, cpu, io, processes/)
    assert_refused(/unknown benchmark "nope"/, "nope")
    assert_refused(/unknown option --nope/, "quantum", "--nope")
    assert_refused(/"more" is not expected/, "quantum", "more")
    assert_refused(/there is no arm "nope".*stock/, "quantum", "--arms", "stock,nope")
    assert_refused(/--arms/, "quantum", "--arms", ",")
    assert_refused(/no Ruby that can be used/, "cpu", "--ruby", "/nonexistent/ruby")
    assert_refused(%r{cannot write /nonexistent/p.html}, "cpu", "--plot", "/nonexistent/p.html")
  end

  def test_bad_numbers
    %w[0 -1 abc 1e99 1.5].each { assert_refused(/--runs.*whole number from 1/, "cpu", "--runs", _1) }
    assert_refused(/--iterations/, "quantum", "--iterations", "0")
    ["", "a", "1,,4", "-1"].each { assert_refused(/--cpu-threads.*such as 0,1,4,16/, "fairness", "--cpu-threads", _1) }
    %w[0 -5 nan 1e99 abc].each { assert_refused(/--server-ms.*above 0/, "fairness", "--server-ms", _1) }
    assert_refused(/--port.*65535/, "fairness", "--port", "65536")
  end

  def test_bad_environment
    assert_refused(/THREADS is "0"/, "cpu", env: { "THREADS" => "0" })
    assert_refused(/N is "abc"/, "cpu", env: { "N" => "abc" })
    assert_refused(/CONC is "-1"/, "io", env: { "CONC" => "-1" })
    assert_refused(/URL is "nonsense"/, "io", "--arms", "stock", env: { "URL" => "nonsense" })
    assert_refused(/URL is "http:/, "io", "--arms", "stock", env: { "URL" => "http://a b/" })
  end

  def test_a_port_in_use
    TCPServer.open("127.0.0.1", 0) do |server|
      port = server.addr[1].to_s
      assert_refused(/port #{port} cannot be used/, "io", "--arms", "stock", "--port", port, env: { "URL" => nil })
      assert_refused(/port #{port} cannot be used/, "fairness", "--arms", "stock", "--port", port)
    end
  end

  def test_an_address_where_nobody_answers
    port = TCPServer.open("127.0.0.1", 0) { _1.addr[1] }
    result = bench("io", "--arms", "stock", env: { "URL" => "http://127.0.0.1:#{port}/" })
    assert_equal 1, result.status.exitstatus
    assert_equal 1, result.err.lines.size, result.err
    assert_match(/cannot be reached/, result.err)
  end

  def test_arms_of_another_benchmark
    assert_refused(/no arm "stock": give any of no_hook, thread_per_op/, "offload", "--arms", "stock")
  end

  def test_help
    assert_match(/quantum\|fairness\|yield\|offload\|cpu\|io\|processes/, bench("--help").out)
    Headway::Bench::Experiment.all.each_key do |name|
      result = bench(name, "--help")
      assert_predicate result, :success?
      assert_match(/--runs N/, result.out)
    end
  end
end
