# frozen_string_literal: true

require "web/mounted"

# What the page is told, and its files.
class WebStateTest < Minitest::Test
  include Mounted

  def test_this_process
    Headway.start
    mean = Thread.new { Thread.current.name = "</script><b>\xff"; sleep }
    Thread.pass until mean.stop?
    Headway.stats # tells the whole name
    response = get(web, "/state")
    assert_equal "application/json", response["content-type"]
    refute_includes response.body, "<"
    told = state(web)
    process = told[:processes].find { |found| found[:pid] == Process.pid }
    assert_equal ["fair", 100, "signal"], process.values_at(:policy, :quantum_ms, :preempt)
    assert_includes process[:threads].map { |thread| thread[:name] }.join, "</script><b>"
    assert_kind_of Array, process[:process][:wait_histogram]
    assert_empty told[:captures]
  ensure
    mean&.kill&.join
  end

  def test_waits_are_counted_in_buckets
    Headway.start
    threads = Array.new(3) { Thread.new { 50.times { sleep 0.0002 } } }
    threads.each(&:join)
    figures = state(web)[:processes].first[:process]
    histogram = figures[:wait_histogram]
    assert_operator figures[:wait][:count], :>, 0
    assert_equal figures[:wait][:count], histogram.sum { |bucket| bucket[:count] }
    assert histogram.each_cons(2).all? { |one, other| one[:to_s] <= other[:from_s] }
    assert_operator histogram.last[:from_s], :<=, figures[:wait][:max]
    assert_operator histogram.last[:to_s] * 1.01, :>=, figures[:wait][:max]
  end

  def test_the_same_answer_serves_all_for_a_second
    Headway.start
    web = web()
    started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    walls = Array.new(200) { state(web)[:processes].first[:wall] }
    assert_operator walls.uniq.size, :<=, Process.clock_gettime(Process::CLOCK_MONOTONIC) - started + 2
    answers = Array.new(20) { Thread.new { Array.new(20) { get(web, "/state").status } } }.flat_map(&:value)
    assert_equal [200], answers.uniq
  end

  # A timeout, say, which the server's thread survives.
  def test_an_exception_at_any_step_holds_up_nobody_who_asks_later
    [false, true].each do |answered_before|
      (1..).find do |step|
        processes = Headway::Web::Processes.new
        processes.text { {} } if answered_before
        processes.forget
        struck = struck_at(step) { processes.text { {} } }
        processes.forget
        asked = Thread.new { processes.text { { asked: step } } }
        assert asked.join(20), "step #{step}"
        assert_includes asked.value, "\"asked\":#{step}"
        !struck
      ensure
        asked&.kill&.join
      end
    end
  end

  def test_a_stopped_headway_says_so
    refute_predicate Headway, :started?
    told = state(web)
    assert_empty told[:processes]
    assert_includes told[:notices].first, "Headway is not started in this process (#{Process.pid})"
  end

  def test_without_a_socket_this_process_alone_is_shown
    ENV["HEADWAY_CONTROL"] = "0"
    Headway.start
    told = state(web)
    assert_equal [Process.pid], told[:processes].map { |process| process[:pid] }
    assert_includes told[:notices].first, "has no control socket"
    assert_equal 404, post(web, "/captures", { pid: Process.pid }).status
  end

  def test_a_process_of_another_group_is_no_sibling
    other = Process.spawn(RbConfig.ruby, "-I", File.expand_path("../../lib", __dir__), "-e", "require 'headway'; Headway.start; sleep", pgroup: true)
    socket = File.join(ENV.fetch("HEADWAY_CONTROL_DIR"), "#{other}.sock")
    sleep 0.01 until File.exist?(socket)
    Headway.start
    web = web(controls: ->(_) { true })
    assert_equal [Process.pid], state(web)[:processes].map { |process| process[:pid] }
    assert_equal 404, post(web, "/settings", { pid: other, quantum_ms: 20 }).status
  ensure
    Process.kill(:KILL, other)
    Process.wait(other)
  end

  # What is null where another version has a number is taken for none, and what makes no sense is said to.
  def test_a_sibling_may_answer_anything
    Headway.start
    web
    stats = Headway::Control::Client.new(Process.pid, Headway::Control.path).stats
    numbered = stats[:threads].first
    odd = [{ threads: [numbered.merge(number: nil), numbered], threads_left_out: nil }, { recorder: "none" }]
    sibling = Process.spawn("sleep 60")
    server = UNIXServer.new(File.join(ENV.fetch("HEADWAY_CONTROL_DIR"), "#{sibling}.sock"))
    told = nil
    answering = Thread.new { loop { server.accept.then { |socket| socket.gets && socket.puts(told) && socket.close } rescue nil } }
    answers = odd.map do |answer|
      told = JSON.generate(stats: stats.merge(pid: sibling, **answer))
      state(web())[:processes].find { |process| process[:pid] == sibling }
    end
    assert_equal [2, 0], answers.first.then { |told| [told[:threads].size, told[:threads_left_out]] }
    assert_match(/makes no sense/, answers.last[:error])
  ensure
    answering&.kill&.join
    server&.close
    Process.kill(:KILL, sibling).then { Process.wait(sibling) } if sibling
  end

  def test_many_threads_are_cut_short
    Headway.start
    threads = Array.new(150) { Thread.new { sleep } }
    process = state(web)[:processes].first
    assert_equal 100, process[:threads].size
    assert_operator process[:threads_left_out], :>=, 51
  ensure
    threads&.each(&:kill)&.each(&:join)
  end

  def test_on_a_platform_without_headway_it_says_so
    run = Harness::RubyProcess.eval(<<~RUBY, env: { "RACK_ENV" => "development" })
      require "headway/platform"
      Headway::Platform.extension_missing(LoadError.new("made up"))
      require "headway"
      web = Headway::Web.new(controls: ->(_) { true })
      env = { "REQUEST_METHOD" => "GET", "PATH_INFO" => "/", "SCRIPT_NAME" => "" }
      puts web.call(env)[0]
      puts web.call(env.merge("PATH_INFO" => "/state"))[2].first
      token = "t" * 32
      mine = { "HTTP_SEC_FETCH_SITE" => "same-origin", "HTTP_X_HEADWAY_TOKEN" => token, "HTTP_COOKIE" => "headway_web=" + token }
      require "stringio"
      %w[/captures /settings /recorder].each do |path|
        puts web.call(mine.merge("REQUEST_METHOD" => "POST", "PATH_INFO" => path, "CONTENT_TYPE" => "application/json",
                                 "rack.input" => StringIO.new('{"pid":1}')))[0]
      end
      puts web.call(env.merge("PATH_INFO" => "/captures/1-20260101T000000.000Z.headway/report"))[0]
    RUBY
    assert run.success?, run
    page, told, *others = run.out.lines.map(&:chomp)
    assert_equal "200", page
    assert_equal [[], true], JSON.parse(told).then { |state| [state["processes"], state["notices"].first.include?("Headway does nothing here")] }
    assert_equal %w[404 404 404 404], others
  end

  def test_assets_are_kept_for_good_and_nothing_else_is_served
    web = web()
    page = get(web, "/").body
    links = page.scan(%r{(?:src|href)="/headway(/assets/[^"]+)"}).flatten
    assert_equal 6, links.size
    links.each do |link|
      response = get(web, link)
      assert_equal [200, "private, max-age=31536000, immutable"], [response.status, response["cache-control"]], link
      again = get(web, link, "HTTP_IF_NONE_MATCH" => response["etag"])
      assert_equal [304, ""], [again.status, again.body]
    end
    assert_equal [200, "no-store"], get(web, "/assets/0123/app.js").then { |response| [response.status, response["cache-control"]] }
    %w[../web.rb .. . /etc/passwd web.css/ timeline/../app.js page.html].each { |name| assert_equal 404, get(web, "/assets/0/#{name}").status, name }
  end

  # A script that imports one that isn't served would leave the page empty.
  def test_all_that_scripts_import_is_there_and_in_the_gem
    scripts = Headway::Web::Assets.paths.grep(/\.js\z/)
    imported = scripts.flat_map { |path| File.read(path).scan(/from "\.\/([^"]+)"/).flatten }
    assert_empty imported.uniq.reject { |name| get(web, "/assets/0/#{name}").status == 200 }
    root = File.expand_path("../..", __dir__)
    shipped = Gem::Specification.load(File.join(root, "headway.gemspec")).files
    needed = (Headway::Web::Assets.paths + Dir[File.join(root, "lib/headway/web/**/*.html")]).map { |path| path.delete_prefix("#{root}/") }
    assert_empty needed - shipped
  end

  private

  # Whether the block took so many steps: lines, and calls of methods in C, before and after them.
  def struck_at(step)
    strike = Class.new(Exception)
    trace = TracePoint.new(:line, :c_call, :c_return) do |point|
      raise strike if point.path.end_with?("web/processes.rb") && (step -= 1).zero?
    end
    trace.enable { yield }
    false
  rescue strike
    true
  end
end
