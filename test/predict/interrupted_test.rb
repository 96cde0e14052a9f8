# frozen_string_literal: true

require_relative "recorded"
require "timeout"

# A simulation that is not let come to its end.
class InterruptedPredictionTest < PredictCase
  ROUNDS = 100
  LEAK_KIB = 30 # each left its histograms behind

  def test_what_an_interrupted_simulation_took_is_given_back
    workload = Headway::Workload.open(orders)
    interrupt(workload)
    before = resident_kib
    ROUNDS.times { interrupt(workload) }

    assert_operator resident_kib - before, :<, ROUNDS * LEAK_KIB
  end

  private

  def interrupt(workload)
    assert_raises(Timeout::Error) { Timeout.timeout(0.002) { workload.simulate(requests: 1 << 40, warm_up: 0, longest_s: 1_000_000) } }
  end

  def resident_kib = File.read("/proc/self/status")[/VmRSS:\s*(\d+)/, 1].to_i
end
