# frozen_string_literal: true

require "test_helper"
require "socket"
require "tmpdir"
require "headway/bench/serving/command"

# Puma under load, on the smallest scale.
class BenchServingTest < Minitest::Test
  include Headway::Bench

  TINY = { "threads" => 3, "requests" => 12, "loads" => [50], "saturation_s" => 0.3, "heavy_ms" => 4, "heavy_share" => 0.25 }.freeze

  def interpreter = Interpreter.current

  def test_all_arms_and_what_is_written
    skip "Headway does nothing here" if interpreter.headway_trouble

    experiment = Serving.new(TINY)
    result = run_arms(experiment, [Arm.build("stock", interpreter), Arm.build("headway", interpreter), Serving.alone(interpreter)])
    assert_equal ["50 %", "saturation"], result["arms"]["stock"].keys
    loaded = result["arms"].transform_values { |cells| cells["50 %"].transform_values { |figure| figure["median"] } }
    loaded.each_value { |figures| assert_operator figures["light_p99_us"], :>=, 20_000, "five waits of 4 ms" }
    assert_equal [true, true, false], loaded.values.map { |figures| !figures["heavy_p50_us"].nil? }
    assert_operator result["arms"]["headway"]["saturation"]["requests_per_s"]["median"], :>, 0

    text, pictures = page_of([[result, experiment]])
    assert_match(/^\| 50 % \| light alone \| .* ms/, text)
    assert_match(/^- headway at 50 %: light p99 .* lower than stock, .* light requests alone, heavy p99/, text)
    assert_match(/^- headway at saturation: \d\.\d{3} × the throughput of stock \(95 % interval .*: 1\)\.$/, text)
    assert_equal pictures, text.scan(/\]\(out\/(\S+)\)/).flatten.sort
  end

  def test_a_trivial_route
    arms = Serving::Trivial.arms(interpreter).reject(&:trouble)
    result = run_arms(Serving::Trivial.new("saturation_s" => 0.4), arms)
    assert(result["arms"].values.all? { |figures| figures.values.all? { _1["median"].positive? } })
    assert_match(/^\| stock \| /, page_of([[result, Serving::Trivial.new]]).first)
  end

  def test_a_nearly_trivial_route
    stock = Arm.build("stock", interpreter)
    experiment = Serving::Trivial.new("saturation_s" => 1, "work_us" => 5_000)
    result = run_arms(experiment, [stock])
    figures = result["arms"].values.first
    assert_operator figures["cpu_us"]["median"], :>, 1_000
    assert_operator figures["p99_us"]["median"], :>, 5_000
    assert_match(/^## Puma, 5 threads, 1 worker, a route that computes for 5000 µs$/, page_of([[result, experiment]]).first)
  end

  def test_several_workers
    Serving::Puma.run(Arm.build("stock", interpreter), { **Serving::DEFAULTS, "workers" => 2, "rounds_per_ms" => 1 }) do |puma|
      answer = puma.load({ paths: { "/light" => 1.0 }, seed: 1, rate: 100.0, requests: 10 }, limit_s: 60)
      assert_equal 10, answer.dig("times", "/light").size
    end
  end

  def test_the_example_application
    experiment = Serving::Shop.new(TINY.slice("threads", "requests", "loads", "heavy_share").merge("saturation_s" => 2))
    result = run_arms(experiment, [Arm.build(interpreter.headway_trouble ? "stock" : "headway", interpreter)])
    figures = result["arms"].values.first["50 %"]
    assert_operator figures["light_p50_us"]["median"], :>=, 20_000, "the price service takes 20 ms"
    assert_operator figures["heavy_p50_us"]["median"], :>, 0
    assert_match(%r{^## examples/rails_shop in Puma, 3 threads, 1 worker$}, page_of([[result, experiment]]).first)
  end

  def test_jobs_of_sidekiq
    result = run_arms(Serving::Jobs.new(TINY), [Arm.build(interpreter.headway_trouble ? "stock" : "headway", interpreter)])
    figures = result["arms"].values.first["50 %"]
    assert_operator figures["light_p99_us"]["median"], :>=, 20_000
    assert_operator result["arms"].values.first["saturation"]["requests_per_s"]["median"], :>, 0
    assert_match(/^## Sidekiq, 3 threads$/, page_of([[result, Serving::Jobs.new(TINY)]]).first)
  end

  # A server that stalls for half a second while requests are due every 10 ms: most of them must be seen to have waited.
  def test_requests_that_were_due_during_a_stall_count_as_slow
    TCPServer.open("127.0.0.1", 0) do |server|
      stall = nil
      stalled = Thread.new do
        loop do
          socket = server.accept
          stall = stall ? 0 : sleep(0.5)
          socket.readpartial(1000)
          socket.write("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nok\n")
          socket.close
        end
      end
      times, late = load(server.addr[1], rate: 100.0, requests: 40).values_at("times", "late")
      assert_equal 40, times["/light"].size
      assert_operator Headway::Statistics.median(times["/light"]), :>, 0.1
      assert_operator late.max, :<, times["/light"].max
    ensure
      stalled.kill.join
    end
  end

  def test_an_answer_that_is_none_ends_it
    TCPServer.open("127.0.0.1", 0) do |server|
      broken = Thread.new { loop { server.accept.close } }
      assert_match(/reset|was answered with/, assert_raises(Error) { load(server.addr[1], rate: 100.0, requests: 3) }.message)
    ensure
      broken.kill.join
    end
  end

  # This arm's server ends while it is asked: the others' figures stay.
  def test_an_arm_that_fails_is_left_out_and_named
    broken = Object.new
    def broken.sweep = nil
    def broken.load(*, **) = raise(Error, "it fell over")
    sound = Object.new
    def sound.sweep = nil
    def sound.load(settings, **) = { "counted" => settings[:requests], "seconds" => 2.0, "times" => { "/light" => [0.02] }, "late" => [0.001] }
    experiment = Serving.new({ **TINY, "capacity_per_s" => 1.0 })
    experiment.define_singleton_method(:with_server) { |arm, &block| block.call(arm.name == "stock" ? broken : sound) }
    figures = nil
    arms = [Arm.build("stock", interpreter), Serving.alone(interpreter)]
    _, err = capture_io { figures = experiment.measure_together(arms, "50 %") }
    assert_equal "stock is left out: it fell over\n", err
    assert_equal [nil], figures["stock"].values.uniq
    assert_equal 20_000, figures["light alone"]["light_p99_us"]
  end

  def test_an_arm_that_does_not_start_is_left_out_and_named
    arms = %w[sound broken other].map { |name| Struct.new(:name).new(name) }
    run = ->(arm, &use) { arm.name == "broken" ? raise(Error, "it has no port") : use.call(arm.name.upcase) }
    served = nil
    _, err = capture_io { Serving::Turns.side_by_side(arms, run) { |servers| served = servers.values } }
    assert_equal %w[SOUND OTHER], served
    assert_equal "broken is left out: it has no port\n", err
    assert_raises(Error) { Serving::Turns.side_by_side(arms.first(1), run) { raise Error, "later" } }
  end

  def test_a_server_is_swept_before_it_gets_its_load
    asked = []
    server = Object.new
    server.define_singleton_method(:sweep) { asked << :sweep }
    server.define_singleton_method(:load) { |settings, limit_s:| asked << settings << limit_s }
    Serving::Swept.new(server).load({ seed: 1 }, limit_s: 2)
    assert_equal [:sweep, { seed: 1 }, 2], asked
  end

  # It and its workers, which are forked: none ends before all its garbage was collected.
  def test_sweeping_is_a_full_collection
    child = Child.new([*interpreter.command, "-r", Headway::Bench.program("heap"), "-e", <<~RUBY], env: Arm.environment)
      before = GC.stat(:major_gc_count)
      worker = fork
      $stdout.sync = true
      puts "{}" if worker
      sleep 0.01 until GC.stat(:major_gc_count) > before
      Process.wait(worker) && puts("{}") if worker
    RUBY
    child.first_line(30)
    child.signal(Serving::Swept::SIGNAL)
    assert_equal({}, child.result(30))
  ensure
    child&.kill
  end

  # Everybody gets the same requests in a turn, other ones in the next; and who was first is last then.
  def test_arms_take_turns
    asked = []
    servers = %w[one two].to_h do |name|
      server = Object.new
      server.define_singleton_method(:load) { |settings, **| asked << [name, settings[:seed]] && {} }
      [name, server]
    end
    answers = Serving::Turns.new(servers, 2, seed: 7).call(limit_s: 1) { {} }
    assert_equal [["one", 7], ["two", 7], ["two", 8], ["one", 8]], asked
    assert_equal({ "one" => [{}, {}], "two" => [{}, {}] }, answers)
  end

  def test_bad_usage
    { %w[--nope] => /--nope/, %w[more] => /"more"/, %w[--loads 0] => /--loads is 0: give percent from 1 to 99/,
      %w[--app nope] => /--app is "nope": give bench or shop/, %w[--requests x] => /--requests x: give/, %w[--arms nope] => /no arm "nope"/,
      %w[--arms stock,priority-3] => /no arm "priority-3": give any of stock, timeslice10, headway, headway-poll,/,
      %w[--only nginx] => /--only is "nginx": give some of puma,sidekiq,trivial/,
      %w[--threads 0] => /--threads is 0: give/,
      %w[--write /nonexistent/x.md] => %r{cannot write /nonexistent/x.md} }.each do |argv, pattern|
      _, err = capture_io { assert_equal 2, Serving::Command.call(argv) }
      assert_match pattern, err
      assert_equal 1, err.lines.size
    end
  end

  private

  def run_arms(experiment, arms) = Runner.new(experiment, arms, interpreter:, runs: 1, progress: StringIO.new).call

  def load(port, **settings)
    settings = { port:, paths: { "/light" => 1.0 }, seed: 1, **settings }
    Child.run([*interpreter.command, Headway::Bench.program("load"), JSON.generate(settings)], env: Arm.environment)
  end

  def page_of(results)
    Dir.mktmpdir do |folder|
      Serving::Page.new(File.join(folder, "out.md"), "bin/bench-server").write(results)
      [File.read(File.join(folder, "out.md")), Dir.children(File.join(folder, "out")).sort]
    end
  end
end
