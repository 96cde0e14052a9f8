# frozen_string_literal: true

require "test_helper"
require "headway/model/mva"

# The model against closed forms, against another exact algorithm, and against its bounds.
class MvaTest < Minitest::Test
  MVA = Headway::Model::MVA

  def test_work_that_never_yields_gains_nothing
    [1, 2, 5, 50].each { |threads| assert_in_delta 4, throughput(threads, gvl_s: 0.25), 1e-12 }
  end

  def test_work_that_only_waits_gains_all
    [1, 2, 5, 50].each { |threads| assert_in_delta threads * 4, throughput(threads, delay_s: 0.25), 1e-9 }
  end

  def test_gvl_free_computing_gains_as_much_as_there_are_cores
    [1, 2, 3, 8, 200].each { |threads| assert_in_delta [threads, 3].min * 4, throughput(threads, free_cpu_s: 0.25, cores: 3), 1e-9 }
  end

  # R = S (1 + S / (S + Z)), X = 2 / (Z + R)
  def test_two_threads
    assert_in_delta 2 / (1 + (0.4**2)), throughput(2, gvl_s: 0.4, delay_s: 0.6), 1e-12
  end

  # The machine repairman: X = (1 - p0) / S with p0 = 1 / sum of N! / (N - k)! (S / Z)^k
  def test_machine_repairman
    [1, 3, 10, 40].each do |threads|
      sum = (0..threads).sum { |k| ((threads - k + 1)..threads).inject(1, :*) * (0.2 / 1.3)**k }
      assert_in_delta (1 - (1 / sum)) / 0.2, throughput(threads, gvl_s: 0.2, delay_s: 1.3), 1e-9
    end
  end

  # What Amdahl's law gets wrong: it says 2.5.
  def test_three_quarters_yielded_and_five_threads
    assert_in_delta 3.56, throughput(5, gvl_s: 0.25, delay_s: 0.75), 0.01
  end

  def test_agrees_with_convolution
    random = Random.new(4)
    100.times do
      gvl_s, free_cpu_s, delay_s = Array.new(3) { random.rand.round(2) + 0.01 }
      threads, cores = random.rand(1..20), random.rand(1..4)
      assert_in_epsilon convolution(threads, gvl_s, free_cpu_s, delay_s, cores),
                        throughput(threads, gvl_s:, free_cpu_s:, delay_s:, cores:), 1e-6
    end
  end

  def test_agrees_with_convolution_on_large_machines
    [[50, 32], [100, 64], [200, 128]].each do |threads, cores|
      [[0.0, 5.0, 3.0], [0.1, 5.0, 3.0], [0.02, 5.0, 0.0]].each do |gvl_s, free_cpu_s, delay_s|
        assert_in_epsilon convolution(threads, gvl_s, free_cpu_s, delay_s, cores),
                          throughput(threads, gvl_s:, free_cpu_s:, delay_s:, cores:), 1e-9
      end
    end
  end

  def test_stays_within_its_bounds_and_never_falls
    random = Random.new(5)
    50.times do
      demands = demands(gvl_s: random.rand, free_cpu_s: random.rand, delay_s: random.rand)
      last = 0
      [1, 2, 3, 5, 10, 30, 100].each do |threads|
        per_s = MVA.throughput(demands, threads, 2)
        assert_operator per_s, :<=, [threads / demands.total_s, 1 / demands.gvl_s, 2 / demands.free_cpu_s].min + 1e-9
        assert_operator per_s, :>=, last - 1e-9
        last = per_s
      end
    end
  end

  def test_processes_have_a_gvl_each_but_share_the_cores
    demands = demands(gvl_s: 1.0)
    assert_in_delta 1, MVA.predict(demands, 4, cores: 2).per_s, 1e-9
    assert_in_delta 2, MVA.predict(demands, 4, cores: 2, processes: 2).per_s, 1e-9
    assert_in_delta 2, MVA.predict(demands, 4, cores: 2, processes: 5).per_s, 1e-9
    assert_in_delta 10, MVA.predict(demands, 4, cores: 2, processes: 5).latency_s, 1e-9
  end

  def test_calls_under_way_are_the_threads
    prediction = MVA.predict(demands(gvl_s: 0.1, free_cpu_s: 0.2, delay_s: 0.3), 7, cores: 2)
    assert_in_delta 7, prediction.per_s * prediction.latency_s, 1e-9
  end

  def test_the_knee
    demands = demands(gvl_s: 1.0, free_cpu_s: 1.0, delay_s: 2.0)
    assert_in_delta 0.75, demands.yield_fraction
    assert_in_delta 4, demands.knee_threads
    assert_equal Float::INFINITY, demands(delay_s: 1.0).knee_threads
    assert_in_delta 6, demands.core_knee_threads(3)
    assert_equal Float::INFINITY, demands(delay_s: 1.0).core_knee_threads(3)
    assert_in_delta 8, demands.scaled_to(8).total_s
    assert_in_delta 0.75, demands.scaled_to(8).yield_fraction
  end

  private

  def demands(gvl_s: 0.0, free_cpu_s: 0.0, delay_s: 0.0) = Headway::Model::Demands.new(gvl_s:, free_cpu_s:, delay_s:)

  def throughput(threads, cores: 1, **demands) = MVA.throughput(demands(**demands), threads, cores)

  # Buzen's algorithm: X = G(n - 1) / G(n), G the convolution of what each station alone would make of k threads.
  def convolution(threads, gvl_s, free_cpu_s, delay_s, cores)
    stations = [->(_) { gvl_s }, ->(k) { free_cpu_s / [k, cores].min }, ->(k) { delay_s / k }]
    sums = stations.map { |demand| (1..threads).inject([1.0]) { |terms, k| [*terms, terms.last * demand.call(k)] } }
    sums = sums.inject { |one, other| (0..threads).map { |n| (0..n).sum { |k| one[k] * other[n - k] } } }
    sums[threads - 1] / sums[threads]
  end
end
