# frozen_string_literal: true

require "test_helper"
require "headway"
require "json"
require "sidekiq"
require "servers/server_process"

# Headway::Sidekiq in a real Sidekiq with a real Redis (apt-get install redis-server, or REDIS_SERVER=path).
class SidekiqTest < Minitest::Test
  include Harness::Serving

  APP = <<~RUBY
    require "headway"
    require "json"
    Sidekiq.configure_server do |config|
      config.logger.level = Logger::INFO
      config.average_scheduled_poll_interval = 1
      config.capsule("slow") { |capsule| capsule.concurrency = 1; capsule.queues = %w[slow] }
    end
    Headway::Sidekiq.install(**eval(ENV.fetch("OPTIONS", "{}")))
    Headway::Work.subscribe do |work|
      line = [work.name, work.queue, *work.times, work.wall, work.error&.class, work.queued, Thread.current.priority, Headway.policy]
      File.write("works", JSON.generate(line) + "\\n", mode: "a")
    end
    Headway::Work.subscribe { raise "a broken subscriber" }

    class Sleeper
      include Sidekiq::Job
      def perform(seconds) = sleep(seconds)
    end

    class Cruncher
      include Sidekiq::Job
      sidekiq_options queue: "slow"
      def perform(count) = count.times { }
    end

    class Stepping
      include Sidekiq::IterableJob
      def build_enumerator(cursor:) = array_enumerator((1..10_000).to_a, cursor: cursor)
      def each_iteration(_) = sleep(0.02).then { File.write("steps", "x", mode: "a") }
    end

    class Failing
      include Sidekiq::Job
      def perform = raise(ArgumentError, "on purpose")
    end
  RUBY

  def setup
    super
    @redis_port = Harness::ServerProcess.free_port
    start_redis
    @pool = Sidekiq::RedisConnection.create(url:, size: 1, logger: Logger.new(nil))
  end

  def teardown
    @pool.shutdown(&:close)
    super
  end

  def test_jobs_are_accounted_for_in_every_capsule
    sidekiq("{ policy: :fair, log_interval: 0.2, recorder: { file: 'out.headway' } }")
    enqueue("Cruncher", 3_000_000, queue: "slow")
    6.times { enqueue("Sleeper", 0.05) }
    enqueue("Failing", retry: true)
    works = works_once(8)
    by_class = works.group_by(&:first)
    assert_equal({ "Cruncher" => 1, "Failing" => 1, "Sleeper" => 6 }, by_class.transform_values(&:size).sort.to_h)
    _, queue, running, = by_class["Cruncher"].first
    assert_equal "slow", queue
    assert_operator running, :>, 0.005
    by_class["Sleeper"].each do |_, _, run, waiting, suspended, wall, error|
      assert_operator suspended, :>=, 0.049
      assert_includes 0.049..wall, (run + waiting + suspended).round(9)
      assert_nil error
    end
    assert_equal "ArgumentError", by_class["Failing"].first[6]
    works.each { |work| assert_includes 0.0..60.0, work[7] }
    assert_equal [[-1, "fair"]], works.map { |work| work.last(2) }.uniq, "Sidekiq's own priority"
    @sidekiq.await("the retry") { redis("zcard", "retry") == 1 }
    @sidekiq.await_output(/headway: [\d.]+ s: GVL held/)
    assert_includes @sidekiq.output, "Headway #{Headway::VERSION}: policy fair, quantum 100 ms"
    assert_equal 1, @sidekiq.output.scan("a subscriber of Headway::Work failed").size
    assert_predicate @sidekiq.stop, :success?, @sidekiq.output
    marks = Headway::Trace.open(File.join(@directory, "out.headway")).to_h[:marks].map { |mark| mark[:name] }
    assert_equal %w[Cruncher Failing Sleeper], marks.uniq.sort & by_class.keys
  end

  def test_a_job_that_sidekiq_waits_for_as_it_ends_is_recorded_whole
    sidekiq("{ recorder: { file: 'out.headway' } }")
    enqueue("Sleeper", 1.5)
    @sidekiq.await_output(/class=Sleeper: start/) # fetched from the queue alone, it would be handed back
    assert_predicate @sidekiq.stop, :success?, @sidekiq.output
    job = Headway::Trace.open(File.join(@directory, "out.headway")).to_h[:marks].find { |mark| mark[:name] == "Sleeper" }
    assert_operator job[:end_s].to_f - job[:start_s], :>=, 1.4
  end

  def test_what_is_handed_back_as_sidekiq_ends_has_not_failed
    sidekiq
    enqueue("Stepping")
    enqueue("Sleeper", 30)
    enqueue("Failing")
    @sidekiq.await("all of them") { redis("llen", "queue:default").zero? && File.exist?(File.join(@directory, "steps")) && works_once(1) }
    @sidekiq.stop
    works = works_once(3).to_h { |work| [work[0], work[6]] }
    assert_equal({ "Failing" => "ArgumentError", "Sleeper" => nil, "Stepping" => nil }, works.sort.to_h)
    assert_equal %w[Sleeper Stepping], redis("lrange", "queue:default", 0, -1).map { |job| JSON.parse(job)["class"] }.sort
  end

  def test_a_sample_is_one_of_active_jobs_too
    job = <<~RUBY
      require "active_job"
      require "headway/rails/active_jobs"
      ActiveJob::Base.prepend(Headway::Rails::ActiveJobs)
      class Polish < ActiveJob::Base
        self.queue_adapter = :sidekiq
        def perform = File.write("polished", "x", mode: "a")
      end
    RUBY
    { 1 => 4, 0 => 0 }.each do |sample, count|
      FileUtils.rm_f(%w[works polished].map { |name| File.join(@directory, name) })
      sidekiq("{ sample: #{sample} }", more: job)
      4.times { enqueue("Sidekiq::ActiveJob::Wrapper", { job_class: "Polish", job_id: "1", arguments: [], queue_name: "default" }.transform_keys(&:to_s), wrapped: "Polish") }
      @sidekiq.await("all of them") { File.size?(File.join(@directory, "polished")) == 4 }
      @sidekiq.stop
      works = File.join(@directory, "works")
      assert_equal count, File.exist?(works) ? File.readlines(works).size : 0
    end
  end

  def test_redis_gone_mid_run
    sidekiq
    enqueue("Sleeper", 0.01)
    works_once(1)
    enqueue("Sleeper", 0.5)
    @sidekiq.await("the job to start") { redis("llen", "queue:default").zero? }
    @redis.stop(:KILL)
    works_once(2)
    @sidekiq.await_output(/heartbeat|[Cc]onnection|ECONN/)
    start_redis
    enqueue("Sleeper", 0.02)
    works_once(3)
    refute_match(/headway/i, @sidekiq.output.lines.grep_v(/INFO|subscriber|connect/i).join)
    assert_predicate @sidekiq.stop, :success?, @sidekiq.output
  end

  def test_an_embedded_one_leaves_its_process_as_it_is
    write("embedded.rb", <<~RUBY)
      require "headway"
      require "sidekiq"
      Headway.start(policy: :quantum, quantum_ms: 30)
      Headway::Recorder.start(mode: :flight)
      embedded = Sidekiq.configure_embed { |config| Headway::Sidekiq.install(config) }
      embedded.run
      embedded.stop
      puts "records: \#{Headway::Recorder.recording?}, \#{Headway.policy}, \#{Headway.quantum_ms}"
    RUBY
    server = serve("./embedded.rb", env: { "REDIS_URL" => url })
    assert_predicate server.wait, :success?, server.output
    assert_includes server.output, "records: true, quantum, 30"
  end

  def test_off_by_the_environment
    write("embedded.rb", <<~RUBY)
      require "headway"
      require "sidekiq"
      embedded = Sidekiq.configure_embed { |config| Headway::Sidekiq.install(config, log_interval: 60, recorder: { mode: :flight }) }
      embedded.run
      embedded.stop
      puts "started: \#{Headway.started?}"
    RUBY
    server = serve("./embedded.rb", env: { "REDIS_URL" => url, "HEADWAY" => "0" })
    assert_predicate server.wait, :success?, server.output
    assert_includes server.output, "started: false"
    refute_match(/headway/, server.output)
  end

  def test_installed_again_the_last_options_count
    run = Harness::RubyProcess.eval(<<~RUBY)
      require "headway"
      require "sidekiq"
      require "logger"
      config = Sidekiq::Config.new
      lines = []
      config.logger = Logger.new(IO::NULL).tap { |logger| logger.define_singleton_method(:info) { |line| lines << line } }
      [0.02, 3600].each { |interval| Headway::Sidekiq.install(config, log_interval: interval) }
      events = config[:lifecycle_events]
      p events.values_at(:startup, :exit).map(&:size), config.server_middleware.entries.map(&:klass)
      events[:startup].each(&:call)
      sleep 0.2
      p lines.size, Thread.list.size
      events[:exit].each(&:call)
    RUBY
    assert_equal "[1, 1]\n[Headway::Sidekiq::Middleware]\n1\n2\n", run.out, run
  end

  # It tells of the end before its last jobs are over: what records them has to outlive that, where the process is Sidekiq's own.
  def test_a_sidekiq_from_before_8_records_its_last_jobs_whole
    { 'require "sidekiq/cli"' => true, "" => false }.each do |command_line, records|
      run = Harness::RubyProcess.eval(<<~RUBY)
        require "headway"
        require "sidekiq"
        #{command_line}
        require "logger"
        config = Class.new(Sidekiq::Config) { def on(event) = event == :exit ? raise(ArgumentError, "Invalid event name: exit") : super }.new
        config.logger = Logger.new(IO::NULL)
        Headway::Sidekiq.install(config, recorder: { mode: :flight })
        %i[startup shutdown].each { |event| config[:lifecycle_events][event].each(&:call) }
        p Headway::Recorder.recording?
      RUBY
      assert_equal "#{records}\n", run.out, run
    end
  end

  def test_a_sidekiq_from_before_6_5_has_no_module_for_middleware
    run = Harness::RubyProcess.eval(<<~RUBY)
      require "headway"
      require "sidekiq"
      Sidekiq.send(:remove_const, :ServerMiddleware)
      Headway.start
      Headway::Work.subscribe { |work| puts work.name, work.queue }
      p Headway::Sidekiq::Middleware.new.call(nil, { "class" => "Polish" }, "default") { :done }
    RUBY
    assert_equal "Polish\ndefault\n:done\n", run.out, run
  end

  # Sidekiq 8 counts in milliseconds; what was pushed by others may not say.
  def test_how_long_a_job_stood_in_its_queue
    run = Harness::RubyProcess.eval(<<~RUBY)
      require "headway"
      require "sidekiq"
      Headway.start
      Headway::Work.subscribe { |work| puts work.queued&.round.inspect }
      now = Process.clock_gettime(Process::CLOCK_REALTIME)
      [now - 100, ((now - 100) * 1000).to_i, now + 50, nil, "yesterday", 1e400, 10**400].each do |at|
        Headway::Sidekiq::Middleware.new.call(nil, { "class" => "Polish", "enqueued_at" => at }, "default") { }
      end
    RUBY
    assert_equal %w[100 100 0 nil nil nil nil], run.out.split, run
  end

  # Whose jobs Sidekiq 7 sends through that alone.
  def test_a_capsule_that_has_had_middleware_of_its_own_before
    run = Harness::RubyProcess.eval(<<~RUBY)
      require "headway"
      require "sidekiq"
      require "sidekiq/capsule"
      require "logger"
      class Own
        include Sidekiq::ServerMiddleware
        def call(*) = yield
      end
      config = Sidekiq::Config.new
      config.logger = Logger.new(IO::NULL)
      config.capsule("before") { |capsule| capsule.server_middleware { |chain| chain.add(Own) } }
      Headway::Sidekiq.install(config, sample: 0.5)
      config.capsule("after") { |capsule| capsule.server_middleware { |chain| chain.add(Own) } }
      config.server_middleware { |chain| chain.add(Own) }
      config.capsule("plain")
      config[:lifecycle_events][:startup].each(&:call)
      config.capsules.each_value { |capsule| p capsule.server_middleware.map { |entry| entry.klass } }
    RUBY
    assert_equal ["[Headway::Sidekiq::Middleware, Own]"] * 3, run.out.lines.map(&:chomp), run
  end

  def test_in_a_process_that_only_queues_jobs_it_does_nothing
    run = Harness::RubyProcess.eval(<<~RUBY)
      require "sidekiq"
      require "headway/sidekiq"
      p Headway::Sidekiq.install, Headway.started?
      Headway::Sidekiq.install(policy: :round)
    RUBY
    assert_equal ["nil", "false"], run.out.lines.map(&:chomp), run
    assert_match(/policy is "round": give fair, quantum or observe/, run.err)
  end

  def test_an_option_that_is_not_there_is_named_in_one_line
    sidekiq("{ quantum: 50 }", await: false)
    refute_predicate @sidekiq.wait, :success?
    message, place = @sidekiq.output.lines.map(&:chomp).last(2)
    assert_equal "quantum is no option of Headway::Sidekiq.install: give policy, quantum_ms, preempt, recorder, log_interval or sample", message
    assert_match(/app\.rb:8:/, place, @sidekiq.output)
  end

  # Not by the recorder when Sidekiq has started, where it would be a fault of ours that is left out.
  def test_a_value_of_the_recorder_that_means_nothing_is_named_as_it_boots
    sidekiq("{ recorder: { mode: :ring } }", await: false)
    refute_predicate @sidekiq.wait, :success?
    assert_includes @sidekiq.output.lines.map(&:chomp), "mode is :ring: give stream or flight"
  end

  private

  def url = "redis://127.0.0.1:#{@redis_port}/0"

  def start_redis
    @redis = serve(*Harness::ServerProcess.redis(@redis_port, @directory), program: true)
    @redis.await_output(/[Rr]eady to accept/)
  end

  def sidekiq(options = "{}", await: true, more: "")
    write("app.rb", APP + more)
    @sidekiq = serve(gem_program("sidekiq"), "-r", "./app.rb", "-c", "3", "-t", "2",
                     env: { "OPTIONS" => options, "REDIS_URL" => url, "APP_ENV" => "development" })
    @sidekiq.await_output(/Headway [\d.]+: policy/) if await
  end

  def enqueue(name, *arguments, **options)
    Sidekiq::Client.new(pool: @pool).push("class" => name, "args" => arguments, "queue" => "default", "retry" => false, **options.transform_keys(&:to_s))
  end

  def redis(*command) = @pool.with { |connection| connection.call(*command) }

  def works_once(count)
    path = File.join(@directory, "works")
    @sidekiq.await("#{count} jobs") { whole_lines(path).then { |lines| lines if lines.size >= count } }.map { |line| JSON.parse(line) }
  end
end
