# frozen_string_literal: true

require "harness/recorder_test"
require "rack/lint"
require "servers/rack_stack"
require "servers/server_process"

# Headway::Rack in front of applications of every kind.
class RackTest < Harness::RecorderTest
  include RackStack

  with_rubygems

  BUSY = ->(seconds) { now = -> { Process.clock_gettime(Process::CLOCK_MONOTONIC) }; till = now[] + seconds; nil while now[] < till }

  def test_a_request_is_accounted_for_to_the_last_byte
    seen = nil
    body = Streamed.new
    started = now
    works = finished do
      app = stack(->(env) { seen = env["headway.request"]; BUSY[0.02]; [200, { "content-type" => "text/plain" }, body] })
      response = Rack::MockRequest.new(Rack::Lint.new(app)).get("/items/42/parts/5f0c2d1e-1111-4222-8333-abcdefabcdef.json")
      assert_equal "012", response.body
    end
    work, = works
    assert_same seen, work
    assert body.closed?
    assert_equal ["GET /items/:id/parts/:id.json", :request, 200, nil], [work.name, work.kind, work.status, work.error]
    assert_operator work.suspended, :>=, 0.029
    assert_operator work.running, :>=, 0.01
    assert_includes 0.049..work.wall, work.times.sum.round(9)
    assert_operator work.wall, :<, now - started
    assert_nil Headway::Work.current
  end

  def test_a_server_that_tells_when_it_has_finished_is_believed
    body = ["hello"]
    works = finished do
      app = stack(->(_env) { [200, {}, body] })
      env = environment("rack.response_finished" => [])
      response = app.call(env)
      assert_same body, response[2], "left as it is, so that the server may send it as it likes"
      closing = Streamed.new
      assert_same closing, stack(->(_env) { [200, {}, closing] }).call(environment("rack.response_finished" => []))[2], "a Falcon's own, say"
      refute env["headway.request"].finished?
      sleep 0.01
      env["rack.response_finished"].reverse_each { |told| told.call(env, 200, {}, nil) }
      assert env["headway.request"].finished?
    end
    assert_operator works.first.suspended, :>=, 0.009
  end

  def test_a_request_that_is_cancelled_under_a_fiber_scheduler_is_finished
    cancelled = Class.new(Exception) # rubocop:disable Lint/InheritException
    works = finished do
      Thread.new do
        Fiber.set_scheduler(Headway::FiberScheduler.new)
        Fiber.schedule do
          assert_raises(cancelled) { stack(->(_env) { raise cancelled }).call(environment("rack.response_finished" => [])) }
          assert_nil Headway::Work.current
        end
      end.join
    end
    assert_equal [cancelled], works.map { |work| work.error.class }
  end

  def test_waiting_beside_computing_threads
    works = finished(:observe) do
      beside_busy_threads { stack(->(_env) { sleep 0.002; [204, {}, []] }).call(environment)[2].close }
    end
    assert_operator works.first.waiting, :>=, 0.05
  end

  # As Rack::Builder#freeze_app does to all that it builds.
  def test_a_frozen_one_answers
    _, err = capture_subprocess_io do
      with_headway do
        endpoint = Headway::Metrics::Endpoint.new
        app = Rack::Builder.new do
          use Headway::Rack
          use Headway::Rack, sample: 1
          map("/metrics") { run endpoint }
          run ->(_env) { [200, {}, ["fine"]] }
          freeze_app
        end
        2.times { %w[/ /metrics].each { |path| assert_equal 200, Rack::MockRequest.new(app).get(path).status } }
      end
    end
    assert_equal 1, err.lines.grep(/stands there twice/).size, err
  end

  def test_server_timing
    finished do
      app = stack(->(_env) { [200, { "Server-Timing" => "db;dur=1" }.freeze, ["x"]] }, server_timing: true)
      headers = Rack::MockRequest.new(app).get("/").original_headers
      assert_match(/\Adb;dur=1, gvl-run;dur=[\d.]+, gvl-wait;dur=[\d.]+, idle;dur=[\d.]+\z/, headers["server-timing"] || headers["Server-Timing"])
    end
    finished { assert_nil Rack::MockRequest.new(stack(->(_env) { [200, {}, ["x"]] })).get("/").headers["server-timing"] }
  end

  # A proxy in front of the server says when a request came there, each in its way.
  def test_how_long_a_request_stood_in_front_of_the_server
    at = Process.clock_gettime(Process::CLOCK_REALTIME) - 2
    [format("t=%.3f", at), format("%.3f", at), format("%d", at * 1e3), format("t=%d", at * 1e6), format("%d", at * 1e9),
     format("%.3f, t=%.3f", at, at + 1), format("t=%.6f", at).b].each do |said|
      assert_includes 1.9..30, queued("HTTP_X_REQUEST_START" => said), said
    end
    assert_includes 0.4..28.5, queued("HTTP_X_REQUEST_START" => format("t=%.3f", at), "puma.request_body_wait" => 1500.0), "not what the client took to send it"
    assert_equal 0.0, queued("HTTP_X_REQUEST_START" => format("t=%.3f", at + 600)), "a clock that is ahead"
    assert_equal 0.0, queued("HTTP_X_REQUEST_START" => format("t=%.3f", at), "puma.request_body_wait" => 600_000)
  end

  def test_what_says_nothing_of_when_a_request_came
    at = Process.clock_gettime(Process::CLOCK_REALTIME)
    [nil, "", "t=", "now", "t=now", "-#{at}", "1e10", "12345", "#{at.to_i}x", "t=#{at.to_i - 4000}", "t=#{at.to_i + 4000}", "9" * 400, "1" * 19, "\xff" * 12,
     "#{at.to_i}\n#{at.to_i}", 17, [at.to_s]].each do |said|
      assert_nil queued("HTTP_X_REQUEST_START" => said), said.inspect
    end
  end

  def test_server_timing_tells_the_queue_where_that_is_known
    finished do
      app = stack(->(_env) { [200, {}, ["x"]] }, server_timing: true)
      env = environment("HTTP_X_REQUEST_START" => format("t=%.3f", Process.clock_gettime(Process::CLOCK_REALTIME) - 2))
      assert_match(/\Aqueue;dur=\d{4,5}\.\d+, gvl-run;/, app.call(env)[1]["server-timing"])
    end
  end

  def test_sampling_and_nesting
    works = finished do
      none = stack(->(env) { assert_nil env["headway.request"]; [200, {}, []] }, sample: 0)
      5.times { none.call(environment)[2] }
      twice = stack(stack(->(_env) { [200, {}, []] }))
      twice.call(environment)[2].close
      some = stack(->(_env) { [200, {}, []] }, sample: 0.5)
      300.times { body = some.call(environment)[2]; body.close if body.respond_to?(:close) }
    end
    assert_includes 50..250, works.size - 1
  end

  # As in Rails, which has one of its own further in.
  def test_what_the_outer_one_leaves_out_of_its_sample_the_inner_one_does_not_take
    works = finished do
      app = stack(stack(->(env) { assert_nil env["headway.request"]; [200, {}, []] }, server_timing: true), sample: 0)
      again = environment
      2.times { assert_equal [200, {}, []], app.call(again) }
    end
    assert_empty works
  end

  def test_a_request_that_an_application_makes_of_itself_is_part_of_the_one_it_is_made_in
    seen = []
    works = finished do
      inner = stack(->(_env) { sleep 0.02; seen << Headway::Work.current; [200, {}, ["inner"]] })
      outer = stack(lambda do |env|
        Headway::Work.start(:job, "inline").tap { Rack::MockRequest.new(inner).get("/in/a/job") }.finish
        2.times { Rack::MockRequest.new(inner).get("/inner") }
        seen << Headway::Work.current
        assert_same env["headway.request"], Headway::Work.current
        raise KeyError if env["PATH_INFO"] == "/fails"

        [200, {}, ["outer"]]
      end)
      Rack::MockRequest.new(outer).get("/outer")
      assert_raises(KeyError) { Rack::MockRequest.new(outer).get("/fails") }
      Headway::Work.start(:job, "fetches").tap do |job|
        Rack::MockRequest.new(outer).get("/from/a/job")
        assert_same job, Headway::Work.current
      end.finish
      Rack::MockRequest.new(inner).get("/alone")
    end
    requests = ["GET /outer", "GET /fails", "GET /from/a/job"]
    assert_equal [*requests.flat_map { |name| ["inline", name] }, "fetches", "GET /alone"], works.map(&:name)
    assert_equal [*requests.flat_map { |name| ["inline", name, name, name] }, "GET /alone"], seen.map(&:name)
    assert_nil Headway::Work.current
  end

  # One that nobody finishes, as a server may forget it, and one that was begun by hand and is finished elsewhere.
  def test_a_request_that_is_left_behind_keeps_none_of_the_next_ones
    works = finished do
      forgotten = environment("rack.response_finished" => [])
      assert_raises(KeyError) { stack(->(_env) { raise KeyError }).call(forgotten) }
      stack(->(_env) { [200, {}, []] }).call(environment("rack.response_finished" => []))
      Headway::Work.start(:request, "elsewhere").then { |work| Thread.new { work.finish }.join }
      Rack::MockRequest.new(stack(->(_env) { [200, {}, []] })).get("/next")
    end
    assert_equal ["elsewhere", "GET /next"], works.map(&:name)
  end

  def test_a_place_that_is_taken_back_between_two_of_them_is_known
    inside = stack(->(env) { env["action_dispatch.route_uri_pattern"] = "/users/:id(.:format)"; [200, {}, []] })
    works = finished { Rack::MockRequest.new(stack(Rack::URLMap.new("/app" => inside))).get("/app/users/8") }
    assert_equal ["GET /app/users/:id"], works.map(&:name)
  end

  # As in Rails: the files of the page would be a fifth of the classes that metrics keep.
  def test_the_live_page_is_one_class
    web = Headway::Web.new(directory: File.join(@directory, "captures")) { true }
    works = finished do
      request = Rack::MockRequest.new(stack(Rack::URLMap.new("/headway" => web)))
      page = request.get("/headway").body
      page.scan(%r{/headway/assets/[^"]+}) { |asset| assert_equal 200, request.get(asset).status }
      assert_equal 404, request.get("/headway/nothing").status
    end
    assert_equal ["GET /headway", "GET (not found)"], works.map(&:name).uniq
  end

  # A timeout in the server's queue, say: whoever asks chooses the paths of such requests, and the first classes are those metrics keep.
  def test_requests_that_raise_before_they_are_routed_take_no_room_of_routes
    app = stack(->(env) { env["PATH_INFO"] == "/users/8" ? [200, {}, []] : raise("on purpose") })
    works = finished do
      app.call(environment("PATH_INFO" => "/users/8", "action_dispatch.route_uri_pattern" => "/users/:id(.:format)"))[2].close
      100.times { |number| assert_raises(RuntimeError) { app.call(environment("PATH_INFO" => "/#{number}x")) } }
    end
    assert_equal ["GET /users/:id", "GET /0x"], works.first(2).map(&:name)
    assert_operator works.map(&:name).uniq.size, :<, Headway::Metrics::WorkSeries::CLASSES
    assert_nil works.last.status
  end

  def test_a_path_of_any_bytes_is_named
    path = "/\xC3\xA9/\xFF".b * 100
    finished do
      Headway::Recorder.start(file: file, mode: :flight) # so that it is named before it is routed, too
      body = stack(->(_env) { [200, {}, ["fine"]] }).call(environment("PATH_INFO" => path))[2]
      assert_equal "fine", body.enum_for.to_a.join
      body.close
      Headway::Recorder.stop
    end => [work]
    assert_predicate work.name, :valid_encoding?
    assert_equal [Encoding::UTF_8, "GET /\u00E9/\uFFFD/"], [work.name.encoding, work.name[0, 9]]
  end

  def test_a_request_that_waited_too_long_makes_the_flight_recorder_dump
    took = nil
    with_headway(:observe) do
      Headway::Recorder.start(file: file, mode: :flight)
      app = stack(->(_env) { sleep 0.002; [200, {}, []] }, wait_threshold: 0.05)
      took = beside_busy_threads { elapsed { 3.times { app.call(environment("PATH_INFO" => "/slow"))[2].close } } }
      await("the dump") { files.include?("out.request-1.headway") }
      await("no thread of ours") { Thread.list.none? { |thread| thread.name == "headway recorder" } }
      Headway::Recorder.stop
    end
    assert_includes analysis(file("out.request-1.headway"))[:marks].map { |mark| mark[:name] }, "GET /slow"
    assert_equal %w[out.headway out.request-1.headway], files, "not again at once" if took < 5
  end

  # As in Rails, where one is there already.
  def test_options_of_one_that_stands_inside_another_are_not_passed_over_in_silence
    run = Harness::RubyProcess.eval(<<~RUBY)
      require "headway"
      require "rack"
      Headway.start(policy: :observe)
      app = Headway::Rack.new(Headway::Rack.new(->(_) { [200, {}, []] }, server_timing: true, sample: 1))
      2.times { app.call({ "PATH_INFO" => "/", "REQUEST_METHOD" => "GET" }) }
      Headway::Rack.new(Headway::Rack.new(->(_) { [200, {}, []] })).call({ "PATH_INFO" => "/", "REQUEST_METHOD" => "GET" })
    RUBY
    assert_equal "headway: Headway::Rack stands there twice: server_timing, sample of the inner one say nothing (in Rails config.headway takes them)\n",
                 run.err
  end

  def test_a_request_that_is_called_again_after_an_error_is_accounted_for
    fails = [true, false].each
    app = stack(->(_env) { fails.next ? raise("on purpose") : [200, {}, ["fine"]] }, server_timing: true)
    again = ->(env) { app.call(env) rescue app.call(env) } # rubocop:disable Style/RescueModifier
    works = finished { assert_includes Rack::MockRequest.new(again).get("/").headers, "server-timing" }
    assert_equal [[RuntimeError, nil], [nil, 200]], works.map { |work| [work.error&.class, work.status] }
    fails.rewind
    told = environment("rack.response_finished" => [])
    works = finished do
      again.call(told)
      told["rack.response_finished"].reverse_each { |each| each.call(told, 200, {}, nil) }
    end
    assert_equal [[nil, 200]], works.map { |work| [work.error, work.status] }, "one, if a server tells of its end"
    assert_empty Headway.notices
  end

  def test_bad_options
    { { smaple: 1 } => "smaple is no option of Headway::Rack: give route, sample, server_timing or wait_threshold",
      { sample: 2 } => "sample is 2: give a number from 0 to 1, such as 0.1",
      { server_timing: "yes" } => 'server_timing is "yes": give true or false',
      { wait_threshold: 0 } => "wait_threshold is 0: give seconds, such as 60",
      { route: "x" } => 'route is "x": give a lambda' }.each do |options, message|
      assert_equal message, assert_raises(Headway::SettingError) { Headway::Rack.new(nil, **options) }.message
    end
  end

  def test_where_headway_can_do_nothing
    run = Harness::RubyProcess.eval(<<~RUBY)
      require "headway/platform"
      Headway::Platform.extension_missing("not built")
      require "headway"
      require "headway/puma"
      abort "supported" if Headway.supported?
      Headway.start
      app = Headway::Rack.new(->(env) { [200, {}, [env["headway.request"].inspect]] }, server_timing: true, wait_threshold: 1)
      p app.call({ "rack.response_finished" => [] }), Headway.thread_account, Headway::Puma.stats
      work = Headway::Work.start(:job, "x")
      work.finish
      p work.times
    RUBY
    assert run.success?, run
    assert_equal %([200, {}, ["nil"]]\nnil\n{}\n[0.0, 0.0, 0.0]\n), run.out
  end

  def test_behind_webrick
    write_up = file("config.ru")
    File.write(write_up, <<~RUBY)
      require "headway"
      Headway.start
      Headway::Work.subscribe { |work| warn "finished \#{work.name} \#{work.status} \#{work.suspended.round(2)}" }
      use Headway::Rack
      run ->(_env) { [200, { "content-type" => "text/plain" }, Enumerator.new { |out| 2.times { sleep 0.05; out << "x" } }] }
    RUBY
    port = Harness::ServerProcess.free_port
    server = Harness::ServerProcess.new(Gem.bin_path("rackup", "rackup"), "-q", "-s", "webrick", "-p", port.to_s, write_up, directory: @directory)
    body = server.await("an answer") do
      Net::HTTP.get(URI("http://127.0.0.1:#{port}/a/1"))
    rescue SystemCallError
      nil
    end
    assert_equal "xx", body
    suspended = server.await_output(%r{finished GET /a/:id 200 \d+\.\d+})[/\S+\z/].to_f
    assert_operator suspended, :>=, 0.1
  ensure
    server&.stop
  end

  private

  # Two threads of which each has begun to compute.
  def beside_busy_threads
    beside_cpu_threads(2) do |counters,|
      await("both of them") { counters.all?(&:positive?) }
      yield
    end
  end

  # What the work of a request with these headers says of its queue.
  def queued(headers)
    works = finished { Rack::MockRequest.new(stack(->(_env) { [200, {}, []] })).get("/", headers) }
    assert_equal 200, works.first.status
    works.first.queued
  end
end
