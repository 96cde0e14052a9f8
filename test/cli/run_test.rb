# frozen_string_literal: true

require "cli/command_line"

# What `headway run` can run, and what of the command it leaves alone.
class RunTest < Minitest::Test
  include CommandLine

  STARTED = "p defined?(Headway.started?) && Headway.started?"

  def test_a_script
    in_directory do |directory|
      script = write(directory, "app.rb", "#{STARTED}; p ARGV, $0")
      result = headway("run", script, "a b", "--summary")

      assert_quiet_success result
      assert_equal "true\n[\"a b\", \"--summary\"]\n#{script.inspect}\n", result.out
    end
  end

  def test_a_script_by_its_name_alone
    in_directory do |directory|
      write(directory, "app.rb", STARTED)
      write(directory, "worker", "#!/usr/bin/env ruby\n#{STARTED}")

      assert_equal "true\n", headway("run", "app.rb", chdir: directory).out
      assert_equal "true\n", headway("run", "./worker", chdir: directory).out
      assert_equal "true\n", headway("run", "worker", chdir: directory).out
    end
  end

  def test_a_script_runs_with_the_ruby_that_runs_headway
    in_directory do |directory|
      script = write(directory, "worker", "#!/no/such/ruby -w\np RUBY_VERSION")

      assert_equal "#{RUBY_VERSION.inspect}\n", headway("run", script).out
    end
  end

  # As from a shell: its own messages begin with its name.
  def test_the_command_has_the_name_it_was_typed_with
    assert_equal "sh\n", headway("run", "sh", "-c", 'echo "$0"').out
  end

  def test_ruby
    assert_equal "true\n", headway_ruby(STARTED).out
  end

  def test_ruby_without_gems
    result = headway("run", RbConfig.ruby, "--disable=gems", "-e", STARTED)

    assert_quiet_success result
    assert_equal "true\n", result.out
  end

  def test_a_shell_script
    in_directory do |directory|
      script = write(directory, "go", "#!/bin/sh\n#{RbConfig.ruby} -e '#{STARTED}'\n", 0o755)

      assert_equal "true\n", headway("run", script).out
      assert_equal "true\n", headway("run", "sh", "-c", "#{RbConfig.ruby} -e '#{STARTED}'; true").out
    end
  end

  def test_rake
    in_directory do |directory|
      write(directory, "Rakefile", "task(:default) { #{STARTED}; sh RbConfig.ruby, '-e', '#{STARTED}', verbose: false }")
      result = headway("run", Gem.bin_path("rake", "rake"), chdir: directory)

      assert_quiet_success result
      assert_equal "true\ntrue\n", result.out
    end
  end

  def test_bundle_exec_with_a_bundle_that_lacks_the_gem
    in_directory do |directory|
      write(directory, "Gemfile", "")
      code = "#{STARTED}; p Gem.loaded_specs.key?('headway'); require('headway'); #{STARTED}"
      result = headway("run", Gem.bin_path("bundler", "bundle"), "exec", RbConfig.ruby, "-e", code, chdir: directory)

      assert_predicate result, :success?, result.to_s
      assert_equal "true\nfalse\ntrue\n", result.out
    end
  end

  def test_package_tools_are_left_alone
    gem = File.join(RbConfig::CONFIG["bindir"], "gem")
    [gem, Gem.bin_path("bundler", "bundle")].each do |tool|
      plain = Harness::RubyProcess.run(tool, "--version", env: CLEAN)
      result = headway("run", tool, "--version")

      assert_equal [plain.out, plain.err, 0], [result.out, result.err, result.status.exitstatus]
    end
  end

  def test_forks_and_spawned_processes_are_covered
    code = <<~'RUBY'
      $stdout.sync = true
      Process.wait(fork { p Headway.started? })
      system(RbConfig.ruby, "-e", "p Headway.started?")
      system({ "A" => "b" }, "#{RbConfig.ruby} -e 'p Headway.started?'; true")
    RUBY

    assert_equal "true\n" * 3, headway_ruby(code).out
  end

  def test_exit_status
    assert_equal 0, headway_ruby("exit").status.exitstatus
    assert_equal 3, headway_ruby("exit 3").status.exitstatus
    assert_equal 1, headway_ruby("abort 'no'").status.exitstatus
    assert_equal 7, headway("run", "sh", "-c", "exit 7").status.exitstatus
  end

  def test_exit_status_without_stderr
    in_directory do |directory|
      status = lambda do |words|
        system(CLEAN, "exec #{RbConfig.ruby} -I#{File.join(ROOT, "lib")} #{EXE} #{words} >#{File::NULL} 2>&-", chdir: directory)
        $?.exitstatus
      end
      assert_equal 3, status["run --report q.html #{RbConfig.ruby} -e 'Thread.new { sleep 0.01 }.join; exit 3'"]
      assert_path_exists File.join(directory, "q.html")
      assert_equal 2, status["nosuch"]
    end
  end

  def test_death_by_signal
    assert_equal Signal.list["KILL"], headway_ruby("Process.kill(:KILL, $$); sleep").status.termsig
    assert_equal Signal.list["TERM"], headway_ruby("Process.kill(:TERM, $$); sleep", "--summary").status.termsig
  end

  def test_the_command_is_the_process_that_was_started
    reader, writer = IO.pipe
    code = "at_exit { puts 'terminated' }; trap(:TERM) { exit 7 }; $stdout.sync = true; p $$; sleep"
    pid = Process.spawn(CLEAN, RbConfig.ruby, EXE, "run", RbConfig.ruby, "-e", code, out: writer)
    writer.close
    assert_equal "#{pid}\n", reader.gets

    Process.kill(:TERM, pid)
    assert_equal "terminated\n", reader.read
    assert_equal 7, Process.wait2(pid).last.exitstatus
  ensure
    reader&.close
  end

  def test_ignored_signals_stay_ignored
    result = headway("run", "sh", "-c", "trap '' HUP; exec #{RbConfig.ruby} #{EXE} run #{RbConfig.ruby} -e 'p trap(:HUP, nil)'")

    assert_equal "\"IGNORE\"\n", result.out, result.to_s
  end

  def test_standard_streams_pass_through
    in_directory do |directory|
      input = write(directory, "input", "one\ntwo\n")
      result = headway_ruby("$stderr.print 'E'; print $stdin.read.upcase", input: input)

      assert_equal ["ONE\nTWO\n", "E"], [result.out, result.err]
    end
  end

  def test_a_command_that_is_no_ruby
    result = headway("run", "echo", "a  b", "--policy")

    assert_quiet_success result
    assert_equal "a  b --policy\n", result.out
  end
end
