# frozen_string_literal: true

require "test_helper"
require "headway/bench"

class BenchArmTest < Minitest::Test
  Arm = Headway::Bench::Arm

  def test_nothing_of_ours_is_at_work_in_a_stock_arm
    seen = with_env("HEADWAY_POLICY" => "quantum", "RUBY_THREAD_TIMESLICE" => "20", "HEADWAY" => "0",
                    "RUBYOPT" => "-rbundler/setup -W0 -r/some/lib/headway/autostart.rb") { environment_in("stock") }
    assert_equal({ "RUBYOPT" => "-W0" }, seen)
  end

  def test_each_arm_has_its_settings
    assert_equal "10", environment_in("timeslice10")["RUBY_THREAD_TIMESLICE"]
    assert_equal "fair", environment_in("headway")["HEADWAY_POLICY"]
    assert_equal "poll", environment_in("headway-poll")["HEADWAY_PREEMPT"]
    assert_match(/autostart/, environment_in("observe")["RUBYOPT"])
    assert_equal(-3, build("priority-3").priority)
  end

  def test_an_arm_that_this_ruby_cannot_run_says_why
    interpreter = Struct.new(:version, :timeslice?, :headway_trouble).new("3.3.0", false, "no extension")
    assert_match(/needs Ruby 3.4/, Arm.build("timeslice10", interpreter).trouble)
    assert_equal "no extension", Arm.build("headway", interpreter).trouble
    assert_nil Arm.build("stock", interpreter).trouble
  end

  private

  def build(name) = Arm.build(name, Headway::Bench::Interpreter.current)

  # What a child of the arm finds in its environment, as far as it is about us.
  def environment_in(name)
    code = 'require "json"; puts JSON.generate(ENV.to_h)'
    all = Headway::Bench::Child.run([RbConfig.ruby, "--disable=gems,rubyopt", "-e", code], env: build(name).environment)
    all.select { |key, _| key.match?(/\A(HEADWAY|RUBYOPT|RUBY_THREAD)/) }
  end

  def with_env(variables)
    kept = variables.keys.to_h { [_1, ENV[_1]] }
    ENV.update(variables)
    yield
  ensure
    ENV.update(kept)
  end
end
