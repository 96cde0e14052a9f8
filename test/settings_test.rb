# frozen_string_literal: true

require "test_helper"
require "headway/settings"

class SettingsTest < Minitest::Test
  Settings = Headway::Settings

  def test_defaults
    settings = Settings.resolve(env: {})

    assert_equal [:fair, 100, :signal], settings.to_a
    assert_predicate settings, :frozen?
  end

  def test_names_are_taken_as_strings_and_symbols
    assert_equal :observe, Settings.policy("observe")
    assert_equal :quantum, Settings.policy(:quantum)
    assert_equal :poll, Settings.preempt("poll")
  end

  def test_a_quantum_is_a_number_or_a_decimal_string
    assert_equal 10, Settings.quantum_ms(10)
    assert_equal 10, Settings.quantum_ms("10")
    assert_equal 2.5, Settings.quantum_ms(2.5)
    assert_equal 2.5, Settings.quantum_ms("2.5")
    assert_equal 2.5, Settings.quantum_ms(Rational(5, 2))
    assert_equal 1, Settings.quantum_ms(1)
    assert_equal 4_294_967, Settings.quantum_ms("4294967")
    assert_kind_of Integer, Settings.quantum_ms("1e3")
  end

  def test_a_bad_quantum_is_named
    [0, -1, 0.99, 4_294_968, 4_294_967.5, Float::NAN, Float::INFINITY, :ten, [],
     "", " ", "0", "-1", "abc", "10ms", "1e99", "0x10", "1_000", "1\n2", "\xff", "10".encode("UTF-16LE"), Complex(10, 1)].each do |value|
      error = assert_raises(Headway::SettingError, value.inspect) { Settings.quantum_ms(value, from: "--quantum") }

      assert_match(/\A--quantum is .+: give milliseconds from 1 to 4294967, such as 10\z/, error.message)
    end
  end

  def test_a_bad_name_is_named_with_the_good_ones
    error = assert_raises(Headway::SettingError) { Settings.policy("nope", from: "--policy") }
    assert_equal '--policy is "nope": give fair, quantum or observe', error.message

    error = assert_raises(Headway::SettingError) { Settings.preempt(:never) }
    assert_equal 'preempt is "never": give signal or poll', error.message
  end

  def test_a_long_value_is_cut
    error = assert_raises(Headway::SettingError) { Settings.policy("x" * 10_000) }

    assert_operator error.message.length, :<, 200
  end

  def test_environment_overrides_code_for_policy_and_preempt
    env = { "HEADWAY_POLICY" => "observe", "HEADWAY_PREEMPT" => "poll" }
    settings = Settings.resolve(policy: :fair, preempt: :signal, env: env)

    assert_equal [:observe, :poll], [settings.policy, settings.preempt]
  end

  def test_code_overrides_environment_for_the_quantum
    env = { "RUBY_THREAD_DEFAULT_QUANTUM_MS" => "20" }

    assert_equal 20, Settings.resolve(env: env).quantum_ms
    assert_equal 5, Settings.resolve(quantum_ms: 5, env: env).quantum_ms
  end

  def test_values_that_are_overridden_are_checked_too
    assert_raises(Headway::SettingError) { Settings.resolve(policy: :nope, env: { "HEADWAY_POLICY" => "fair" }) }
    assert_raises(Headway::SettingError) do
      Settings.resolve(quantum_ms: 5, env: { "RUBY_THREAD_DEFAULT_QUANTUM_MS" => "" })
    end
  end

  def test_false_is_no_value
    %i[policy quantum_ms preempt].each do |name|
      error = assert_raises(Headway::SettingError) { Settings.resolve(name => false, env: {}) }
      assert_match(/\A#{name} is false: give /, error.message)
    end
  end

  def test_every_variable_is_named_in_its_error
    { "HEADWAY_POLICY" => "nope", "HEADWAY_PREEMPT" => "nope",
      "RUBY_THREAD_DEFAULT_QUANTUM_MS" => "abc" }.each do |name, value|
      error = assert_raises(Headway::SettingError) { Settings.resolve(env: { name => value }) }

      assert_includes error.message, "#{name} is #{value.inspect}"
    end
  end

  def test_zero_switches_off
    assert Settings.disabled?({ "HEADWAY" => "0" })
    assert_nil Settings.odd_switch({ "HEADWAY" => "0" })
    [{ "HEADWAY" => "1" }, { "HEADWAY" => "" }, {}].each do |env|
      refute Settings.disabled?(env)
      assert_nil Settings.odd_switch(env)
    end
  end

  def test_whatever_else_switches_off_too_and_is_named
    %w[false no off 00].each do |value|
      assert Settings.disabled?({ "HEADWAY" => value })
      assert_equal "HEADWAY is #{value.inspect}, which is taken for 0: give 0 or 1", Settings.odd_switch({ "HEADWAY" => value })
    end
  end

  def test_pulling_is_switched_off_by_a_zero_alone
    assert_equal [true, true, true, false], [nil, "", "1", "0"].map { |value| Headway::Settings.pull?({ "HEADWAY_PULL" => value }) }
    error = assert_raises(Headway::SettingError) { Headway::Settings.pull?({ "HEADWAY_PULL" => "no" }) }
    assert_equal 'HEADWAY_PULL is "no": give 0 or 1', error.message
  end
end
