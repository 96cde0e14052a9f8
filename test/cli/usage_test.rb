# frozen_string_literal: true

require "cli/command_line"

# Help, version, and every way to get it wrong.
class UsageTest < Minitest::Test
  include CommandLine

  def test_an_interrupt_while_it_loads_shows_no_stack
    in_directory do |directory|
      interrupt = write(directory, "interrupt.rb", interrupt_while_loading("headway/platform.rb"))
      result = headway("--version", env: { "RUBYOPT" => "-r#{interrupt}" })
      assert_equal ["", "", 130], [result.out, result.err, result.status.exitstatus]
    end
  end

  def test_help
    [["--help"], ["-h"], ["help"], ["run", "--help"], ["run", "-h"], ["help", "run"], ["doctor", "--help"]].each do |arguments|
      result = headway(*arguments)

      assert_quiet_success result
      assert_match(/\AUsage: headway /, result.out, arguments.inspect)
    end
  end

  def test_version
    [["--version"], ["-v"], ["version"], ["run", "--version"], ["doctor", "-v"]].each do |arguments|
      result = headway(*arguments)

      assert_quiet_success result
      assert_equal "headway #{Headway::VERSION}\n", result.out
    end
  end

  def test_a_ruby_that_is_too_old_is_told_by_every_command
    in_directory do |directory|
      old = write(directory, "old.rb", <<~RUBY)
        %i[RUBY_VERSION Data].each { |name| Object.send(:remove_const, name) }
        RUBY_VERSION = "3.1.2"
        Fiber.singleton_class.undef_method(:blocking)
      RUBY
      env = { "RUBYOPT" => "-r#{old}" }
      %w[yield predict advise bench].each do |name|
        assert_bad_usage(/#{name} does nothing here: Ruby 3\.1\.2 is too old/, headway(name, "x", env: env))
      end
      doctor = headway("doctor", env: env)
      assert_equal ["", 1], [doctor.err, doctor.status.exitstatus]
      assert_match(/FAULT +Ruby .* Ruby 3\.1\.2 is too old \(it needs CRuby 3\.3 or newer\)$/, doctor.out)
    end
  end

  def test_options_after_the_command_are_the_commands_own
    result = headway("run", RbConfig.ruby, "--version")

    assert_quiet_success result
    assert_match(/\Aruby /, result.out)
  end

  def test_subcommands
    assert_bad_usage(/no command: give run, report, .*bench or doctor/, headway)
    assert_bad_usage(/unknown command "frob": give run, report, .*bench or doctor/, headway("frob"))
    assert_bad_usage(/unknown command ""/, headway(""))
    assert_bad_usage(/unknown option --frob/, headway("--frob"))
  end

  def test_quantum
    %w[0 -1 abc 1e99 4294968 10ms].each do |value|
      assert_bad_usage(/--quantum is "#{value}": give milliseconds from 1 to 4294967, such as 10/,
                       headway("run", "--quantum", value, "true"))
    end
    assert_bad_usage(/--quantum is ""/, headway("run", "--quantum=", "true"))
    assert_bad_usage(/--quantum needs a value/, headway("run", "--quantum"))
  end

  def test_policy_and_preempt
    assert_bad_usage(/--policy is "nope": give fair, quantum or observe/, headway("run", "--policy", "nope", "true"))
    assert_bad_usage(/--preempt is "nope": give signal or poll/, headway("run", "--preempt=nope", "true"))
  end

  def test_options
    assert_bad_usage(/unknown option --frob \(headway run --help/, headway("run", "--frob", "true"))
    assert_bad_usage(/unknown option --quantum-ms, did you mean --quantum\? \(headway run --help/, headway("run", "--quantum-ms", "5", "true"))
    assert_bad_usage(/unknown option -x/, headway("run", "-x", "true"))
    assert_bad_usage(/--summary/, headway("run", "--summary=yes", "true"))
    assert_bad_usage(/ambiguous option: --p /, headway("run", "--p", "fair", "true"))
    assert_bad_usage(/"now" is not expected here/, headway("doctor", "now"))
    assert_bad_usage(/unknown option --html/, headway("doctor", "--html"))
  end

  def test_an_option_is_no_value_of_another
    in_directory do |directory|
      assert_bad_usage(/--record needs a value/, headway("run", "--record", "--", RbConfig.ruby, "-e", "1", chdir: directory))
      assert_bad_usage(/--html needs a value/, headway("report", "x.headway", "--html", "--json", chdir: directory))
      assert_empty Dir.children(directory)
    end
  end

  def test_output_that_cannot_be_written
    skip "no /dev/full here" unless File.writable?("/dev/full")
    result = Harness::RubyProcess.run("-e", "$stdout.reopen('/dev/full', 'w'); load ARGV.shift", EXE, "--help", env: CLEAN)

    assert_bad_usage(/cannot write the output: No space left on device/, result)
  end

  def test_commands_that_cannot_be_run
    assert_bad_usage(/no command to run/, headway("run"))
    assert_bad_usage(/no command to run/, headway("run", "--summary", "--"))
    assert_bad_usage(/no command to run/, headway("run", ""))
    assert_bad_usage(/no such command: headway-nosuch /, headway("run", "headway-nosuch"))
    assert_bad_usage(/no such file: nosuch\.rb/, headway("run", "nosuch.rb"))
    assert_bad_usage(%r{no such file: \./nosuch}, headway("run", "./nosuch"))
    assert_bad_usage(/is a directory/, headway("run", "./lib"))
  end

  def test_files_that_cannot_be_run
    in_directory do |directory|
      plain = write(directory, "plain", "words\n")
      assert_bad_usage(/plain is not executable: chmod \+x/, headway("run", plain))

      orphan = write(directory, "orphan", "#!/no/such/interpreter\n", 0o755)
      assert_bad_usage(/orphan cannot be started: No such file/, headway("run", orphan))
    end
  end

  def test_bad_values_in_the_environment
    { "HEADWAY_POLICY" => "nope", "HEADWAY_PREEMPT" => "nope", "RUBY_THREAD_DEFAULT_QUANTUM_MS" => "abc" }.each do |name, value|
      assert_bad_usage(/#{name} is "#{value}": give /, headway("run", "true", env: { name => value }))
    end
    assert_bad_usage(/RUBY_THREAD_DEFAULT_QUANTUM_MS is ""/,
                     headway("run", "true", env: { "RUBY_THREAD_DEFAULT_QUANTUM_MS" => "" }))
  end

  def test_a_closed_pipe_is_no_crash
    reader, writer = IO.pipe
    reader.close
    pid = Process.spawn(CLEAN, RbConfig.ruby, EXE, "--help", out: writer, err: File::NULL)
    writer.close

    assert_operator Process.wait2(pid).last.exitstatus, :<=, 1
  end
end
