# frozen_string_literal: true

require "cli/command_line"
require "pty"
require "headway"
require "headway/trace"
require "harness/timing"

# `headway run --record FILE` and `--report FILE.html`.
class RunRecordTest < Minitest::Test
  include CommandLine
  include Harness::Timing

  PROGRAM = "Thread.new { Thread.current.name = 'napper'; 5.times { sleep 0.001 } }.join; "

  def setup
    skip Headway.unsupported_reason unless Headway.supported?
  end

  def test_the_command_is_recorded_and_its_status_is_its_own
    in_directory do |directory|
      path = File.join(directory, "out.headway")
      result = headway_ruby("#{PROGRAM}puts 'out'; exit 3", "--record=#{path}", "--policy=fair")

      assert_equal ["out\n", "", 3], [result.out, result.err, result.status.exitstatus]
      trace = Headway::Trace.open(path).to_h
      assert_includes(trace[:threads].map { |row| row[:name] }, "napper")
      assert_equal "fair", trace[:processes].first[:policy]
    end
  end

  # As in a container, where no locale is set; one word the program's own, one of the command line.
  def test_the_command_is_readable_where_no_locale_is_set
    in_directory do |directory|
      File.write(File.join(directory, "spät.rb"), "$PROGRAM_NAME = \"gr\u00fc\u00dfe\"")
      result = headway("run", "--record", "out.headway", "--", RbConfig.ruby, "spät.rb", "für", chdir: directory, env: { "LC_ALL" => "C" })

      assert_quiet_success result
      assert_equal ["spät.rb für"], [Headway::Trace.open(File.join(directory, "out.headway")).to_h[:processes].first[:command]]
    end
  end

  def test_the_application_s_own_recorder_does_not_end_it
    in_directory do |directory|
      code = "require 'headway/integrations/recording'; own = Headway::Integrations::Recording; own.start({ mode: :flight }); #{PROGRAM}own.stop; " \
             "Thread.new { Thread.current.name = 'afterwards' }.join"
      result = headway_ruby(code, "--record=out.headway", chdir: directory)

      assert result.status.success?, result.err
      assert_match(%r{\Aheadway: the configuration's recorder is left out: headway run records everything, to /.+/out\.headway\n\z}, result.err)
      names = Headway::Trace.open(File.join(directory, "out.headway")).to_h[:threads].map { |row| row[:name] }
      assert_empty %w[napper afterwards] - names
    end
  end

  def test_children_write_files_of_their_own
    in_directory do |directory|
      code = "#{PROGRAM}fork { #{PROGRAM} }; Process.wait; system(RbConfig.ruby, '-e', #{PROGRAM.dump}); exec(RbConfig.ruby, '-e', #{PROGRAM.dump})"
      result = headway_ruby(code, "--record=out.headway", chdir: directory)

      assert_quiet_success result
      names = Dir.children(directory)
      assert_equal 3, names.size, names.inspect
      assert_includes names, "out.headway"
      names.each { |name| assert_nil Headway::Trace.open(File.join(directory, name)).to_h[:processes].first[:damage] }
    end
  end

  def test_traces_of_earlier_runs_stay_and_are_left_out
    in_directory do |directory|
      earlier = File.join(directory, "out.20261120.headway")
      File.write(earlier, "somebody's")
      result = headway_ruby(PROGRAM, "--record=out.headway", "--report=out.html", chdir: directory)

      assert_match(/report written/, result.err)
      assert_equal "somebody's", File.read(earlier)
      assert_equal %w[out.20261120.headway out.headway out.html], Dir.children(directory).sort
    end
  end

  def test_a_command_that_starts_no_ruby_is_told_to_leave_no_trace
    in_directory do |directory|
      result = headway("run", "--record=out.headway", "--", "sh", "-c", "exit 3", chdir: directory)

      assert_equal ["", "headway: the command left no trace (did it start a Ruby that Headway supports?)\n", 3],
                   [result.out, result.err, result.status.exitstatus]
      assert_empty Dir.children(directory)
    end
  end

  def test_a_directory_that_is_gone_by_then_costs_no_status
    in_directory do |directory|
      result = headway("run", "--record=traces/", "--", "sh", "-c", "rm -r traces; exit 3", chdir: directory.tap { Dir.mkdir("#{_1}/traces") })

      assert_equal ["headway: the command left no trace (did it start a Ruby that Headway supports?)\n", 3], [result.err, result.status.exitstatus]
    end
  end

  def test_a_shell_that_starts_a_ruby_leaves_its_trace
    in_directory do |directory|
      assert_quiet_success headway("run", "--record=out.headway", "--", "sh", "-c", "#{RbConfig.ruby} -e 1; true", chdir: directory)
      assert_equal 1, Dir.children(directory).size
    end
  end

  # In a directory each trace has a name of its own, and would stay.
  def test_what_only_looked_for_the_program_leaves_no_trace
    in_directory do |directory|
      write(directory, "Gemfile", "")
      write(directory, "program", "#!/usr/bin/env ruby\n#{PROGRAM}", 0o755)
      bundler = Gem.bin_path("bundler", "bundle")
      exec = "exec(RbConfig.ruby, '-e', #{PROGRAM.dump})"
      { "as rails does" => [RbConfig.ruby, "-e", exec], "of another Ruby" => [bundler, "exec", RbConfig.ruby, "-e", PROGRAM],
        "loaded" => [bundler, "exec", "./program"] }.each do |what, command|
        result = headway("run", "--record=traces/", *command, chdir: traces_in(directory))
        assert_quiet_success result
        assert_includes only_trace(directory, what)[:threads].map { |row| row[:name] }, "napper"
      end
    end
  end

  def test_what_had_threads_before_it_became_another_program_keeps_its_trace
    in_directory do |directory|
      written = "sleep 0.01 until Dir['traces/*'].any? { |file| Headway::Trace.open(file).to_h[:threads].size > 1 }; "
      code = "#{PROGRAM}#{written}exec(RbConfig.ruby, '-e', #{PROGRAM.dump})"
      headway_ruby(code, "--record=traces/", chdir: traces_in(directory))
      assert_equal 2, Dir.children(File.join(directory, "traces")).size
    end
  end

  def test_a_program_that_bundler_loads_in_a_child_is_recorded
    in_directory do |directory|
      write(directory, "Gemfile", "")
      write(directory, "program", "#!/usr/bin/env ruby\n#{PROGRAM}", 0o755)
      bundle = [RbConfig.ruby, Gem.bin_path("bundler", "bundle")].join(" ")
      commands = "#{bundle} exec ./program; #{bundle} --version; true"
      headway("run", "--record=traces/", "sh", "-c", commands, chdir: traces_in(directory))
      assert_includes only_trace(directory, "child")[:threads].map { |row| row[:name] }, "napper"
    end
  end

  def test_a_relative_path_means_where_the_command_was_started
    in_directory do |directory|
      headway_ruby("Dir.chdir('/'); #{PROGRAM}", "--record=out.headway", chdir: directory)

      assert_equal ["out.headway"], Dir.children(directory)
    end
  end

  def test_bad_paths
    in_directory do |directory|
      assert_bad_usage(/no directory/, headway_ruby("", "--record=/nonexistent/out.headway"))
      assert_bad_usage(/no directory/, headway_ruby("", "--record=/nonexistent/"))
      assert_bad_usage(/--record is ".*out%q": %q is no place to be filled in; give %h/, headway_ruby("", "--record=out%q"))
      assert_bad_usage(/no directory/, headway_ruby("", "--report=/nonexistent/out.html"))
      assert_bad_usage(/--report is "out\.txt": give a name that ends in \.html.*headway report FILE with --perfetto, .*--json$/,
                       headway_ruby("", "--report=out.txt", chdir: directory))
      assert_empty Dir.children(directory)
    end
  end

  # As to a shell, which finds no user of that name and hands it over as it is.
  def test_a_name_that_begins_with_a_tilde
    in_directory do |directory|
      assert_predicate headway_ruby("", "--record=~nobody's.headway", chdir: directory), :success?
      assert_equal ["~nobody's.headway"], Dir.children(directory)
    end
  end

  def test_what_is_no_trace_is_not_written_over
    in_directory do |directory|
      script = write(directory, "job.rb", "puts 1\n")
      assert_bad_usage(/--record: #{script} is there and is no trace: give another name, or remove it/,
                       headway_ruby("", "--record=#{script}"))
      assert_bad_usage(/--record is "": give a name, or a directory/, headway_ruby("", "--record="))
      recorded = headway_ruby("p Headway::Recorder.start(file: #{script.dump}), Headway::Recorder.start(file: #{script.dump}, mode: :flight)")
      assert_equal "false\nfalse\n", recorded.out
      assert_match(/recording is off: #{script}: it is there and is no trace; give another name, or remove it/, recorded.err)
      assert_equal "puts 1\n", File.read(script)
    end
  end

  # A name, and a directory, that are no text in that locale.
  def test_names_that_the_locale_cannot_read
    in_directory("häadway") do |directory|
      ["C", "C.UTF-8"].each do |locale|
        result = headway_ruby(PROGRAM, "--record", "trä \"c.headway", "--report", "pä.html", chdir: directory, env: { "LC_ALL" => locale })
        assert_predicate result, :success?, result.to_s
        assert_equal ["pä.html", "trä \"c.headway"], Dir.children(directory).map { _1.dup.force_encoding("UTF-8") }.sort
        Dir.children(directory).each { |name| File.delete(File.join(directory, name)) }
      end
    end
  end

  def test_where_there_is_no_current_directory
    in_directory do |directory|
      gone = File.join(directory, "gone")
      Dir.mkdir(gone)
      shell = "rmdir #{gone} && exec #{RbConfig.ruby} -I#{File.join(ROOT, "lib")} #{EXE} run --record x.headway #{RbConfig.ruby} -e 1 2>&1"
      said = IO.popen([CLEAN, "sh", "-c", shell, { chdir: gone }], &:read)
      assert_equal "headway: --record is \"x.headway\": the current directory is gone; give an absolute path\n", said
    end
  end

  def test_a_place_for_the_report_s_trace
    in_directory do |directory|
      result = headway_ruby("", "--report=out.html", chdir: directory, env: { "TMPDIR" => "/proc" })
      # Ruby takes another place where that isn't there, or, to all but root, can't be written to.
      return assert_predicate(result, :success?) unless File.directory?("/proc/self") && Process.euid.zero?

      assert_bad_usage(%r{--report: no trace can be written to /proc meanwhile: .*; set TMPDIR, or give --record FILE}, result)
    end
  end

  # Root may write everywhere, it seems.
  def test_a_place_where_nothing_can_be_made_is_refused_before_the_start
    skip "no /proc here" unless File.directory?("/proc/self")
    assert_bad_usage(%r{--record: /proc/x\.headway cannot be written}, headway_ruby("puts 1", "--record=/proc/x.headway"))
    assert_bad_usage(%r{--record: /proc/%h-%p-%t\.headway cannot be written}, headway_ruby("puts 1", "--record=/proc/"))
    assert_bad_usage(%r{--report: /proc/x\.html cannot be written}, headway_ruby("puts 1", "--report=/proc/x.html"))
  end

  def test_other_files_there_may_have_any_name
    in_directory do |directory|
      File.write(File.join(directory, "gr\xFC\xDFe".b), "")
      result = headway_ruby(PROGRAM, "--record=out.headway", "--report=out.html", chdir: directory)
      assert_match(/\Aheadway: report written to .*\n\z/, result.err)
    rescue Errno::EILSEQ
      skip "not on this file system"
    end
  end

  def test_a_page_may_have_any_name_for_one
    in_directory do |directory|
      ["a%q.html", "B.HTM", "c"].each do |name|
        assert_predicate headway_ruby(PROGRAM, "--report=#{name}", chdir: directory), :success?
        assert_path_exists File.join(directory, name)
      end
      assert_equal 3, Dir.children(directory).size
    end
  end

  def test_a_signal_passes_through_a_supervised_run
    in_directory do |directory|
      result = headway_ruby("Process.kill(:TERM, Process.pid); sleep", "--report=out.html", chdir: directory)

      assert_equal Signal.list["TERM"], result.status.termsig, result.to_s
      assert_match(/report/, result.err)
    end
  end

  # It was killed, or goes on in the background.
  def test_what_a_report_lacks_is_said
    in_directory do |directory|
      result = headway_ruby("Thread.new { 100.times { Thread.pass } }.join; sleep 0.5; Process.kill(:KILL, $$)", "--report=out.html", chdir: directory)

      assert_match(/\Aheadway: warning: .*its trace has no end.*\nheadway: report written to/, result.err)
    end
  end

  # A shell's loop goes on after a command that exited, and ends with one that an interrupt has ended.
  def test_the_end_of_a_supervised_command_by_an_interrupt_is_one_of_ours
    in_directory do |directory|
      result = headway("run", "--report=out.html", "--", "sh", "-c", "kill -INT $$", chdir: directory)
      assert_equal Signal.list["INT"], result.status.termsig, result.to_s
      assert_match(/\Aheadway: no report: .*\n\z/, result.err)
    end
  end

  # Ctrl-C ends most commands before it is known whom it came to.
  def test_a_signal_that_came_as_the_command_ended_is_told_to_nobody
    result = Harness::RubyProcess.eval(<<~RUBY)
      require "headway/cli/sentinel"
      sentinel = Headway::CLI::Sentinel.new(fatal: %w[INT], ignored: %w[TERM])
      sentinel.dismiss
      p sentinel.alone?
    RUBY
    assert_equal ["false\n", ""], [result.out, result.err]
  end

  # Ctrl-C in a terminal reaches the command without us, and so does a service manager's TERM; what comes to us alone doesn't.
  def test_a_signal_reaches_a_supervised_command_once
    %w[INT TERM USR1].each do |signal|
      code = "n = 0; trap(:#{signal}) { n += 1 }; $stdout.sync = true; puts $$; sleep 0.01 until n > 0; sleep 1; puts n"
      supervised(code) { |run| Process.kill(signal, run) }
      supervised(code) { |run| Process.kill(signal, -run) }
    end
  end

  # Then what comes to ours doesn't come to it.
  def test_a_signal_to_our_process_group_reaches_a_supervised_command_that_has_one_of_its_own
    code = "n = 0; trap(:TERM) { n += 1 }; Process.setpgrp; $stdout.sync = true; puts $$; sleep 0.01 until n > 0; puts n"
    supervised(code) { |run| Process.kill(:TERM, -run) }
  end

  # As a shell does with a job: what the terminal stops it sees stopped, and continues as it brings it to the foreground.
  JOB_CONTROL = <<~RUBY
    $stdout.sync = true
    trap("HUP", "DEFAULT")
    trap("TTOU", "IGNORE")
    Process.setsid
    terminal = File.open(ARGV.shift, File::RDWR)
    job = Process.spawn(*ARGV, in: terminal, pgroup: true)
    puts Process.wait2(job, Process::WUNTRACED).last.stopped?
    terminal.ioctl(0x5410, [job].pack("i")) # TIOCSPGRP
    Process.kill("CONT", -job)
    exit(Process.wait2(job).last.exitstatus)
  RUBY
  private_constant :JOB_CONTROL

  def test_a_supervised_command_that_reads_from_its_terminal_in_the_background_is_a_stopped_job
    skip "its number for TIOCSPGRP" unless RUBY_PLATFORM.include?("linux")
    in_directory do |directory|
      PTY.open do |master, slave|
        output, writer = IO.pipe
        shell = Process.spawn(CLEAN, RbConfig.ruby, "-e", JOB_CONTROL, slave.path, RbConfig.ruby, EXE, "run", "--report=out.html", "--",
                              RbConfig.ruby, "-e", "$stdout.sync = true; puts $stdin.gets; exit 7", out: writer, err: File::NULL, chdir: directory)
        writer.close
        await("the job is stopped") { output.read_nonblock(5, exception: false) == "true\n" }
        master.write("a line\n")
        assert_equal "a line\n", output.gets
        assert_equal 7, Process.wait2(shell).last.exitstatus
        shell = nil
      ensure
        Process.kill(:KILL, shell) && Process.wait(shell) if shell
        output&.close
      end
      assert_path_exists File.join(directory, "out.html")
    end
  end

  def test_an_interrupt_before_the_command_begins_shows_no_stack
    result = Harness::RubyProcess.eval("require 'headway/cli/supervision'; p Headway::CLI::Supervision.run { Process.kill(:INT, $$); sleep 5 }.termsig")
    assert_equal ["2\n", ""], [result.out, result.err]

    # As soon as there are processes beside ours, which close what isn't theirs first.
    result = Harness::RubyProcess.eval(<<~RUBY)
      require "headway/cli/supervision"
      OURS = $$
      IO.prepend(Module.new { def close = ($$ == OURS || Process.kill(:INT, $$)) && super })
      p Headway::CLI::Supervision.run { exit! }.termsig
    RUBY
    assert_equal ["2\n", ""], [result.out, result.err]

    result = Harness::RubyProcess.eval("#{interrupt_while_loading("headway/base.rb")}require 'headway/autostart'; puts 1")
    assert_equal ["", "", 2], [result.out, result.err, result.status.termsig]
  end

  def test_an_interrupt_before_a_container_s_first_process_begins_ends_it
    skip "no namespaces here" unless system("unshare", "-r", "-p", "-f", "true", err: File::NULL)
    code = "#{interrupt_while_loading("headway/base.rb")}require 'headway/autostart'; puts 1"
    result = Harness::RubyProcess.eval("exec(*ARGV)", "unshare", "-r", "-p", "-f", RbConfig.ruby, "-I", "lib", "-e", code,
                                       pass: { chdir: ROOT })
    assert_equal ["", "", 130], [result.out, result.err, result.status.exitstatus]
  end

  # What is loaded for the report has errors that are named on the interrupt's way out.
  def test_an_interrupt_while_the_report_s_code_loads_shows_no_stack
    in_directory do |directory|
      interrupt = write(directory, "interrupt.rb", interrupt_while_loading("headway/base.rb"))
      result = headway("run", "--report=out.html", "--", "true", chdir: directory, env: { "RUBYOPT" => "-r#{interrupt}" })
      assert_equal ["", "", 130], [result.out, result.err, result.status.exitstatus]
    end
  end

  # As in the background of a script.
  def test_a_command_for_which_interrupts_are_ignored_goes_on_ignoring_them
    in_directory do |directory|
      result = Harness::RubyProcess.eval("trap(:INT, 'IGNORE'); exec(*ARGV)", RbConfig.ruby, EXE, "run", "--report=out.html", "--",
                                         "sh", "-c", "kill -INT $$; echo alive", env: CLEAN, pass: { chdir: directory })
      assert_equal ["alive\n", 0], [result.out, result.status.exitstatus], result.to_s
    end
  end

  def test_each_interrupt_is_told_from_those_before_it
    code = "n = 0; trap(:INT) { n += 1 }; $stdout.sync = true; puts $$; 4.times { |i| sleep 0.01 until n > i; puts n }; sleep 2; " \
           "puts n"
    supervised(code, "4\n") do |run, output|
      [-run, run, -run, run].each_with_index do |whom, i|
        before = children_of(run)
        Process.kill(:INT, whom)
        assert_equal "#{i + 1}\n", output.gets
        # One that came to us alone went on once that was known; one that came to all has another sentinel posted.
        next unless whom.negative?

        before.empty? ? sleep(1.5) : await("another sentinel") { (children_of(run) - before).any? } # without /proc: by then
      end
    end
  end

  # Nobody would end it any more.
  def test_a_signal_before_it_can_be_passed_on_leaves_no_command_behind
    reader, writer = IO.pipe
    run = Harness::RubyProcess.eval(<<~RUBY, pass: { writer.fileno => writer })
      require "headway/cli/command"
      require "headway/cli/supervision"
      Headway::CLI::Supervision.singleton_class.define_method(:fork) { |&block| super(&block).tap { Process.kill(:TERM, Process.pid); sleep } }
      Headway::CLI::Supervision.run { IO.for_fd(#{writer.fileno}).puts("alone") }
    RUBY
    writer.close
    assert_equal Signal.list["TERM"], run.status.termsig, run.to_s
    assert_empty reader.read
  ensure
    reader&.close
  end

  # KILL can't be trapped, and Ruby keeps SEGV for itself: no reason for a backtrace, nor for leaving the trace behind.
  def test_a_command_that_was_killed_or_crashed_is_told_by_the_status
    in_directory do |directory|
      { "KILL" => 9, "SEGV" => 11, "ABRT" => 6 }.each do |name, number|
        result = headway("run", "--report=out.html", "--", "sh", "-c", "kill -#{name} $$", chdir: directory, env: { "TMPDIR" => directory })

        assert_equal number, result.status.termsig || (result.status.exitstatus - 128), "#{name}: #{result}"
        assert_match(/\Aheadway: no report: .*\n\z/, result.err)
        assert_empty Dir.children(directory)
      end
    end
  end

  def test_switched_off
    result = headway_ruby("puts 1", "--record=out.headway", env: { "HEADWAY" => "0" })

    assert_equal "1\n", result.out
    assert_match(/HEADWAY=0 is set.*without a trace/, result.err)
  end

  def test_no_report_where_it_is_switched_off_and_nothing_left_behind
    in_directory do |directory|
      result = headway_ruby("puts 1", "--report=out.html", chdir: directory, env: { "HEADWAY" => "0", "TMPDIR" => directory })

      assert_equal "1\n", result.out
      assert_empty Dir.children(directory)
    end
  end

  private

  # A thread may end as it is looked at, whose children are another's then.
  def children_of(pid)
    Dir["/proc/#{pid}/task/*/children"].flat_map do |file|
      File.read(file).split
    rescue SystemCallError
      []
    end
  end

  # In a process group of its own, as a shell has it.
  def supervised(code, last = "1\n")
    in_directory do |directory|
      output, writer = IO.pipe
      run = Process.spawn(CLEAN, RbConfig.ruby, EXE, "run", "--report=out.html", "--", RbConfig.ruby, "-e", code, out: writer,
                          err: File::NULL, chdir: directory, pgroup: true)
      writer.close
      output.gets
      yield run, output
      assert_equal last, output.gets
      assert_predicate Process.wait2(run).last, :success?
      assert_path_exists File.join(directory, "out.html")
    ensure
      output&.close
    end
  end

  def traces_in(directory)
    FileUtils.rm_rf(File.join(directory, "traces"))
    FileUtils.mkdir(File.join(directory, "traces"))
    directory
  end

  def only_trace(directory, what)
    names = Dir.children(File.join(directory, "traces"))
    assert_equal 1, names.size, what
    trace = Headway::Trace.open(File.join(directory, "traces", names.first)).to_h
    assert_nil trace[:processes].first[:damage], what
    trace
  end
end
