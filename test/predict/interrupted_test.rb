# frozen_string_literal: true

require_relative "recorded"
require "harness/vm_fixture"
require "timeout"

# A simulation that is not let come to its end.
class InterruptedPredictionTest < PredictCase
  ROUNDS = 50
  HISTOGRAMS = 30_000 # bytes that a simulation has taken when it is interrupted, at the least

  def test_what_an_interrupted_simulation_took_is_given_back
    skip "malloc here can't be asked" unless VMFixture.malloced_bytes
    workload = Headway::Workload.open(orders)
    interrupt(workload)
    before = kept

    interrupt(workload)

    assert_operator kept - before, :<, ROUNDS * HISTOGRAMS / 5
  end

  private

  def interrupt(workload)
    ROUNDS.times do
      assert_raises(Timeout::Error) { Timeout.timeout(0.002) { workload.simulate(requests: 1 << 40, warm_up: 0, longest_s: 1_000_000) } }
    end
  end

  # What malloc gave out and was not given back, by the core or by Ruby: not what the process has of the system, which depends on how
  # malloc lays things out.
  def kept
    GC.start
    VMFixture.malloced_bytes
  end
end
