# frozen_string_literal: true

require "cli/command_line"
require "json"
require "harness/measured"

class DoctorTest < Minitest::Test
  include CommandLine
  include Harness::Measured

  def test_it_shows_what_works_and_what_it_costs
    measured do
      result = headway("doctor")

      assert_quiet_success result
      ["CRuby #{RUBY_VERSION}", "preempt signal", "preempt poll", "stock Ruby", "ns a hook event", "cores"].each do |words|
        assert_includes result.out, words
      end
      refute_includes result.out, "FAULT"
    end
  end

  def test_json
    measured do
      result = headway("doctor", "--json")
      report = JSON.parse(result.out)

      assert_quiet_success result
      assert_equal [Headway::VERSION, 1], report.values_at("headway", "schema")
      checks = report["doctor"].to_h { |check| [check["name"], check] }
      assert_equal "ok", checks["hooks"]["status"]
      assert_operator checks["preempt signal"]["late_ms"]["median"], :<, checks["stock Ruby"]["late_ms"]["median"]
      assert_operator checks["machine"].values_at("signal_us", "wake_us").min, :>, 0
      assert_equal %w[max median min n], checks["cost"]["event_ns"].keys.sort
    end
  end

  # As on a busy machine, where the round without hooks may take longer.
  def test_no_cost_is_below_zero
    require "headway/cli/doctor/check"
    require "headway/cli/doctor/workings"
    check = Headway::CLI::Doctor::Workings.send(:cost, [1322.0, -168.4, 601.0])

    assert_equal "601 ns a hook event (at most 1322, 3 measurements, the least lost in the machine's noise)", check.detail
    assert_equal({ "event_ns" => { "median" => 601.0, "min" => 0.0, "max" => 1322.0, "n" => 3 } }, check.figures)
    assert_equal "601 ns a hook event (168 to 1322, 3 measurements)", Headway::CLI::Doctor::Workings.send(:cost, [1322.0, 168.4, 601.0]).detail
  end

  def test_how_late_is_told_in_the_unit_that_fits
    require "headway/cli/doctor/check"
    require "headway/cli/doctor/workings"

    assert_equal "631 ms (at most 1.13 s, 3 naps)", Headway::CLI::Doctor::Workings.send(:text, [0.631, 1.1301, 0.00007])
  end

  def test_the_environment_is_judged
    measured do
      result = headway("doctor", env: { "HEADWAY_POLICY" => "nope", "RUBY_THREAD_DEFAULT_QUANTUM_MS" => "20",
                                        "RUBY_THREAD_TIMESLICE" => "soon", "HEADWAY" => "no", "HEADWAY_PULL" => "yes",
                                        "HEADWAY_CONTROL" => "0", "HEADWAY_OFFLOAD" => "sometimes" })

      assert_equal 1, result.status.exitstatus
      assert_match(/FAULT +HEADWAY_POLICY +is "nope": give fair, quantum or observe/, result.out)
      assert_match(/ok +RUBY_THREAD_DEFAULT_QUANTUM_MS +20$/, result.out)
      ignored = Headway::Platform.timeslice? ? "which Ruby ignores" : "but Ruby #{RUBY_VERSION} ignores it"
      assert_match(/FAULT +RUBY_THREAD_TIMESLICE +is "soon", #{ignored}/, result.out)
      assert_match(/FAULT +HEADWAY_OFFLOAD +is "sometimes": give adaptive, always or never/, result.out)
      assert_match(/- +control socket +HEADWAY_CONTROL=0: none/, result.out)
      assert_match(/FAULT +HEADWAY_PULL +is "yes": give 0 or 1/, result.out)
      assert_match(/ok +HEADWAY_CONTROL +0$/, result.out)
      assert_match(/FAULT +HEADWAY +is "no", which is taken for 0: give 0 or 1/, result.out)
      assert_match(/ok +preempt signal/, result.out)
    end
  end

  def test_without_a_control_socket_something_is_wrong
    measured do
      Dir.mktmpdir do |directory|
        File.chmod(0o755, directory)
        result = headway("doctor", env: { "HEADWAY_CONTROL_DIR" => directory })

        assert_equal 1, result.status.exitstatus
        assert_match(/FAULT +control socket +no control socket, .*#{directory}/, result.out)
      end
    end
  end

  def test_it_works_where_headway_is_switched_off
    measured do
      result = headway("doctor", env: { "HEADWAY" => "0" })

      assert_quiet_success result
      assert_match(/- +HEADWAY +0: Headway is switched off here/, result.out)
    end
  end
end
