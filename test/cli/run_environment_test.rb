# frozen_string_literal: true

require "cli/command_line"

# How settings get to the command, and what `headway run` does to its environment.
class RunEnvironmentTest < Minitest::Test
  include CommandLine

  SETTINGS = "p [Headway.policy, Headway.quantum_ms, Headway.preempt]"

  def test_defaults
    assert_equal "[:fair, 100, :signal]\n", headway_ruby(SETTINGS).out
  end

  def test_flags
    result = headway_ruby(SETTINGS, "--policy", "quantum", "--quantum", "2.5", "--preempt", "poll")

    assert_equal "[:quantum, 2.5, :poll]\n", result.out, result.to_s
  end

  def test_flags_override_the_environment
    env = { "HEADWAY_POLICY" => "observe", "RUBY_THREAD_DEFAULT_QUANTUM_MS" => "20" }

    assert_equal "[:observe, 20, :signal]\n", headway_ruby(SETTINGS, env: env).out
    assert_equal "[:fair, 10, :signal]\n", headway_ruby(SETTINGS, "--policy=fair", "--quantum=10", env: env).out
  end

  def test_flags_override_the_programs_own_policy
    result = headway_ruby("Headway.start(policy: :fair, preempt: :signal); #{SETTINGS}", "--policy=observe", "--preempt=poll")

    assert_equal "[:observe, 100, :poll]\n", result.out, result.to_s
  end

  def test_an_existing_rubyopt_is_kept
    result = headway_ruby("p $VERBOSE, defined?(Set), Headway.started?", env: { "RUBYOPT" => "-w  -rset" })

    assert_equal "true\n\"constant\"\ntrue\n", result.out, result.to_s
  end

  def test_running_twice_adds_nothing_twice
    result = headway("run", RbConfig.ruby, EXE, "run", "--policy=observe", RbConfig.ruby, "-e", "puts ENV['RUBYOPT']; #{SETTINGS}")

    assert_equal 1, result.out.scan("autostart").size
    assert_includes result.out, ":observe"
  end

  # As Puma does when it starts anew or prunes its bundle. Of several Bundlers in each other the first one keeps what it found.
  def test_programs_that_get_back_what_was_there_before_bundler
    in_directory do |directory|
      write(directory, "Gemfile", "")
      bundle = [RbConfig.ruby, Gem.bin_path("bundler", "bundle"), "exec"]
      ask = "p defined?(Headway.started?), ENV['RUBYOPT'].to_s.scan('autostart').size, $VERBOSE"
      code = "require 'bundler'; Bundler.with_original_env { system(RbConfig.ruby, '-e', #{ask.dump}) }"
      run = [RbConfig.ruby, EXE, "run"]
      [[[*run, *bundle], nil], [[*bundle, *run], "-w"], [[*bundle, *run, *bundle], nil]].each do |command, options|
        result = Harness::RubyProcess.run(*command.drop(1), RbConfig.ruby, "-e", code, env: CLEAN.merge("RUBYOPT" => options),
                                                                                       pass: { chdir: directory })
        assert_equal "\"method\"\n1\n#{!options.nil?}\n", result.out, [command, result.to_s].join("\n")
      end
    end
  end

  def test_a_checkout_in_a_path_with_spaces
    in_directory("head way") do |directory|
      FileUtils.cp_r([File.join(ROOT, "lib"), File.join(ROOT, "exe")], directory)
      code = "puts $LOADED_FEATURES.grep(/headway\\/face/); system(RbConfig.ruby, '-e', 'p Headway.started?')"
      result = headway_ruby(code, exe: File.join(directory, "exe/headway"), env: { "RUBYLIB" => "/nowhere" })

      assert_quiet_success result
      assert_equal "#{directory}/lib/headway/face.rb\ntrue\n", result.out

      kept = { "RUBYLIB" => "/a", "BUNDLER_ORIG_RUBYLIB" => "/b", "BUNDLER_ORIG_RUBYOPT" => "BUNDLER_ENVIRONMENT_PRESERVER_INTENTIONALLY_NIL" }
      result = headway_ruby("puts ENV.values_at('BUNDLER_ORIG_RUBYOPT', 'BUNDLER_ORIG_RUBYLIB')", exe: File.join(directory, "exe/headway"), env: kept)
      assert_equal "-rheadway/autostart\n#{directory}/lib:/b\n", result.out, result.to_s
    end
  end

  def test_a_working_directory_with_spaces
    in_directory("work here") do |directory|
      script = write(directory, "my app.rb", SETTINGS)

      assert_equal "[:fair, 100, :signal]\n", headway("run", script, chdir: directory).out
    end
  end

  def test_little_is_left_on_the_load_path
    code = "puts $LOAD_PATH"
    plain = IO.popen([CLEAN, RbConfig.ruby, "-e", code], &:readlines).map(&:chomp)

    assert_equal [*plain, File.join(ROOT, "lib")], headway_ruby(code).out.lines.map(&:chomp)
  end

  def test_the_vm_slice_follows_a_long_quantum_only
    slice = "p ENV['RUBY_THREAD_TIMESLICE']"

    assert_equal "nil\n", headway_ruby(slice, "--quantum=100").out
    assert_equal "\"151\"\n", headway_ruby(slice, "--quantum=150.5").out
    assert_equal "\"500\"\n", headway_ruby(slice, "--quantum=150", env: { "RUBY_THREAD_TIMESLICE" => "500" }).out
    assert_equal "\"300\"\n", headway_ruby(slice, env: { "RUBY_THREAD_DEFAULT_QUANTUM_MS" => "300" }).out
  end

  def test_where_the_vm_slice_cannot_follow_it_is_said_once
    result = headway_ruby("system(RbConfig.ruby, '-e', '')", "--quantum=150")

    if Headway::Platform.timeslice?
      assert_empty result.err
    else
      assert_match(/\Aheadway: the quantum asked for is 150 ms, but Ruby #{RUBY_VERSION} still ends a slice .*100 ms.*\n\z/, result.err)
    end
  end

  def test_switched_off
    result = headway_ruby("p defined?(Headway), ENV['RUBYOPT']", "--policy=fair", env: { "HEADWAY" => "0" })

    assert_quiet_success result
    assert_equal "nil\nnil\n", result.out

    result = headway_ruby("", "--summary", env: { "HEADWAY" => "0" })
    assert_equal "headway: HEADWAY=0 is set, so the command runs without Headway and without a summary\n", result.err
  end

  def test_switched_off_by_something_else_than_zero
    off = "headway: HEADWAY is \"false\", which is taken for 0: give 0 or 1\n"
    result = headway_ruby("p defined?(Headway)", env: { "HEADWAY" => "false" })
    assert_equal ["nil\n", off], [result.out, result.err]

    code = "require 'headway'; p Headway.start, Headway.start, Headway.started?, Headway.notices.size"
    result = Harness::RubyProcess.run("-I#{File.join(ROOT, "lib")}", "-e", code, env: CLEAN.merge("HEADWAY" => "false"))
    assert_equal ["false\nfalse\nfalse\n1\n", off], [result.out, result.err]

    result = headway_ruby("exec({ 'HEADWAY' => 'false' }, RbConfig.ruby, '-e', 'p defined?(Headway.start)')")
    assert_equal ["nil\n", "headway: is off: #{off.delete_prefix("headway: ")}"], [result.out, result.err]
  end

  # The code changes what the Ruby says it is before it gets to autostart.
  def test_an_unsupported_ruby_is_told_why_once
    pretend = "$VERBOSE = nil; RUBY_ENGINE = 'jruby'; require #{File.join(ROOT, "lib/headway/autostart.rb").inspect}"
    code = "#{pretend}; p Headway.respond_to?(:start), $LOAD_PATH.grep(/headway/); exec(RbConfig.ruby, '-e', #{pretend.dump})"
    result = Harness::RubyProcess.run("-e", code, env: CLEAN, pass: { chdir: "/" })

    assert_predicate result, :success?, result.to_s
    assert_match(/\Aheadway: does nothing here: jruby has no GVL.*\n\z/, result.err)
    assert_match(/\Afalse\n/, result.out)
  end

  def test_a_bad_value_set_later_stops_no_program
    result = headway("run", "env", "HEADWAY_POLICY=nope", RbConfig.ruby, "-e", "p 1")

    assert_equal "1\n", result.out
    assert_match(/\Aheadway: does nothing here: HEADWAY_POLICY is "nope": give .*\n\z/, result.err)
  end
end
