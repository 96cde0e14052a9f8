# frozen_string_literal: true

require "test_helper"
require "headway"
require "headway/workload"
require "json"
require "rack"
require "servers/server_process"

# Requests and jobs as spans of a recording, which predict and advise take for requests: no mark in the program.
class SpansTest < Minitest::Test
  include Harness::Serving

  APP = <<~RUBY
    require "headway"
    use Headway::Rack, route: ->(env) { env["PATH_INFO"] == "/heavy" ? "heavy" : "light" }
    run(lambda do |env|
      env["PATH_INFO"] == "/heavy" ? 200_000.times { } : sleep(0.002)
      [200, {}, ["hello"]]
    end)
  RUBY

  def test_a_puma_under_headway_run_gives_figures_by_class
    write("config.ru", APP)
    port = Harness::ServerProcess.free_port
    control = Harness::ServerProcess.free_port
    write("puma.rb", "threads 2, 2\nbind 'tcp://127.0.0.1:#{port}'\n" \
                     "activate_control_app 'tcp://127.0.0.1:#{control}', no_token: true\n")
    headway = File.expand_path("../../exe/headway", __dir__)
    puma = serve(headway, "run", "--policy", "observe", "--record", "out.headway", "--",
                 RbConfig.ruby, "-I", File.join(Harness::ServerProcess::ROOT, "lib"), gem_program("puma"), "-C", "puma.rb", "config.ru")
    puma.await_output(/Use Ctrl-C to stop/)
    Net::HTTP.start("127.0.0.1", port) { |http| 40.times { |number| http.get(number % 4 == 0 ? "/heavy" : "/items/#{number}") } }
    get(control, "/stop") # told by a signal it may hang at its end: see ServerProcess#stop
    assert_predicate puma.wait, :success?, puma.output

    out, status = headway_json(headway, "predict", "out.headway", "--threads", "2")
    assert status, out
    recorded = JSON.parse(out).fetch("recorded").fetch("classes").to_h { |row| [row["name"], row["count"]] }
    assert_equal({ "heavy" => 10, "light" => 30 }, recorded)
    out, status = headway_json(headway, "advise", "out.headway")
    assert status, out
  end

  def test_a_request_is_a_span_to_its_last_byte_and_is_called_as_it_is_known_at_the_end
    body = Class.new { def each = sleep(0.01).then { yield "late" } }.new
    stack = Rack::Lint.new(Headway::Rack.new(->(_) { [200, {}, body] }, route: ->(_) { "streamed" }))
    trace, workload = recorded { 3.times { |number| Rack::MockRequest.new(stack).get("/slug-#{number}") } }
    assert_equal ["streamed"] * 3, trace[:marks].map { |mark| mark[:name] }
    trace[:marks].each { |mark| assert_operator mark[:end_s] - mark[:start_s], :>=, 0.01 }
    assert_equal [["streamed", 3]], workload.kinds.map { |kind| [kind.name, kind.count] }
    assert_equal 1, workload.facts[:classes].count { |row| row[:name].start_with?("GET", "streamed") }, "names it had before"
  end

  def test_a_job_is_a_span_also_inside_of_a_request_and_after_an_error
    trace, workload = recorded do
      request = Headway::Work.start(:request) { "provisional" }
      Headway::Work.start(:job, "Mail").finish
      request.name = "GET /mail"
      request.finish(RuntimeError.new("x"))
      request.finish
      Headway::Work.start(:job, "Alone").finish
    end
    assert_equal ["Alone", "GET /mail", "Mail"], trace[:marks].map { |mark| mark[:name] }.sort
    assert_equal [["Alone", "job"], ["GET /mail", "request"]], trace[:work].map { |work| work.values_at(:name, :kind) }.sort
    assert_equal ["GET /mail"], workload.kinds.map(&:name)
    refute_predicate workload, :jobs?
  end

  # As Active Job's own adapter, GoodJob's and Sidekiq's embedded one do: their threads are none of the server's.
  def test_jobs_in_a_server_go_on_beside_its_requests
    server = lambda do
      Thread.new do
        Thread.current.name = "server"
        20.times do
          Headway::Work.start(:request, "GET /").tap { sleep 0.005 }.finish
          sleep 0.001
        end
      end
    end
    jobs = lambda do
      Thread.new do
        Thread.current.name = "jobs"
        10.times do
          work = Headway::Work.start(:job, "Report")
          20_000.times { }
          Headway.mark("query") { sleep 0.005 }
          Headway::Work.start(:request, "warm up").finish
          work.finish
        end
      end
    end
    trace, workload = recorded { [*Array.new(2) { server.call }, *Array.new(3) { jobs.call }].each(&:join) }
    assert_equal [["GET /", 40]], workload.kinds.map { |kind| [kind.name, kind.count] }
    assert_equal [2, "request"], [workload.threads, workload.thing]
    assert_equal ["jobs"], workload.facts[:tracks].map { |track| workload.facts[:classes][track[:class]][:name] }.uniq - ["main"]
    assert_equal 2, trace[:processes].first[:pool][:threads]
    assert_equal({ "GET /" => "request", "Report" => "job" }, trace[:work].to_h { |work| work.values_at(:name, :kind) })

    trace, workload = recorded { Array.new(3) { jobs.call }.each(&:join) }
    assert_equal [["Report", 30]], workload.kinds.map { |kind| [kind.name, kind.count] }
    assert_equal [3, "job"], [workload.threads, workload.thing]
    assert_equal 3, trace[:processes].first[:pool][:threads]
  end

  def test_what_is_done_in_a_job_that_began_before_the_recording_is_no_work_of_its_own
    Headway.start(policy: :observe)
    batch = Headway::Work.start(:job, "Batch")
    trace, workload = recorded do
      3.times do
        Headway::Work.start(:job, "Mail").finish
        Headway.mark("step") { sleep 0.001 }
        Headway::Native.end_mark(Headway::Native.begin_job("perform Mail"), nil)
      end
      Thread.new { 5.times { Headway::Work.start(:request, "GET /").tap { sleep 0.001 }.finish } }.join
      batch.finish
      Headway.mark("after") { sleep 0.001 }
    end
    assert_equal [["GET /", "request", 5], ["after", nil, 1]], trace[:work].map { |work| work.values_at(:name, :kind, :count) }.sort_by(&:first)
    assert_equal [["GET /", 5], ["after", 1]], workload.kinds.map { |kind| [kind.name, kind.count] }.sort
    assert_equal 9 + 5 + 1, trace[:marks].size, "marks they are all the same"
  end

  def test_a_recording_tells_how_long_works_stood_in_a_queue
    trace, = recorded do
      [0.5, 2, nil, 0].each do |queued|
        work = Headway::Work.start(:request) { "provisional" }
        work.queued = queued
        Headway::Work.start(:job, "inner").tap { |job| job.queued = 0.25 }.finish
        work.name = "GET /"
        work.finish
        work.queued = 7
      end
      Headway::Work.start(:job, "beside").tap { |work| work.queued = 9 }.finish
    end
    assert_equal 5, trace[:marks].size - 4
    assert_equal({ count: 3, total_s: 0.5 + 2 + 0, max_s: 2.0 }, trace[:processes].first[:queued])
    days = 2 * 24 * 60 * 60 # more than there is room for
    trace, = recorded { [0.5, days].each { |queued| Headway::Work.start(:job, "x").tap { |work| work.queued = queued }.finish } }
    assert_equal({ count: 2, total_s: 0.5 + 4_294.967295, max_s: 4_294.967295 }, trace[:processes].first[:queued])
    trace, = recorded { Headway::Work.start(:job, "x").finish }
    assert_nil trace[:processes].first[:queued]
  end

  def test_what_is_finished_on_another_thread_takes_no_span_of_others
    trace, workload = recorded do
      work = Headway::Work.start(:request)
      work.name = "elsewhere"
      Thread.new { work.finish }.join
      left = Headway::Work.start(:request) { "left" }
      second = Headway::Work.start(:request)
      second.name = "second"
      second.finish
      Thread.new { left.finish }.join
    end
    assert_equal %w[elsewhere left second], trace[:marks].map { |mark| mark[:name] }.sort
    assert_equal({ "elsewhere" => 1, "left" => 1, "second" => 1 }, workload.kinds.to_h { |kind| [kind.name, kind.count] })
  end

  def test_a_recording_that_begins_or_ends_in_a_work_breaks_nothing
    Headway.start
    early = Headway::Work.start(:job, "early")
    _, workload = recorded do
      early.finish
      Headway::Work.start(:job, "whole").finish
      @late = Headway::Work.start(:job, "late")
    end
    @late.finish
    assert_equal ["whole"], workload.kinds.map(&:name)
    trace, = recorded { @late.finish }
    assert_empty trace[:marks]
  end

  private

  def recorded
    @recordings = @recordings.to_i + 1
    file = File.join(@directory, "out#{@recordings}.headway")
    Headway.start(policy: :observe) unless Headway.started?
    Headway::Recorder.start(file: file)
    yield
    Headway::Recorder.stop
    [Headway::Trace.open(file).to_h, Headway::Workload.open(file)]
  end

  def headway_json(headway, *arguments)
    out = IO.popen([RbConfig.ruby, "-I", File.join(Harness::ServerProcess::ROOT, "lib"), headway, *arguments, "--json"],
                   chdir: @directory, err: %i[child out], &:read)
    [out, $?.success?]
  end
end
