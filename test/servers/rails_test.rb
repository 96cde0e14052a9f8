# frozen_string_literal: true

require "test_helper"
require "headway"
require "json"
require "servers/rails_application"
require "servers/server_process"

# Headway in a real Rails application, served by Puma.
class RailsTest < Minitest::Test
  include Harness::Serving

  APP = Harness::RailsApplication.text("active_record", "action_controller", "active_job", <<~RUBY) + <<~'RUBY'
    config.active_job.queue_adapter = :inline
    routes.append do
      get "/items/:id", to: "items#show"
      get "/parts/:id.json", to: "items#show", format: "json"
      get "/fails", to: "items#fail"
      get "/state", to: "items#state"
      get "/stop", to: "items#stop"
      get "/live", to: "live#show"
      mount Users => "/eng"
      mount ->(env) { [200, {}, [env["PATH_INFO"]]] } => "/rack"
      scope("/o/:org") do
        mount Users => "/eng", as: :org_users
        mount ->(env) { [200, {}, [env["PATH_INFO"]]] } => "/rack", as: :org_rack
      end
      mount ->(env) { env["PATH_INFO"].start_with?("/at") ? [200, {}, []] : [404, { "x-cascade" => "pass" }, []] } => "/", as: :root_rack
    end
  RUBY

    class Users < Rails::Engine
      isolate_namespace Users
      routes.append do
        root to: ->(_env) { [200, {}, ["root"]] }
        get "/users/:id", to: ->(env) { [200, {}, ["user"]] }
        get "/eng/:id", to: ->(env) { [200, {}, ["user"]] }
        get "/raises", to: ->(_env) { raise "on purpose" }
      end
    end

    class Item < ActiveRecord::Base; end

    class Polish < ActiveJob::Base
      def perform = sleep(0.01)
    end

    class ItemsController < ActionController::Base
      def show
        # SQLite keeps the GVL; a function that sleeps lets go of it in mid-query, as a client of a database server does.
        raw = Item.connection.raw_connection
        raw.create_function("doze", 0) { |function| sleep 0.005; function.result = 1 }
        Rails.cache.read("x")
        Polish.perform_later
        item = Item.find(params[:id])
        beside_computing_threads { Item.connection.select_value("SELECT doze()") }
        render inline: "<%= item.name %>", locals: { item: item }
      end

      def beside_computing_threads
        stop = false
        begun = Queue.new
        threads = Array.new(2) { Thread.new { begun << true; nil until stop } }
        2.times { begun.pop }
        yield
      ensure
        stop = true
        threads.each(&:join)
      end

      def fail = raise(ArgumentError, "on purpose")
      def stop = render(json: Headway::Recorder.stop)
      def state = render(json: { policy: Headway.policy, started: Headway.started?, first: Rails.application.middleware.first.name })
    end

    class LiveController < ItemsController
      include ActionController::Live

      def show
        Item.connection.raw_connection.create_function("doze", 0) { |function| sleep 0.005; function.result = 1 }
        before = Headway.thread_account
        beside_computing_threads { Item.connection.select_value("SELECT doze()") }
        response.stream.write((Headway.thread_account[1] - before[1]).to_s)
      ensure
        response.stream.close
      end
    end
  RUBY

  RU = <<~'RUBY'
    require_relative "app"
    Shop.initialize!
    ActiveRecord::Schema.verbose = false
    ActiveRecord::Schema.define { create_table(:items, force: true) { |table| table.string :name } }
    Item.create!(id: 7, name: "lamp")
    out = ->(line) { File.write("seen", JSON.generate(line) + "\n", mode: "a") }
    ActiveSupport::Notifications.subscribe("sql.active_record") do |event|
      out.(["sql", event.payload[:name], event.payload[:headway], event.duration / 1000]) if event.payload[:headway]
    end
    %w[request job].each do |kind|
      ActiveSupport::Notifications.subscribe("#{kind}.headway") do |event|
        work = event.payload[:work]
        out.([kind, work.name, work.status, work.parts[:sql]&.to_a, work.waiting, work.queue])
      end
    end
    ActiveSupport::Notifications.subscribe("job.headway") { raise "a broken subscriber" }
    map("/map") { run Shop }
    run Shop
  RUBY

  def test_requests_jobs_and_queries_in_rails
    write("config/puma.rb", "plugin :headway") # which loads Headway before there is Rails
    rails("config.headway.policy = :observe; config.headway.server_timing = true;" \
          "config.headway.recorder = { file: 'out.headway' }")
    response = get(@port, "/items/7")
    assert_equal "lamp", response.body
    assert_match(/gvl-wait;dur=/, response["server-timing"])
    assert_equal "500", get(@port, "/fails").code
    assert_equal "404", get(@port, "/nothing").code
    seen = @rails.await("all requests") { lines = seen_lines; lines if lines.count { |kind,| kind == "request" } == 3 }

    # A request is done after its response was sent: the next one may be done before.
    requests = seen.select { |kind,| kind == "request" }
    assert_equal [["GET (not found)", 404], ["GET /fails", 500], ["GET /items/:id", 200]], requests.map { |row| row[1, 2] }.sort
    shown = requests.find { |row| row[2] == 200 }
    count, wall, waiting = shown[3]
    assert_operator count, :>=, 2
    assert_operator waiting, :>, 0
    assert_operator wall, :>, waiting
    assert_operator shown[4], :>=, waiting
    assert_equal ["job", "Polish", nil, nil, "default"], seen.find { |kind,| kind == "job" }.values_at(0, 1, 2, 3, 5)

    _, _, split, duration = seen.find { |kind, name, headway| kind == "sql" && name.nil? && headway["gvl_wait"] > 0.01 }
    assert split, "the query that dozes waits behind two computing threads: #{seen.grep(/sql/)}"
    assert_operator split["database"], :>=, 0.004
    assert_in_delta duration, split["database"] + split["gvl_wait"], 0.05
    assert_match(/Completed 200 OK in .*GVL wait: [\d.]+ms/, @rails.output)

    get(@port, "/stop")
    trace = Headway::Trace.open(File.join(@directory, "out.headway")).to_h
    marks = trace[:marks].map { |mark| mark[:name] }.uniq
    ["ItemsController#show", "sql Item Load", "cache_read", "perform Polish", "GET /items/:id"].each { |name| assert_includes marks, name }
    assert marks.any? { |name| name.start_with?("render ") }, marks.inspect
    assert_empty trace[:work].map { |work| work[:name] }.grep(/\A(sql|render|cache)/), "a query at the start is no work of its own"
  end

  # Rails runs it on a thread of its own, and copies there what says which request it is.
  def test_a_streaming_action_is_told_from_the_thread_that_waits_for_it
    rails("config.headway.policy = :observe")
    waited = get(@port, "/live").body.to_f
    assert_operator waited, :>, 0.005
    @rails.await_output(/Completed 200 OK in .*GVL wait: [\d.]+ms/)
    logged = @rails.output[/GVL wait: ([\d.]+)ms/, 1].to_f / 1000
    assert_operator logged, :>=, waited - 0.001
    request = @rails.await("the request") { seen_lines.find { |kind, name| kind == "request" && name == "GET /live" } }
    assert_nil request[3], "its queries are no part of what the request's thread did"
  end

  def test_what_is_mounted_is_named_with_its_place
    rails("")
    paths = { "/eng/users/8" => "GET /eng/users/:id", "/eng" => "GET /eng", "/eng/nothing/7" => "GET (not found)", "/o/acme/eng/users/9" => "GET /o/:org/eng/users/:id",
              "/o/%61cme/eng/users/acme" => "GET /o/:org/eng/users/:id", "/o/%C3%A9/eng/users/1" => "GET /o/:org/eng/users/:id", "/rack/a/b" => "GET /rack", "/o/eng/rack/c" => "GET /o/:org/rack",
              "/eng/eng/eng" => "GET /eng/eng/:id", "/items/7" => "GET /items/:id", "/items/7.html" => "GET /items/:id",
              "/items/7.json" => "GET /items/:id.json", "/items/7.made_up" => "GET /items/:id", "/parts/7.json" => "GET /parts/:id.json",
              "/eng/users/7.csv" => "GET /eng/users/:id.csv",
              "/eng/raises" => "GET /eng/raises", "/at/root/12" => "GET /at/root/:id",
              "/map/eng/users/3" => "GET /map/eng/users/:id", "/map/state" => "GET /map/state", "/" => "GET /" }
    paths.each_key { |path| get(@port, path) }
    seen = @rails.await("all requests") { rows = seen_lines.select { |kind,| kind == "request" }; rows if rows.size == paths.size }
    assert_equal paths.values.sort, seen.map { |row| row[1] }.sort
  end

  def test_defaults_and_headway_run
    rails("", command: [File.join(Harness::ServerProcess::ROOT, "exe/headway"), "run", "--policy", "quantum", "--"])
    assert_equal({ "policy" => "quantum", "started" => true, "first" => "Headway::Rack" }, JSON.parse(get(@port, "/state").body))
  end

  def test_off_in_test
    rails("", env: { "RAILS_ENV" => "test" })
    state = JSON.parse(get(@port, "/state").body)
    assert_equal false, state["started"]
    refute_equal "Headway::Rack", state["first"]
    assert_equal "lamp", get(@port, "/items/7").body
    refute_match(/GVL wait/, @rails.output)
  end

  def test_an_option_that_is_not_there_is_named_in_one_line
    write("app.rb", APP)
    write("config/initializers/headway.rb", "Rails.application.configure { config.headway.quantum = 50 }")
    run = Harness::RubyProcess.eval("require 'logger'; require '#{@directory}/app'; Shop.initialize!", env: database)
    refute run.success?
    assert_equal "config: quantum is no option of config.headway: give policy, quantum_ms, preempt, enabled, recorder, requests, jobs, " \
                 "queries, markers, log, sample, server_timing, wait_threshold or route (Headway::SettingError)\n", run.err
  end

  def test_what_is_no_options_is_named_in_one_line
    write("app.rb", APP)
    write("config/initializers/headway.rb", "Rails.application.configure { config.headway = false }")
    run = Harness::RubyProcess.eval("require 'logger'; require '#{@directory}/app'; Shop.initialize!", env: database)
    refute run.success?
    assert_equal "config: config.headway is false: give single options, such as config.headway.enabled = false (Headway::SettingError)\n", run.err
  end

  # Puma's configuration, or an initializer, may have started it; what config.headway says comes on top.
  def test_settings_from_before_stay
    write("app.rb", APP)
    write("config/initializers/headway.rb", <<~RUBY)
      Headway.start(policy: :observe, quantum_ms: 20)
      Headway::Autotune.stop
      Rails.application.configure { config.headway.preempt = :poll }
    RUBY
    code = "p Headway.policy, Headway.quantum_ms, Headway.preempt"
    run = Harness::RubyProcess.eval("require 'logger'; require '#{@directory}/app'; Shop.initialize!; #{code}", env: database)
    assert run.success?, run
    assert_equal ":observe\n20\n:poll\n", run.out
  end

  # Rails runs what an initializer comes after first: the application's initializers, which are to find what gems have set before them.
  def test_initializers_run_in_the_order_in_which_they_do_without
    body = <<~RUBY
      $order = []
      Class.new(Rails::Railtie) { def self.name = "Later"; initializer("later") { $order << :gem } }
      initializer("own") { $order << :own << Headway.started? }
    RUBY
    write("app.rb", Harness::RailsApplication.text("action_controller", body))
    write("config/initializers/shop.rb", "$order << :application << Headway.started?")
    run = Harness::RubyProcess.eval("require '#{@directory}/app'; Shop.initialize!; p $order, Shop.middleware.first.name")
    assert_equal %([:gem, :application, false, :own, true]\n"Headway::Rack"\n), run.out, run
  end

  # It may well take that from env["headway.request"].
  def test_a_controller_may_have_a_method_of_any_name
    write("app.rb", APP)
    run = Harness::RubyProcess.eval(<<~RUBY, env: database)
      require "#{@directory}/app"
      require "rack/mock"
      Shop.initialize!
      ItemsController.define_method(:gvl_wait) { "its own" }
      ActiveSupport::Notifications.subscribe("process_action.action_controller") { |event| p event.payload[:gvl_wait].class }
      Rack::MockRequest.new(Shop).get("/state")
    RUBY
    assert_equal ["Float\n"], run.out.lines.grep(/\A(?:Float|String)$/), run
    assert_match(/ \| GVL wait: /, run.out)
  end

  def test_the_generator_writes_an_initializer_with_every_option
    write("app.rb", APP)
    run = Harness::RubyProcess.eval(<<~RUBY, env: database.merge("RAILS_ENV" => "production"))
      Dir.chdir("#{@directory}")
      Dir.mkdir("log")
      require "./app"
      require "rails/generators"
      Rails::Generators.invoke("headway:install", ["--quiet"], destination_root: Dir.pwd)
      # As if every line were taken out of its comment.
      initializer = "config/initializers/headway.rb"
      File.write(initializer, File.read(initializer).gsub("# config.", "config."))
      Shop.initialize!
      p Headway.started?, Headway::Recorder.stats[:mode]
    RUBY
    assert run.success?, run
    assert_equal "true\n:flight\n", run.out
  end

  # Not an error of those who listen, and by way of theirs.
  def test_what_is_raised_from_outside_as_a_work_ends_is_not_lost
    write("app.rb", APP)
    run = Harness::RubyProcess.eval(<<~RUBY, env: database)
      require "logger"
      require "#{@directory}/app"
      Shop.initialize!
      late = Class.new(StandardError)
      ActiveSupport::Notifications.notifier.singleton_class.prepend(Module.new do
        define_method(:listening?) do |name|
          Thread.current.raise(late, "late") if name == "job.headway" && Thread.current[:struck]
          super(name)
        end
      end)
      timeout = Class.new(Exception)
      ActiveSupport::Notifications.subscribe("request.headway") { raise "a broken subscriber" }
      ActiveSupport::Notifications.subscribe("request.headway") { Thread.current.raise(timeout, "timeout") }
      Thread.current[:struck] = true
      %i[job request].each do |kind|
        work = Headway::Work.start(kind, "a test")
        work.finish
        puts "lost"
      rescue late, timeout => error
        puts error.message, Headway::Work.current.inspect
      end
    RUBY
    assert_equal "late\nnil\ntimeout\nnil\n", run.out.lines.grep(/late|nil|timeout|lost/).join, run
  end

  # Rails tells when a job was put there, and when it was due, as one thing or another by its version.
  def test_how_long_a_job_stood_in_its_queue
    write("app.rb", APP)
    run = Harness::RubyProcess.eval(<<~RUBY, env: database)
      require "logger"
      require "#{@directory}/app"
      Shop.initialize!
      Headway.start
      Headway::Work.subscribe { |work| puts "queued \#{work.queued&.round.inspect}" }
      now = Time.now
      [[nil, nil], [now - 100, nil], [(now - 100).utc.iso8601(6), nil], [now - 500, now - 100], [now - 500, (now - 100).to_f], [now - 5, now + 5]].each do |put, due|
        job = Polish.new
        job.enqueued_at = put
        job.instance_variable_set(:@scheduled_at, due)
        job.perform_now
      end
      Polish.perform_later
    RUBY
    assert_equal %w[nil 100 100 100 100 0 0], run.out.scan(/^queued (\w+)$/).flatten, run
    refute_match(/left out/, run.err)
  end

  # Another one's start that raises, or what strikes in it, ends the event before it has begun: nobody is told of its end.
  def test_a_job_whose_event_never_began_hides_none_after_it
    write("app.rb", APP)
    run = Harness::RubyProcess.eval(<<~RUBY, env: database)
      require "logger"
      require "timeout"
      require "#{@directory}/app"
      Shop.initialize!
      broken = Class.new do
        def start(*) = Thread.current[:fault]&.call
        def finish(*) = nil
      end
      ActiveSupport::Notifications.subscribe("perform.active_job", broken.new)
      Headway::Work.subscribe { |work| puts [work.name, work.queue, work.error.class].join(" ") }
      [-> { raise "on purpose" }, -> { Thread.current.raise(Timeout::Error) }, -> { throw :out }, nil].each do |fault|
        Thread.current[:fault] = fault
        catch(:out) { Polish.perform_now }
      rescue RuntimeError
        p Headway::Work.current
      end
    RUBY
    assert_equal "Polish default RuntimeError\nnil\nPolish default Timeout::Error\nnil\nPolish default NilClass\nPolish default NilClass\n",
                 run.out.lines.grep(/\A(?:Polish|nil|#<)/).join, run
  end

  def test_events_that_nest_raise_share_a_payload_or_have_a_frozen_one_break_nothing
    write("app.rb", APP)
    run = Harness::RubyProcess.eval(<<~RUBY, env: database)
      require "logger"
      require "#{@directory}/app"
      Shop.initialize!
      Rails.logger.level = :fatal
      def event(payload = {}, &) = %w[sql.active_record cache_read.active_support].map { |name| ActiveSupport::Notifications.instrument(name, payload, &) }.uniq
      def queries
        work = Headway::Work.start(:job, "a test")
        done = yield
        work.finish
        p [done, work.parts[:sql]&.count]
      end
      exercise = lambda do
        queries { event { event { :nested } } }
        queries { event { raise "raised" } rescue $!.message }
        queries { catch(:out) { event { throw :out, :thrown } } }
        shared = {}
        queries { event(shared) { event(shared) { :shared } } }
        queries { event({}.freeze) { :frozen } }
      end
      exercise.call
      Headway::Recorder.start(file: "#{@directory}/out.headway")
      exercise.call
      queries { event { Headway.stop; :stopped } }
      queries { event { Headway.start(policy: :observe); :started } }
      p Headway::Trace.open("#{@directory}/out.headway").to_h[:marks].map { |mark| mark[:name] }.tally
    RUBY
    exercised = ['[[[:nested]], 3]', '["raised", 1]', "[:thrown, 1]", '[[[:shared]], 2]', '[[:frozen], nil]']
    assert_equal [*exercised, *exercised, "[[:stopped], nil]", "[[:started], nil]"], run.out.lines(chomp: true)[..-2], run
    assert_equal({ "a test" => 6, "sql" => 9, "cache_read" => 6 }.inspect, run.out.lines(chomp: true).last)
    assert_equal 1, run.err.lines.grep(/headway/).size, run
  end

  # An application's own event may have such a name, and another payload.
  def test_an_event_may_have_any_payload
    write("app.rb", APP)
    run = Harness::RubyProcess.eval(<<~RUBY, env: database)
      require "#{@directory}/app"
      Shop.initialize!
      payloads = ["text", [], 7, nil, Struct.new(:key).new(1), Hash.new { |_, key| raise key.inspect }, Hash.new { |hash, key| hash[key] = [] }]
      exercise = -> { p(payloads.map { |payload| ActiveSupport::Notifications.instrument("cache_warm.active_support", payload) { payload.class } }) }
      exercise.call
      Headway::Recorder.start(file: "#{@directory}/out.headway")
      exercise.call
      Headway::Recorder.stop
      p payloads.last
    RUBY
    payloads = "[String, Array, Integer, NilClass, #<Class:0x>, Hash, Hash]\n"
    assert_equal "#{payloads * 2}{}\n", run.out.gsub(/0x\h+/, "0x"), run
    assert_empty run.err
  end

  # ActiveSupport tells subscribers kind after kind, in the order in which the first of each came: all of some are told before ours.
  def test_a_query_s_account_is_whole_or_not_there
    write("app.rb", APP)
    [1, 5].each do |parameters|
      run = Harness::RubyProcess.eval(<<~RUBY, env: database)
        require "#{@directory}/app"
        seen = []
        take = ->(payload) { seen << payload[:headway] }
        listen = -> { ActiveSupport::Notifications.subscribe("sql.active_record", &#{parameters} == 1 ? ->(event) { take[event.payload] } : ->(*, payload) { take[payload] }) }
        listen.call
        Shop.initialize!
        listen.call
        ActiveSupport::Notifications.instrument("sql.active_record", sql: "SELECT 1") { sleep 0.001 }
        p seen.size, seen.map { |account| account.nil? || account.keys == %i[gvl_wait database] }.uniq
      RUBY
      assert_equal "2\n[true]\n", run.out.lines.grep_v(/DEBUG/).join, run
    end
  end

  # A filter that is code is given a copy of all that is in env.
  def test_what_is_in_env_can_be_copied
    write("app.rb", APP)
    run = Harness::RubyProcess.eval(<<~RUBY, env: database)
      require "#{@directory}/app"
      require "rack/mock"
      Shop.config.filter_parameters = [->(name, value) {}]
      Shop.routes.append do
        get "/copied", to: lambda { |env|
          request = ActionDispatch::Request.new(env)
          work = env.fetch("headway.request")
          [200, {}, [[request.filtered_env, env.deep_dup].map { |copy| copy["headway.request"].equal?(work) }.inspect]]
        }
      end
      Shop.initialize!
      p Rack::MockRequest.new(Shop).get("/copied").body
    RUBY
    assert_equal %("[true, true]"\n), run.out.lines.last, run
  end

  private

  def database = { "DATABASE_URL" => "sqlite3:#{@directory}/shop.sqlite3", "RAILS_ENV" => "development" }

  def rails(configuration, env: {}, command: [])
    @port = Harness::ServerProcess.free_port
    write("app.rb", APP)
    write("config.ru", RU)
    write("config/initializers/headway.rb", "Rails.application.configure { #{configuration} }")
    @rails = serve(*command, *([RbConfig.ruby] if command.any?), gem_program("puma"), "-t", "2:2", "-b", "tcp://127.0.0.1:#{@port}",
                   env: database.merge(env))
    @rails.await_output(/Use Ctrl-C to stop/)
  end

  def seen_lines
    whole_lines(File.join(@directory, "seen")).map { |line| JSON.parse(line) }
  end
end
