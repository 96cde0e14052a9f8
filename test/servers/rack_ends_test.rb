# frozen_string_literal: true

require "harness/recorder_test"
require "servers/rack_stack"
require "timeout"

# How requests end in Headway::Rack: whatever passes through, strikes, or is wrong with the application or with us.
class RackEndsTest < Harness::RecorderTest
  include RackStack

  with_rubygems

  def test_exceptions_throws_and_kills_pass
    works = finished do
      app = stack(->(env) { env["what"].call })
      assert_raises(KeyError) { app.call(environment("what" => -> { {}.fetch(1) })) }
      assert_raises(NotImplementedError) { app.call(environment("what" => -> { raise NotImplementedError })) }
      assert_equal 1, catch(:async) { app.call(environment("what" => -> { throw :async, 1 })) }
      Thread.new { app.call(environment("what" => -> { Thread.current.kill; sleep })) }.join
    end
    assert_equal [KeyError, NotImplementedError, nil, nil], works.map { |work| work.error&.class }
    assert_nil Headway::Work.current
  end

  def test_a_fault_of_ours_breaks_no_request
    _, err = capture_subprocess_io do
      with_headway do
        app = Headway::Rack.new(->(_env) { [200, {}, ["fine"]] }, route: ->(_env) { raise "no route" })
        named = []
        asked = Headway::Work.subscribe { |work| named << work.name }
        2.times { assert_equal ["fine"], Rack::MockRequest.new(app).get("/").body.lines }
        nameless = Headway::Rack.new(->(_env) { [200, {}, ["fine"]] }, route: ->(env) { env["a route of ours"] })
        Rack::MockRequest.new(nameless).get("/")
        Headway::Work.unsubscribe(asked)
        assert_equal ["GET /"] * 3, named, "as if it had no route"
        odd = Headway::Rack.new(->(_env) { [Object, nil, ["odd"]] }, server_timing: true)
        assert_equal [Object, nil, ["odd"]], odd.call(environment)
        assert_equal 200, app.call(environment("rack.response_finished" => [].freeze, "PATH_INFO" => "\xff", "REQUEST_METHOD" => nil))[0]
        assert_equal 200, app.call({})[0]
      end
    end
    assert_equal 1, err.lines.grep(/\Aheadway: Headway::Rack failed and was left out: /).size, err
  end

  def test_what_an_application_answers_that_is_no_answer_is_no_fault_of_ours
    works = nil
    _, err = capture_subprocess_io do
      works = finished do
        assert_nil stack(->(_env) { nil }).call(environment)
        assert_equal "odd", stack(->(_env) { ["odd", {}, []] }).call(environment)[0]
        env = environment("rack.response_finished" => [])
        stack(->(_env) { [200, {}, []] }).call(env)
        env["rack.response_finished"].each { |told| told.call(env, "what pitchfork is at", nil, nil) }
      end
    end
    assert_equal [nil], works.map(&:status).uniq
    assert_empty err
  end

  # Rack::Cache makes an environment of its own, and Puma tells with the one it made.
  def test_a_request_whose_environment_was_copied_in_front_is_finished
    works = finished do
      app = stack(->(_env) { [200, {}, []] })
      env = environment("rack.response_finished" => [], "PATH_INFO" => "/copied")
      app.call(env.dup)
      env["rack.response_finished"].each { |told| told.call(env, 200, {}, nil) }
      assert_nil Headway::Work.current
      assert_raises(KeyError) { stack(->(_env) { raise KeyError }).call(env.dup) }
      env["rack.response_finished"].each { |told| told.call(env, 500, {}, KeyError.new) } # twice: the first one ends it
      Headway::Work.start(:job, "begun by hand").tap do |job|
        env["rack.response_finished"].each { |told| told.call(env, 200, {}, nil) }
        refute_predicate job, :finished?
      end.finish
    end
    assert_equal [["GET /copied", 200], ["GET /copied", 500], ["begun by hand", nil]], works.map { |work| [work.name, work.status] }
  end

  # As from Puma, which tells of no error that comes while it sends a body.
  def test_an_exception_that_passes_through_a_server_is_what_ended_the_request
    works = finished do
      env = environment("rack.response_finished" => [])
      assert_raises(IOError) do
        stack(->(_env) { [200, {}, []] }).call(env)
        raise IOError, "the body broke off"
      ensure
        env["rack.response_finished"].each { |told| told.call(env, 200, {}, nil) }
      end
    end
    assert_equal [[200, "the body broke off"]], works.map { |work| [work.status, work.error.message] }
  end

  # Puma 6 and others tell nothing, but close the body as it passes through; not an error that somebody else is rescuing.
  def test_what_passes_through_as_the_body_is_closed_is_what_ended_the_request
    serving = lambda do |body|
      response = stack(->(_env) { [200, {}, body] }).call(environment)
      response[2].each { |_part| nil }
    ensure
      response[2].close
    end
    breaking = Streamed.new
    def breaking.close = raise(IOError, "close failed")
    works = finished do
      assert_raises(IOError) { serving.call(Enumerator.new { raise IOError, "broke off" }) }
      assert_raises(IOError) { serving.call(breaking) }
      begin
        raise "before"
      rescue RuntimeError
        serving.call(["fine"])
        assert_raises(IOError) { serving.call(Enumerator.new { raise IOError, "broke off again" }) }
      end
    end
    assert_equal [[200, "broke off"], [200, "close failed"], [200, nil], [200, "broke off again"]],
                 works.map { |work| [work.status, work.error&.message] }
  end

  def test_what_another_thread_raises_meanwhile_is_no_fault_of_ours
    late = [].tap { |callbacks| callbacks.define_singleton_method(:push) { |_| Thread.current.raise(Timeout::Error, "late") } }
    with_headway do
      app = stack(->(_env) { flunk "it goes on" })
      assert_raises(Timeout::Error) { app.call(environment("rack.response_finished" => late)) }
    end
    works = finished do
      Headway::Work.start(:request) # as it was left
      Rack::MockRequest.new(stack(->(_env) { [200, {}, []] })).get("/next")
    end
    assert_equal ["GET /next"], works.map(&:name)
  end

  # A timeout, say, that strikes once the application has answered.
  def test_what_strikes_after_the_application_ends_the_work_too
    inside = Queue.new
    status = Object.new
    status.define_singleton_method(:to_int) do
      inside << true
      sleep 0.001 until Thread.pending_interrupt?
      200
    end
    works = finished do
      request = Thread.new do
        Thread.current.report_on_exception = false
        stack(->(_env) { [status, {}, []] }).call(environment)
      end
      inside.pop
      request.raise(ArgumentError, "too late")
      assert_equal "too late", assert_raises(ArgumentError) { request.join }.message
    end
    assert_equal [[200, "too late"]], works.map { |work| [work.status, work.error&.message] }
  end

  WITHOUT_RACK = <<~RUBY
    require "headway/rack"
    Headway.start
    Headway::Rack.class_eval { def require(name) = name.start_with?("rack/") ? raise(LoadError, name) : super }
  RUBY

  def test_an_application_without_the_gem_rack
    run = Harness::RubyProcess.eval("#{WITHOUT_RACK}#{<<~RUBY}")
      names = []
      Headway::Work.subscribe { |work| names << work.name }
      p Headway::Rack.new(->(_env) { [200, {}, ["hello"]] }).call({ "REQUEST_METHOD" => "GET", "PATH_INFO" => "/a" }), names
    RUBY
    assert_equal %([200, {}, ["hello"]]\n["GET /a"]\n), run.out, run
  end

  # Asked again by something that rescued an error of its own, which isn't the request's.
  def test_without_the_gem_rack_an_error_from_before_is_not_the_requests
    run = Harness::RubyProcess.eval("#{WITHOUT_RACK}#{<<~RUBY}")
      Headway::Work.subscribe { |work| p [work.status, work.error] }
      app = Headway::Rack.new(->(_env) { [200, {}, ["hello"]] })
      begin
        raise "before"
      rescue RuntimeError
        app.call({ "REQUEST_METHOD" => "GET", "PATH_INFO" => "/a" })
      end
    RUBY
    assert_equal "[200, nil]\n", run.out, run
  end
end
