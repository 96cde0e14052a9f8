# frozen_string_literal: true

require "test_helper"
require "headway"
require "json"
require "servers/server_process"

# plugin :headway in real Pumas.
class PumaTest < Minitest::Test
  include Harness::Serving

  APP = <<~RUBY
    require "headway"
    $works = []
    Headway::Work.subscribe { |work| $works << [work.name, work.status, work.error.to_s] }
    use Headway::Rack, server_timing: !ENV["QUIET"]
    run(lambda do |env|
      case env["PATH_INFO"]
      when "/worker" then [200, {}, [Headway::Metrics.worker]]
      when "/tuned" then [200, {}, [Headway::Autotune.current&.history.to_a.map { |step| step.to_h.slice(:knob, :from, :to) }.inspect]]
      when "/tuning" then [200, {}, [Headway::Autotune.current&.base.inspect]]
      when "/pid" then [200, {}, ["\#{Process.pid} \#{Headway.policy} \#{Headway.quantum_ms} \#{Headway.started?}"]]
      when "/fails" then raise "oops"
      when "/close" then [200, {}, Enumerator.new { |out| out << "sent" }.tap { |body| def body.close = raise(IOError, "close failed") }]
      when "/breaks" then [200, {}, Enumerator.new { |out| (out << "sent") && raise("broke off") }]
      when "/threads" then [200, {}, [Thread.list.filter_map(&:name).grep(/headway/).inspect]]
      when "/compete"
        Array.new(2) { Thread.new { stop = Process.clock_gettime(1) + 1; nil while Process.clock_gettime(1) < stop } }.each(&:join)
        [200, {}, []]
      when "/preempted" then [200, {}, [Headway::Metrics.text[/^ruby_gvl_preemptions_total (\\d+)/, 1]]]
      when "/works" then [200, {}, [$works.inspect]]
      when "/file"
        File.write("export", "first\\nsecond\\n")
        [200, { "content-length" => "7" }, File.open("export").tap { |file| file.seek(6) }]
      else
        t = Thread.new { 300_000.times { } }
        sleep 0.005
        t.join
        [200, {}, ["hello"]]
      end
    end)
  RUBY

  # A worker that Ruby hangs at its end must not hold up the next one for half a minute: see ServerProcess#stop.
  CLUSTER = ["worker_check_interval 1", "worker_shutdown_timeout 3"].freeze

  def test_a_single_puma
    puma("log_interval: 0.2, quantum_ms: 50")
    assert_equal "#{@puma.pid} fair 50 true", get(@port, "/pid").body
    response = get(@port)
    assert_equal "hello", response.body
    assert_match(/\Agvl-run;dur=[\d.]+, gvl-wait;dur=[\d.]+, idle;dur=[\d.]+\z/, response["server-timing"])
    assert_equal "500", get(@port, "/fails").code
    stats = statistics
    assert_operator stats["headway_running_ms"], :>, 0
    assert_operator stats["headway_waits"], :>, 0
    assert_operator stats["requests_count"], :>, 0
    @puma.await_output(/headway: [\d.]+ s: GVL held \d+ % of it, \d+ waits of [\d.]+ ms on average, \d+ preemptions/)
    assert_includes @puma.output, "* Headway #{Headway::VERSION}: policy fair, quantum 50 ms, preempt signal"
  end

  # Holds that were ended for another thread, by the VM's own time slice, too.
  def test_preemptions_are_those_of_the_metrics
    puma("policy: :observe, log_interval: 0.2")
    get(@port, "/compete")
    @puma.await_output(/, [1-9]\d* preemptions/)
    counted = get(@port, "/preempted").body.to_i
    assert_operator counted, :>, 0
    assert_operator statistics["headway_preemptions"], :>=, counted
  end

  def test_a_body_whose_close_raises_is_counted_once_and_raises
    [{}, { "QUIET" => "1" }].each do |env|
      puma("", env: env)
      assert_equal "sent", get(@port, "/close").body
      @puma.await_output(/close failed/)
      get(@port, "/worker")
      counted = @puma.await("both") { get(@port, "/works").body.then { |works| works if works.include?("/worker") } }
      assert_equal 1, counted.scan('["GET /close", 200, "close failed"]').size, counted
      assert_equal 1, counted.scan("GET /close").size, counted
      assert_match(/IOError.*close failed|close failed.*IOError/, @puma.output)
    end
  end

  def test_a_body_that_breaks_off_is_what_ended_the_request
    puma("", env: { "QUIET" => "1" })
    Net::HTTP.start("127.0.0.1", @port) { |http| http.get("/breaks") } rescue nil # what the client makes of it
    counted = @puma.await("it") { get(@port, "/works").body.then { |works| works if works.include?("/breaks") } }
    assert_includes counted, '["GET /breaks", 200, "broke off"]'
  end

  # What is left of that very one, not what its path leads to.
  def test_a_file_is_sent_as_it_is_without_headway
    [{}, { "QUIET" => "1" }].each do |env|
      puma("", env: env)
      response = get(@port, "/file")
      assert_equal ["second\n", "7"], [response.body, response["content-length"]]
      counted = @puma.await("it") { get(@port, "/works").body.then { |works| works if works.include?("/file") } }
      assert_includes counted, '["GET /file", 200, ""]'
    end
  end

  def test_it_ends_when_asked_to
    puma("log_interval: 60, recorder: { file: 'out.headway', mode: :flight, events: 1000 }")
    assert_equal "hello", get(@port).body
    get(@control, "/stop")
    assert_predicate @puma.wait, :success?, @puma.output
    assert_path_exists File.join(@directory, "out.headway")
  end

  def test_every_worker_also_after_a_phased_restart
    puma("policy: :quantum, quantum_ms: 20, log_interval: 0.3, recorder: { file: 'out.headway', events: 10_000 }",
         "workers 2", *CLUSTER)
    @puma.await_output(/Worker 1.*booted/)
    before = worker_answers
    assert_equal ["quantum 20 true"], before.map { |_, *rest| rest.join(" ") }.uniq
    status = @puma.await("every worker's statistics") { statistics_of_all_workers }
    assert_equal before.map(&:first).sort, status.map { |row| row["pid"].to_s }.sort
    status.each { |row| assert_operator row["last_status"]["headway_suspended_ms"], :>, 0 }

    @puma.signal(:USR1)
    after = @puma.await("new workers") { answers = worker_answers; answers unless answers.flatten.intersect?(before.map(&:first)) }
    assert_equal ["quantum 20 true"], after.map { |_, *rest| rest.join(" ") }.uniq
    @puma.await_output(/\[\d+\] headway: [\d.]+ s: GVL held/)
    refute_match(/\[#{@puma.pid}\] headway: [\d.]+ s/, @puma.output) # the master, where pumactl's server is, serves nothing else
    assert_path_exists File.join(@directory, "out.headway")
    (before + after).each { |pid,| @puma.await("a file of #{pid}'s") { File.exist?(File.join(@directory, "out.#{pid}.headway")) } }
  end

  def test_autotune_sets_the_threads_step_by_step
    puma("autotune: { window: 0.5, samples: 20, quantum_ms: false, threads: 2..3 }")
    over = false
    clients = Array.new(3) do
      Thread.new do
        Net::HTTP.start("127.0.0.1", @port) { |http| http.get("/pid") until over }
      end
    end
    @puma.await_output(/headway: autotune: threads 3 -> 2, to see what it does/)
    @puma.await_output(/headway: autotune: threads 3 -> 2 (kept|reverted|abandoned): ./)
    assert_match(/knob.*:threads.*3.*2/, get(@port, "/tuned").body)
  ensure
    over = true
    clients&.each(&:join)
  end

  def test_autotune_says_where_puma_cannot_change_its_threads
    puma("autotune: { threads: 2..3 }", "Puma::Server.undef_method(:update_thread_pool_min_max)") # as before 8.0
    @puma.await_output(/^\* Headway: autotune leaves threads alone: Puma \d+\.\S+ can't change them, from 8\.0 on it can$/)
    assert_match(/\A\{:?quantum_ms(?:=>|: )100(?:\.0)?\}\z/, get(@port, "/tuning").body) # the one knob
  end

  def test_autotune_says_once_where_nothing_is_left_to_tune
    ["threads: 2..3, quantum_ms: false", "quantum_ms: false"].each do |options|
      puma("autotune: { #{options} }", "Puma::Server.undef_method(:update_thread_pool_min_max)")
      assert_equal "nil", get(@port, "/tuning").body
      @puma.stop
      said = @puma.output.lines.grep(/autotune/)
      assert_equal 1, said.size, @puma.output
      assert_match(/\A\* Headway: autotune has nothing to tune: quantum_ms is false, and Puma \d+\.\S+ can't change its threads, from 8\.0 on it can$/, said[0])
    end
  end

  # As metrics exporters do, in a cluster's master, too.
  OTHER_SERVER = <<~RUBY
    after_booted do
      other = Puma::Server.new(->(_) { [200, {}, []] }, nil, min_threads: 0, max_threads: 1, log_writer: Puma::LogWriter.null)
      other.add_tcp_listener("127.0.0.1", 0)
      other.run
      puts "another server runs"
    end
  RUBY

  def test_autotune_tunes_the_application_s_server_beside_another_one
    puma("autotune: true", OTHER_SERVER)
    @puma.await_output(/another server runs/)
    assert_match(/threads(?:=>|: )3\b/, get(@port, "/tuning").body)
  end

  def test_the_master_has_no_line_in_the_log_for_a_server_of_its_own
    puma("log_interval: 0.2", "workers 2", OTHER_SERVER, *CLUSTER)
    @puma.await_output(/another server runs/)
    @puma.await("several lines of a worker") { @puma.output.scan(/\[\d+\] headway: [\d.]+ s/).tally.values.max.to_i > 3 }
    refute_match(/\[#{@puma.pid}\] headway: [\d.]+ s/, @puma.output)
  end

  # As Capybara does, which reads config/puma.rb and starts none of its plugins.
  def test_a_server_of_a_configuration_that_nobody_launched_is_left_alone
    write("config.rb", "plugin :headway\nheadway autotune: true, log_interval: 60\n")
    run = Harness::RubyProcess.eval(<<~RUBY)
      require "headway"
      require "puma"
      require "puma/server"
      Puma::Configuration.new(config_files: [#{File.join(@directory, "config.rb").inspect}]).clamp
      Headway.start
      server = Puma::Server.new(->(_) { [200, {}, []] }, nil, log_writer: Puma::LogWriter.null)
      server.add_tcp_listener("127.0.0.1", 0)
      server.run
      p Headway::Autotune.current.nil?, Thread.list.filter_map(&:name).grep(/headway/)
      server.stop(true)
    RUBY
    assert_equal ["true\n[]\n", ""], [run.out, run.err], run
  end

  def test_a_puma_that_a_program_started_leaves_nothing_at_work_when_it_ends
    run = Harness::RubyProcess.eval(<<~RUBY)
      require "headway"
      require "puma"
      require "puma/launcher"
      config = Puma::Configuration.new do |puma|
        puma.bind "tcp://127.0.0.1:0"
        puma.app(->(_) { [200, {}, []] })
        puma.plugin :headway
        puma.headway autotune: true, log_interval: 60
      end
      2.times do
        launcher = Puma::Launcher.new(config, log_writer: Puma::LogWriter.null)
        booted = Queue.new
        launcher.events.after_booted { booted << true }
        thread = Thread.new { launcher.run }
        booted.pop
        ours = Thread.list.select { |each| each.name.to_s.include?("headway") }
        launcher.stop
        thread.join
        p ours.map { |each| [each.name, !each.join(5).nil?] }.sort, Headway::Autotune.current.nil?
      end
    RUBY
    assert_equal %([["headway autotune", true], ["headway log", true]]\ntrue\n) * 2, run.out, run
  end

  def test_autotune_is_off_by_the_environment
    puma("autotune: true", env: { "HEADWAY_AUTOTUNE" => "0" })
    assert_equal "[]", get(@port, "/tuned").body
  end

  def test_fork_worker
    puma("", "workers 2", "fork_worker 0", *CLUSTER)
    @puma.await_output(/Worker 1.*booted/)
    before = worker_answers.map(&:first)
    @puma.signal(:URG) # Puma's own signal for a refork, which Headway leaves to Puma
    @puma.await("a worker forked from worker 0") { (worker_answers.map(&:first) - before).any? }
    assert_equal ["fair 100 true"], worker_answers.map { |_, *rest| rest.join(" ") }.uniq
    @puma.await("the numbers of both workers") { Array.new(8) { Thread.new { get(@port, "/worker").body } }.map(&:value).uniq.sort == %w[0 1] }
  end

  def test_an_option_that_is_not_there_is_named_in_one_line
    puma("quantum: 50", await: false)
    refute_predicate @puma.wait, :success?
    assert_match(/\Aconfig\.rb:4:.*: quantum is no option of headway in Puma's configuration: give policy, quantum_ms, preempt, recorder, log_interval or autotune \(Headway::SettingError\)\n\z/,
                 @puma.output)
  end

  def test_values_that_mean_nothing
    require "headway/puma"
    { { policy: :fast } => 'policy is "fast": give fair, quantum or observe',
      { log_interval: "1" } => 'log_interval is "1": give seconds, such as 60',
      { log_interval: Float::INFINITY } => "log_interval is Infinity: give seconds, such as 60",
      { autotune: { "threads" => 0..8 } } => "autotune has threads: 0..8: give a range such as 2..8",
      { 3 => 4 } => "3 is no option of headway in Puma's configuration: give policy, quantum_ms, preempt, recorder, log_interval or autotune",
      { recorder: { on_signal: "SIGUSR2" } } => "on_signal is USR2, which Puma listens to itself: give another, such as PROF",
      { recorder: { path: "x" } } => "recorder has :path: give a Hash of file, events, seconds, mode, wait_threshold, on_signal",
      { recorder: { events: 1.5 } } => "events is 1.5: give 1 to 100000000",
      { recorder: { mode: :stream } } => "mode is stream: give a file, too",
      { autotune: 1 } => "autotune is 1: give true, or a Hash such as { threads: 2..8 }",
      { autotune: { threads: 0..2 } } => "autotune has threads: 0..2: give a range such as 2..8",
      { autotune: { windows: 1 } } => "windows is 1: give a whole number from 5, such as 8",
      { recorder: "x" } => 'recorder has "x": give a Hash of file, events, seconds, mode, wait_threshold, on_signal' }.each do |options, message|
      assert_equal message, assert_raises(Headway::SettingError) { Headway::Puma.configure(options, ["config.rb:1"]) }.message
    end
  end

  def test_lines_of_a_configuration_add_up
    puma("policy: :quantum, quantum_ms: 20, log_interval: 60\nheadway quantum_ms: 30")
    get(@port)
    assert_match(/policy quantum, quantum 30 ms/, @puma.output)
  end

  # As where config/puma.rb and the file of an environment both have it.
  def test_a_plugin_that_is_given_twice_is_there_once
    puma("quantum_ms: 20, log_interval: 60, recorder: { file: 'out.headway' }", "plugin :headway")
    assert_equal "hello", get(@port).body
    assert_equal 1, @puma.output.scan("* Headway #{Headway::VERSION}").size, @puma.output
    refute_match(/headway:/, @puma.output)
  end

  def test_off_by_the_environment
    puma("log_interval: 0.1", env: { "HEADWAY" => "0" })
    assert_match(/false\z/, get(@port, "/pid").body)
    assert_equal "[]", get(@port, "/threads").body
    assert_equal "hello", get(@port).body
    assert_empty statistics.keys.grep(/headway/)
  end

  private

  def puma(options, *lines, await: true, env: {})
    @port = Harness::ServerProcess.free_port
    write("config.ru", APP)
    @control = Harness::ServerProcess.free_port
    config = ["threads 3, 3", "bind 'tcp://127.0.0.1:#{@port}'; activate_control_app 'tcp://127.0.0.1:#{@control}', no_token: true", "plugin :headway", ("headway #{options}" unless options.empty?), *lines]
    write("config.rb", "#{config.compact.join("\n")}\n")
    @puma = serve(gem_program("puma"), "-C", "config.rb", "config.ru", env: env)
    @puma.await_output(/Use Ctrl-C to stop/) if await
  end

  # [[pid, policy, quantum, started], …] of both workers, as requests see them.
  def worker_answers
    @puma.await("an answer of each worker") do
      answers = Array.new(8) { Thread.new { get(@port, "/pid").body.split } }.map(&:value).uniq
      answers if answers.size >= 2
    rescue SystemCallError, EOFError
      nil
    end
  end

  def statistics = JSON.parse(get(@control, "/stats").body)

  def statistics_of_all_workers
    status = statistics["worker_status"]
    status if status.size == 2 && status.all? { |row| row["last_status"].key?("headway_waits") }
  end
end
