# frozen_string_literal: true

require "cli/command_line"
require "json"
require "harness/measured"

# `headway yield` as its user meets it. What its figures are worth is estimate_test.rb's.
class YieldCommandTest < Minitest::Test
  include CommandLine
  include Harness::Measured

  FIGURES = %w[wall_yield_pct event_yield_pct io_pct gvl_free_cpu_pct wasteful_pct knee_threads core_knee_threads call_ms gvl_ms
               coreless_pct others_pct releases_per_call wasteful_releases_per_call].freeze

  def test_json
    measured do
      result = headway("yield", "-e", "sleep 0.002", "--concurrency", "1,2", "--processes", "2", "--measure", "--json",
                       "--seconds", "0.03")
      assert_quiet_success result
      answer = JSON.parse(result.out)
      assert_equal [Headway::VERSION, 1, RUBY_VERSION], answer.values_at("headway", "schema", "ruby")
      FIGURES.each { |key| assert_equal %w[median min max n], answer.fetch(key).keys, key }
      assert_operator answer["event_yield_pct"]["median"], :>, 95
      assert_equal %w[1 2], answer["predicted"].keys
      assert_equal %w[1 2], answer["measured"].keys
      assert_equal %w[per_s latency_ms speedup per_s_error_pct latency_ms_error_pct], answer["measured"]["2"].keys
      assert_equal [[1, 1], [2, 1], [2, 2]], answer["processes"].map { _1.values_at("processes", "threads") }
      assert_operator answer["processes"].last["speedup"]["median"], :>, 1
    end
  end

  def test_text_from_a_file_that_prepares_its_work
    in_directory do |directory|
      file = write(directory, "work.rb", "puts 'prepared'\ndata = 'x' * 100\nproc { puts data.sum }\n")
      measured do
        result = headway("yield", file, "--concurrency", "2", "--seconds", "0.03")
        assert_quiet_success result
        assert_match(/\Ayields +\d+\.\d % /, result.out)
        assert_match(/by the wall clock, 1 thread against 2$/, result.out)
        assert_match(/^threads +calls/, result.out)
        refute_match(/prepared|12000/, result.out)
      end
    end
  end

  def test_many_threads_are_counted_whole
    require "headway/bench"
    require "headway/estimate/text"
    figure = ->(value) { { "median" => value, "min" => value, "max" => value, "n" => 1 } }
    result = { **FIGURES.to_h { |key| [key, figure[1.0]] }, "cpus" => 2, "predicted" => {},
               "wall" => { "threads" => 2, "predicted_speedup" => figure[1.0], "concurrent_s" => figure[0.5] } }
    said = ->(**knees) { Headway::Estimate::Text.new(result.merge(knees.to_h { |key, threads| [key.to_s, figure[threads]] })).to_s }
    assert_match(/^218 threads keep all 2 cores busy/, said[core_knee_threads: 218.0, knee_threads: 300.0])
    assert_match(/^51 threads would keep the GVL busy/, said[core_knee_threads: 60.0, knee_threads: 50.96])
    assert_match(/^3\.5 threads would keep the GVL busy/, said[core_knee_threads: 60.0, knee_threads: 3.46])
  end

  # Its own thread only waits, but what it waits for needs the GVL.
  def test_work_that_other_threads_do
    measured do
      work = "Thread.new { 300_000.times { } }.join"
      result = headway("yield", "-e", work, "--concurrency", "2", "--seconds", "0.03")
      assert_quiet_success result
      assert_match(/^Other threads of this process computed for \d+ % of that time/, result.out)
      refute_match(/^threads|keep the GVL busy/, result.out)
      assert_match(/^threads +calls/, headway("yield", "-e", work, "--concurrency", "2", "--measure", "--seconds", "0.03").out)
    end
  end

  # By the events of one thread all of it can overlap; the wall clock knows better.
  def test_work_that_waits_for_one_mutex_is_not_said_to_gain_from_threads
    work = ["-e", "($mutex ||= Mutex.new).synchronize { sleep 0.002 }", "--concurrency", "4", "--seconds", "0.03"]
    contradiction = /\A4 threads did \d\.\d times as much as one, not [34]\.\d times as is predicted: .*\(a Mutex, .*--measure/
    measured do
      result = headway("yield", *work)
      assert_quiet_success result
      assert_match(contradiction, result.out)
      refute_match(/^threads|threads keep|more gain nothing/, result.out)
      result = headway("yield", *work, "--measure")
      assert_match(contradiction, result.out)
      refute_match(/threads keep|more gain nothing/, result.out)
      assert_match(/^threads +calls/, result.out)
      refute_match(/as is predicted/, headway("yield", "-e", "sleep 0.002", *work.drop(2)).out)
    end
  end

  def test_a_file_whose_name_and_text_the_locale_cannot_read
    in_directory do |directory|
      [["jöb \"q.rb", { "LC_ALL" => "C" }], ["job.rb", { "RUBYOPT" => "-EUTF-8:ISO-8859-1" }]].each do |name, locale|
        assert_bad_usage(/the work raises RuntimeError: 1 /, headway("yield", write(directory, name, "raise '→'.size.to_s\n"), env: locale))
      end
    end
  end

  def test_a_library_whose_name_the_locale_cannot_read
    in_directory do |directory|
      library = write(directory, "jöb.rb", "raise 'found'\n")
      assert_bad_usage(/the work raises RuntimeError: found/, headway("yield", "-r", library, "-e", "1", env: { "LC_ALL" => "C" }))
    end
  end

  def test_a_file_that_is_its_work
    in_directory do |directory|
      file = write(directory, "work.rb", "raise ArgumentError, 'seen ' + __FILE__ + $0\n")
      assert_bad_usage(/the work raises ArgumentError: seen #{file}#{file} \(#{file}:1\)/, headway("yield", file))
    end
  end

  def test_work_that_cannot_be_measured
    { "raise 'no luck'" => /the work raises RuntimeError: no luck \(-e:1\)/,
      "1 +" => /the work is no Ruby: -e:/,
      "fork { }" => /the work forks/,
      "exit 3" => /the work exits \(status 3\)/,
      "exit!" => /the work ended the process/,
      "Thread.exit" => /the work ends its thread/,
      "gets.upcase" => /the work raises NoMethodError/,
      "raise NotImplementedError" => /the work raises NotImplementedError/ }.each do |code, words|
      assert_bad_usage(words, headway("yield", "-e", code))
    end
  end

  def test_work_that_never_ends
    ["loop { }", "begin; sleep; rescue Exception; retry; end"].each do |code|
      assert_bad_usage(/the work was not done within 1 s/, headway("yield", "-e", code, "--timeout", "1"))
    end
  end

  # $stdout and what children write alike; a child that stays keeps nobody waiting.
  def test_what_the_work_prints_is_thrown_away
    code = "$once ||= spawn('sleep 5 & echo child'); puts 1; warn 2; STDOUT.syswrite('3'); sleep 0.001"
    result = headway("yield", "-e", code, "--concurrency", "2", "--json", "--seconds", "0.03")
    assert_quiet_success result
    assert_equal 1, JSON.parse(result.out).fetch("schema")
  end

  def test_bad_options
    assert_bad_usage(/--concurrency 0: give whole numbers from 1/, headway("yield", "-e", "1", "--concurrency", "0"))
    assert_bad_usage(/--processes 0: /, headway("yield", "-e", "1", "--processes", "0"))
    assert_bad_usage(/no work: give -e CODE or a FILE/, headway("yield"))
    assert_bad_usage(/give the work once/, headway("yield", "-e", "1", "work.rb"))
    assert_bad_usage(/no such file: nosuch\.rb/, headway("yield", "nosuch.rb"))
    assert_bad_usage(/is no file that can be read/, headway("yield", "lib"))
    assert_bad_usage(/-r nosuch: there is no such library/, headway("yield", "-r", "nosuch", "-e", "1"))
    assert_bad_usage(/unknown option --frob/, headway("yield", "--frob"))
  end

  def test_a_library_that_is_there_and_requires_one_that_is_not
    in_directory do |directory|
      write(directory, "app.rb", "# with a gem\nrequire 'no/such_gem'\n")
      %w[./app ./app.rb].each do |library|
        assert_bad_usage(%r{-r #{library}: it requires no/such_gem, and there is no such library \(.*/app\.rb:2\)$},
                         headway("yield", "-r", library, "-e", "1", chdir: directory))
      end
      write(directory, "odd.rb", "raise LoadError, 'add the gem odd'\n")
      assert_bad_usage(/-r \.\/odd: add the gem odd \(.*odd.rb:1\)$/, headway("yield", "-r", "./odd", "-e", "1", chdir: directory))
      assert_bad_usage(%r{-r \./nosuch: there is no such library}, headway("yield", "-r", "./nosuch", "-e", "1", chdir: directory))
    end
  end

  def test_help
    result = headway("yield", "--help")
    assert_quiet_success result
    assert_match(/\AUsage: headway yield \(-e CODE \| FILE\)/, result.out)
  end
end
