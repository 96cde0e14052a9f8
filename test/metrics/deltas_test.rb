# frozen_string_literal: true

require "test_helper"
require "headway"
require "socket"

# What adapters add up, of a process that forks or becomes a daemon: everything once. A real receiver is told, by processes that end.
class MetricsDeltasTest < Minitest::Test
  PROGRAM = <<~RUBY
    require "headway"
    require "socket"
    Headway.start
    OWN = Struct.new(:number) { def families() = [Headway::Metrics::Family.new("own_total", :counter, "Own.", { {} => number })] }.new(5)
    Headway::Metrics.register(OWN)
    COUNTED = Headway::Metrics::Counter.new("counted_total", help: "Counted.", labels: [], most: 1)
    Headway::Metrics.register(COUNTED)
    COUNTED.add(by: 2)
    REPORTER = Headway::Metrics::Adapters::StatsD.install(port: Integer(ARGV.first), every: 600)
    at_end = -> { UDPSocket.new.send("end", 0, "127.0.0.1", Integer(ARGV.first)) }
  RUBY

  def setup
    @server = UDPSocket.new.tap { |socket| socket.bind("127.0.0.1", 0) }
  end

  def teardown = @server&.close

  # What all processes told together, until one of them said that it was at its end.
  def told(program)
    run = Harness::RubyProcess.eval(PROGRAM + program, @server.addr[1].to_s)
    assert run.success?, run
    told = Hash.new(0)
    loop do
      assert @server.wait_readable(60), "told #{told}"
      text = @server.recv(2000)
      return told if text == "end"

      text.scan(/^(\w+):(\d+)\|c/) { |name, number| told[name] += number.to_i }
    end
  end

  def test_a_daemon_tells_what_was_not_told_before
    told = told(<<~RUBY)
      20.times { sleep 0.001 }
      REPORTER.report
      COUNTED.add(by: 4)
      Process.daemon(true)
      50.times { sleep 0.001 }
      COUNTED.add(by: 8)
      OWN.number += 1
      REPORTER.stop
      at_end.call
    RUBY
    assert_equal [14, 6], told.values_at("counted_total", "own_total")
    assert_operator told["ruby_gvl_wait_seconds_count"], :>=, 70
  end

  # However much had come again until the next report.
  def test_a_start_begins_anew
    told = told(<<~RUBY)
      [5, 1000].each do |waits|
        Headway.start
        waits.times { sleep 0.0001 }
        Headway.stop
        COUNTED.add(by: Headway::Metrics.collect.find { |family| family.name == "ruby_gvl_wait_seconds" }.series[{}].count)
      end
      REPORTER.stop
      at_end.call
    RUBY
    assert_operator told["counted_total"], :>, 1005
    assert_equal told["counted_total"] - 2, told["ruby_gvl_wait_seconds_count"]
  end

  def test_a_forked_child_tells_what_it_counted_itself
    told = told(<<~RUBY)
      REPORTER.report
      child = fork do
        COUNTED.add(by: 4)
        OWN.number += 1
        REPORTER.report
        exit!(0)
      end
      Process.wait(child)
      COUNTED.add(by: 8)
      REPORTER.stop
      at_end.call
    RUBY
    assert_equal [14, 6], told.values_at("counted_total", "own_total")
  end
end
