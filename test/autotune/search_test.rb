# frozen_string_literal: true

require "test_helper"
require "autotune/plant"

# What Autotune decides, on made windows.
class AutotuneSearchTest < Minitest::Test
  Plant = Autotuning::Plant

  def test_it_finds_the_threads_that_io_wants_the_fewer_that_the_cpu_wants_and_back
    plant = Plant.new(values: { threads: 3, quantum_ms: 100 }, ranges: { quantum_ms: 10..200, threads: 1..16 })
    plant.run(300)
    assert_operator plant.search.base[:threads], :>=, 10, plant.lines.join("\n") # 90 % of the time suspended: a knee at 10
    io = plant.search.base

    plant.gvl_s, plant.delay_s = 0.02, 0.002
    plant.run(300)
    assert_operator plant.search.base[:threads], :<=, io[:threads] / 2, plant.lines.join("\n")
    cpu = plant.search.base

    plant.gvl_s, plant.delay_s = 0.002, 0.018
    plant.run(300)
    assert_operator plant.search.base[:threads], :>, cpu[:threads], plant.lines.join("\n")
    assert_equal 2, plant.lines.grep(/the work has changed: a work is suspended for \d+ % of its time, not \d+ %/).size
    assert_equal 100, plant.search.base[:quantum_ms]
  end

  def test_noise_alone_moves_nothing
    outcomes = (1..60).flat_map do |seed|
      plant = Plant.new(values: { here: 50, there: 8 }, ranges: { here: 1..100, there: 1..16 }, seed: seed, noise: 0.1)
      plant.run(150)
      assert_equal({ here: 50, there: 8 }, plant.search.base, "seed #{seed}")
      plant.outcomes
    end
    assert_equal [:reverted], outcomes.uniq
  end

  def test_each_step_is_tried_once_and_then_there_is_rest
    plant = Plant.new(values: { here: 8 }, ranges: { here: 1..16 })
    plant.run(200)
    assert_equal [[8, 6], [8, 10]], plant.search.history.map { |step| [step.from, step.to] }
    assert_equal 1, plant.lines.grep(/nothing left to try: here 8 stays/).size
  end

  def test_what_helps_is_kept_and_what_harms_is_put_back
    plant = Plant.new(values: { quantum_ms: 100 }, ranges: { quantum_ms: 75..125 })
    plant.quantum_gain = 1.0 # the longer, the worse
    plant.run(100)
    down, up = plant.search.history
    assert_equal [100, 75, :kept], [down.from, down.to, down.outcome]
    assert_match(/\Ap99 of GET \/ \S+ -> \S+ ms is better\z/, down.reason)
    assert_operator down.after["GET /"][:p99_ms], :<, down.before["GET /"][:p99_ms]
    assert_nil up, "back is not tried again"
    assert_equal({ quantum_ms: 75 }, plant.values)

    plant = Plant.new(values: { quantum_ms: 100 }, ranges: { quantum_ms: 100..125 })
    plant.quantum_gain = 1.0
    plant.run(100)
    assert_equal [:reverted], plant.outcomes
    assert_match(/p99 of GET \/ .* is worse/, plant.search.history.first.reason)
    assert_equal({ quantum_ms: 100 }, plant.values)
  end

  def test_one_knob_and_one_step_at_a_time
    plant = Plant.new(values: { threads: 3, quantum_ms: 100 }, ranges: { quantum_ms: 10..200, threads: 1..16 })
    settings = plant.run(300)
    settings.each_cons(2) do |before, after|
      assert_operator before.keys.count { |name| before[name] != after[name] }, :<=, 1
      assert_operator (before[:threads] - after[:threads]).abs, :<=, [before[:threads] / 4, 1].max + 1
    end
    assert(settings.all? { |setting| (1..16).cover?(setting[:threads]) && (10..200).cover?(setting[:quantum_ms]) })
  end

  def test_a_harmful_step_is_not_waited_for
    plant = Plant.new(values: { quantum_ms: 100 }, ranges: { quantum_ms: 100..125 }, windows: 8)
    plant.quantum_gain = 3.0
    plant.run(8)
    assert_equal({ quantum_ms: 125 }, plant.values)
    plant.run(3) # one that counts for nothing and two
    assert_equal({ quantum_ms: 100 }, plant.values)
  end

  def test_too_few_works_move_nothing
    plant = Plant.new(samples: 100)
    plant.run(100) { { count: 99 } }
    assert_empty plant.lines
    plant.run(5)
    assert_equal({ threads: 4 }, plant.values)
    plant.run(11) { { count: 3 } } # in the middle of a step
    assert_equal({ threads: 5 }, plant.values)
    assert_equal [[:abandoned, "too little work to tell"]], plant.search.history.map { |step| [step.outcome, step.reason] }
  end

  # The harm itself keeps such a step from being judged: it was tried again and again, most of the time.
  def test_a_step_under_which_too_little_is_done_is_not_tried_again
    plant = Plant.new(values: { threads: 4 }, ranges: { threads: 1..4 }, samples: 100)
    plant.gvl_s, plant.delay_s = 0.005, 0.345
    plant.run(100) # 114 works a window, 86 with a thread less
    assert_equal [[4, 3, :abandoned]], plant.search.history.map { |step| [step.from, step.to, step.outcome] }
    assert_equal 1, plant.lines.grep(/nothing left to try: threads 4 stays/).size
  end

  def test_a_step_that_came_as_work_became_scarce_is_tried_again
    plant = Plant.new(values: { threads: 4 }, ranges: { threads: 3..4 })
    plant.run(5)
    plant.run(30) { { count: 3 } }
    plant.run(50)
    assert_equal [[3, :abandoned], [3, :reverted]], plant.search.history.map { |step| [step.to, step.outcome] }
  end

  def test_a_backlog_and_failures_speak_against_a_step_that_makes_work_look_faster
    { { backlog: 20.0 } => /backlog 2 -> 20 is worse/, { failed: 300 } => /failed work 0 -> 0\.\d+ of all is worse/ }.each do |harm, reason|
      plant = Plant.new(values: { quantum_ms: 100 }, ranges: { quantum_ms: 75..100 })
      plant.quantum_gain = 1.0
      calm = { backlog: 2.0, failed: 0 }
      30.times { plant.step(**calm, **(plant.values[:quantum_ms] == 100 ? {} : harm)) }
      assert_equal [:reverted], plant.outcomes
      assert_match reason, plant.search.history.first.reason
    end
  end

  def test_what_others_set_is_where_it_goes_on
    plant = Plant.new
    plant.run(6)
    assert_equal({ threads: 4 }, plant.values)
    plant.step(values: { threads: 9 })
    assert_equal({ threads: 9 }, plant.search.base)
    assert_equal [:abandoned], plant.outcomes
    plant.run(5)
    assert_equal({ threads: 7 }, plant.values)
  end

  def test_what_others_set_for_work_that_waits_for_a_lock_is_no_other_work
    plant = locked(0.004, 3)
    plant.run(5)
    plant.step(values: { threads: 8 })
    plant.run(100)
    assert_empty plant.lines.grep(/the work has changed/)
  end

  # Of two knobs, while a step of the other one is being tried: it hasn't proved itself.
  def test_what_others_set_keeps_no_step_of_another_knob
    [:step, :stop].each do |what|
      plant = Plant.new(values: { here: 100, there: 8 }, ranges: { here: 50..200, there: 8..8 })
      plant.run(5)
      assert_equal({ here: 75, there: 8 }, plant.values)
      by_hand = { here: 75, there: 5 }
      left = what == :step ? plant.step(values: by_hand) : plant.search.stop(by_hand)
      assert_equal({ here: 100, there: 5 }, left)
      assert_equal [:abandoned], plant.outcomes
      assert_equal({ here: 100, there: 5 }, plant.search.base) if what == :step
    end
  end

  def test_a_knob_that_does_not_obey_is_left_alone_after_a_while
    plant = Plant.new
    settings = Array.new(200) { plant.step(values: { threads: 5 }) }
    assert_equal 2, settings.chunk(&:itself).count { |setting, _| setting != { threads: 5 } }
    assert_equal 1, plant.lines.grep(/nothing left to try/).size
  end

  def test_work_that_changes_ends_a_step_without_a_word_on_it
    plant = Plant.new
    plant.run(8)
    plant.gvl_s, plant.delay_s = 0.02, 0.001
    plant.run(3)
    assert_equal({ threads: 5 }, plant.values, "far worse: put back, whatever it is from")
    plant.run(3) # one that counts for nothing and two
    assert_equal [[:abandoned, "the work changed meanwhile"]], plant.search.history.map { |step| [step.outcome, step.reason] }
  end

  # What waits for a lock is suspended, for longer with more threads: each step makes the work look like other work.
  def test_work_that_waits_for_a_lock_is_no_other_work_with_every_step
    [0.0, 0.002, 0.004, 0.01].product([2, 3, 5, 8], [1, 2, 3]).each do |gvl_s, threads, seed|
      plant = locked(gvl_s, threads, seed)
      settings = plant.run(200)
      trace = plant.lines.join("\n")
      assert_match(/\Anothing left to try/, plant.lines.last, trace)
      assert_empty plant.outcomes - %i[kept reverted], trace
      assert_empty plant.lines.grep(/the work has changed/)
      tried = plant.search.history.map { |step| [step.from, step.to] }
      assert_equal tried.uniq, tried
      assert_equal plant.search.base, settings.last
    end
  end

  def test_a_harmful_step_on_work_that_waits_for_a_lock_is_not_waited_for
    plant = locked(0.004, 2)
    settings = plant.run(200)
    assert_equal [[2, 1, :reverted], [2, 3, :reverted]], plant.search.history.map { |step| [step.from, step.to, step.outcome] }
    assert_equal [3, 3], [1, 3].map { |threads| settings.count({ threads: }) }, "of each the one that counts for nothing and two"
  end

  def test_fewer_threads_for_a_lock_are_kept_though_the_work_looks_other_then
    plant = locked(0.0, 2)
    plant.run(200)
    assert_equal [[2, 1, :kept]], plant.search.history.map { |step| [step.from, step.to, step.outcome] }
  end

  def test_work_that_waits_for_a_lock_and_changes_is_noticed_at_rest_and_in_a_step
    [100, 7].each do |windows|
      plant = locked(0.004, 3)
      plant.run(windows)
      threads = plant.search.base[:threads]
      plant.delay_s = 0.08
      plant.run(9)
      assert_equal 1, plant.lines.grep(/the work has changed/).size, plant.lines.join("\n")
      assert_equal threads, plant.search.base[:threads]
      plant.run(100)
      assert_operator plant.search.base[:threads], :>, threads, plant.lines.join("\n")
    end
  end

  def test_much_more_work_is_other_work_and_one_odd_window_is_not
    plant = Plant.new(values: { here: 8 }, ranges: { here: 1..16 })
    plant.run(100)
    tried = plant.search.history.size
    plant.run(1) { { count: 100_000 } }
    plant.run(20)
    assert_equal tried, plant.search.history.size
    plant.run(30) { { count: 100_000 } }
    assert_operator plant.search.history.size, :>, tried
    assert_match(/works come a second, not/, plant.lines.grep(/the work has changed/).first)
  end

  def test_stopped_in_a_step_it_leaves_what_proved_best
    plant = Plant.new
    plant.run(7)
    assert_equal({ threads: 4 }, plant.values)
    assert_equal({ threads: 5 }, plant.search.stop(plant.values))
    plant.run(7)
    assert_equal({ threads: 9 }, plant.search.stop({ threads: 9 }), "what somebody else has set stays")
  end

  def test_one_odd_window_of_eight_is_forgiven_and_of_five_is_not
    { 5 => :same, 8 => :better }.each do |windows, verdict|
      before, after = [100.0, 80.0].map { |p99_ms| Array.new(windows) { |number| window(p99_ms + number) } }
      assert_equal :better, Headway::Autotune::Comparison.new(before, after).verdict
      assert_equal verdict, Headway::Autotune::Comparison.new(before, [*after.drop(1), window(300.0)]).verdict, windows
      assert_equal :worse, Headway::Autotune::Comparison.new(after, before).verdict
      assert_equal :same, Headway::Autotune::Comparison.new(before, before.map { |made| window(made.classes["a"].p99_s * 920) }).verdict
    end
  end

  def test_a_class_that_becomes_rare_or_vanishes_is_worse_off
    before, after = [[100.0, { "b" => 50 }], [50.0, { "b" => 5 }]].map { |p99_ms, others| Array.new(5) { window(p99_ms, **others) } }
    { after => /\Ab 5 -> 0\.5 a second is worse\z/, Array.new(5) { window(50.0) } => /\Ab 5 -> 0 a second is worse\z/ }.each do |windows, reason|
      comparison = Headway::Autotune::Comparison.new(before, windows)
      assert_equal :worse, comparison.verdict
      assert_match reason, comparison.reason
    end
    assert_equal :better, Headway::Autotune::Comparison.new(after, Array.new(5) { window(20.0) }).verdict, "it was rare before"
  end

  def test_history_is_bounded
    plant = Plant.new
    1.upto(700) { |number| plant.gvl_s = number.odd? ? 0.002 : 0.02; plant.run(9) }
    assert_operator plant.search.history.size, :<=, 200
  end

  private

  def locked(gvl_s, threads, seed = 1)
    plant = Plant.new(values: { threads: threads }, seed: seed)
    plant.gvl_s, plant.delay_s, plant.lock_s = gvl_s, 0.0, 0.01
    plant
  end

  # @param others [Hash{String => Integer}] works of further classes
  def window(p99_ms, **others)
    kind = Headway::Autotune::Kind.new(count: 500, p99_s: p99_ms / 1000, running_s: 0.001, suspended_s: 0.01)
    classes = { "a" => kind, **others.transform_values { |count| kind.with(count:) } }
    Headway::Autotune::Window.new(at: Time.at(0), seconds: 10, classes: classes)
  end
end
