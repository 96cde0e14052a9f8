# frozen_string_literal: true

require "test_helper"

# Which settings Headway starts with, and what HEADWAY=0 leaves of an application that uses it.
class StartTest < Minitest::Test
  SETTINGS = "settings = -> { [Headway.policy, Headway.quantum_ms, Headway.preempt] }\n"

  def test_what_a_later_start_does_not_give_stays
    assert_equal [[:observe, 20, :poll], [:observe, 20, :poll], [:quantum, 20, :poll]], answer(<<~RUBY)
      Headway.start(policy: :observe, quantum_ms: 20, preempt: :poll)
      seen = [settings.()]
      Headway.start
      seen << settings.()
      Headway.start(policy: :quantum)
      p seen << settings.()
    RUBY
  end

  def test_what_was_changed_at_run_time_stays
    assert_equal [:fair, 7, :signal], answer("Headway.start; Headway.quantum_ms = 7; Headway.start; p settings.()")
  end

  def test_what_was_set_before_the_start_is_in_force
    assert_equal [:observe, 7, :signal], answer("Headway.quantum_ms = 7; Headway.policy = :observe; Headway.start; p settings.()")
    assert_equal [:fair, 8, :signal], answer("Headway.quantum_ms = 7; Headway.start(quantum_ms: 8); p settings.()")
  end

  def test_after_a_stop_all_is_as_if_it_had_never_been
    assert_equal [:fair, 100, :signal], answer("Headway.start(policy: :observe, quantum_ms: 7); Headway.stop; Headway.start; p settings.()")
    assert_equal [:fair, 100, :signal], answer("Headway.quantum_ms = 7; Headway.stop; Headway.start; p settings.()")
  end

  def test_the_environment_has_its_say_each_time
    code = "Headway.start(policy: :quantum, quantum_ms: 7); Headway.start; p settings.()"
    assert_equal [:observe, 7, :signal], answer(code, "HEADWAY_POLICY" => "observe", "RUBY_THREAD_DEFAULT_QUANTUM_MS" => "9")
    assert_equal [:fair, 9, :signal], answer("Headway.start; Headway.start; p settings.()", "RUBY_THREAD_DEFAULT_QUANTUM_MS" => "9")
  end

  def test_switched_off_no_call_of_an_application_raises
    assert_equal [false, nil, nil, nil, false, 1, 2, false], answer(<<~RUBY, "HEADWAY" => "0")
      started = Headway.start(policy: :fair)
      handle = Headway.thread(Thread.current)
      handle.quantum_ms = 5
      Headway.quantum_ms = 20
      recording = Headway::Recorder.start(file: "/tmp/never.headway") || nil
      p [started, handle.quantum_ms, Headway::Recorder.dump, recording, Headway::Recorder.recording?, Headway.batch { 1 },
         Headway.interactive { 2 }, Headway.pass]
    RUBY
  end

  private

  # @return what the code prints
  def answer(code, env = {})
    result = Harness::RubyProcess.eval("require 'headway'\n#{SETTINGS}#{code}", env: env)
    assert_predicate result, :success?, result
    assert_empty result.err
    eval(result.out) # rubocop:disable Security/Eval
  end
end
