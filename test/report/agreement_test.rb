# frozen_string_literal: true

require "harness/recorder_test"
require "report/forms"
require "report/proto_decoder"
require "report/leb128"
require "json"

# Programs nobody chose, recorded: what the analysis says fits together, and every report says the same.
class AgreementTest < Harness::RecorderTest
  include ReportForms

  STATES = %i[running_s ready_s suspended_s].freeze

  # Threads that compute, sleep, queue, lock, mark, collect, start others, end and are killed, in an order of the seed's.
  PROGRAM = <<~'RUBY'
    seed, policy, cut = ARGV
    chance = Random.new(Integer(seed))
    Headway.start(policy: policy.to_sym, quantum_ms: 10)
    Headway::Recorder.start(file: FILE)
    lock, queue = Mutex.new, Queue.new
    step = lambda do |random|
      case random.rand(8)
      when 0, 1 then random.rand(20_000).times { |number| number.to_s }
      when 2 then sleep(random.rand * 0.004)
      when 3 then lock.synchronize { random.rand(2_000).times { |number| number * number } }
      when 4 then queue << 1
      when 5 then queue.pop(timeout: 0.003)
      when 6 then Headway.mark("work #{random.rand(3)}") { Headway.mark("part") { random.rand(5_000).times(&:to_s) } }
      when 7 then random.rand(10).zero? ? GC.start : Thread.new { Thread.pass }.join
      end
    end
    threads = Array.new(chance.rand(2..9)) do |index|
      random = Random.new(chance.rand(1 << 30))
      Thread.new { random.rand(15..40).times { step.(random) } }.tap { |thread| thread.name = "t#{index}" if index.odd? }
    end
    threads.first.kill if chance.rand(2).zero?
    threads.each(&:join)
    cut ? Process.kill(:KILL, Process.pid) : Headway::Recorder.stop
  RUBY

  %w[observe fair quantum].each_with_index do |policy, number|
    define_method("test_a_program_under_#{policy}") do
      seed = Integer(ENV.fetch("SEED", rand(1_000_000).to_s))
      run = program(PROGRAM, seed.to_s, policy, *("cut" if number == 1))
      assert number == 1 || run.success?, run
      trace = Headway::Trace.open(file, lanes: true)
      @what = "SEED=#{seed}, #{policy}"
      times_fit_together(trace.to_h)
      lanes_agree(trace)
      reports_agree(trace)
    end
  end

  private

  # Sums of up to some hundred numbers that were integers.
  def assert_same(expected, actual, what)
    assert_in_delta expected, actual, 1e-6, "#{@what}: #{what}"
  end

  def times_fit_together(data)
    data[:threads].each do |thread|
      assert_same thread[:end_s] - thread[:start_s], thread.values_at(:running_s, :ready_s, :suspended_s).sum, thread
      assert_same thread[:ready_s], thread[:waited_for].sum { |part| part[:s] }, thread
      assert_operator thread[:wait][:total_s], :<=, thread[:ready_s] + 1e-9, @what
      refute(thread[:waited_for].any? { |part| part[:thread] == thread[:id] }, "#{@what}: #{thread} waited for itself")
    end
    process = data[:processes].first
    STATES.each { |key| assert_same data[:totals][key], data[:threads].sum { |thread| thread[key] }, key }
    assert_same process[:end_s] - process[:start_s], data[:totals][:running_s] + data[:totals][:idle_s], "the GVL is held once"
    assert_operator data[:totals][:idle_s], :>=, 0.0, @what
    assert_same data[:totals][:wait][:total_s], data[:threads].sum { |thread| thread[:wait][:total_s] }, "waits"
    assert_equal data[:totals][:wait][:count], data[:wait_histogram].sum { |bucket| bucket[:count] }, @what
    assert_operator data[:blame][:weight_s], :<=, data[:totals][:ready_s] + 1e-6, "#{@what}: blamed for more than was waited"
    assert_same data[:blame][:weight_s], data[:blame][:stacks].sum { |stack| stack[:weight_s] }, "blame"
    assert_operator data[:work].sum { |work| work[:ready_s] }, :<=, data[:totals][:ready_s] + 1e-6, @what
  end

  # A lane's boundaries are rounded to 100 ns each.
  def lanes_agree(trace)
    trace.lanes.each do |lane|
      times = [0] * 4
      Leb128.numbers(lane[:bytes]).each { |number| times[number & 3] += number >> 2 }
      thread = trace.to_h[:threads][lane[:thread]]
      slack = 1e-7 * (lane[:segments] + 1)
      STATES.each_with_index { |key, state| assert_in_delta thread[key], times[state] / 1e7, slack, "#{@what}: #{key}" }
    end
  end

  def reports_agree(trace)
    data = JSON.parse(report(:json, trace), symbolize_names: true)
    page = JSON.parse(report(:html, trace)[%r{id="headway-data"[^>]*>(.*?)</script>}m, 1], symbolize_names: true)
    assert_equal data, page.except(:lanes, :gc_lanes), @what
    %i[text markdown].each { |form| assert_includes report(form, trace).delete("`\\"), data[:headline].delete("`"), @what }
    collapsed = report(:collapsed, trace).lines.sum { |line| line[/\d+$/].to_i } / 1e6
    # Each is rounded to microseconds, and one at the least.
    assert_in_delta data[:blame][:weight_s], collapsed, 1e-6 * (data[:blame][:stacks].size + 1), "#{@what}: collapsed"
    firefox_agrees(data, JSON.parse(report(:firefox, trace)))
    perfetto_agrees(data, ProtoDecoder.by_itself(report(:perfetto, trace))[:packet])
  end

  def firefox_agrees(data, profile)
    data[:threads].zip(profile["threads"]) do |thread, shown|
      waits = shown["markers"]["data"].each_index.select { |index| shown["markers"]["data"][index]["type"] == "Wait" }
      spans = waits.sum { |index| shown["markers"]["endTime"][index] - shown["markers"]["startTime"][index] } / 1e3
      assert_in_delta thread[:ready_s], spans, 1e-7 * (waits.size + 10), "#{@what}: Firefox, #{thread}"
    end
    assert_in_delta data[:blame][:weight_s], profile["threads"].sum { |thread| thread["samples"]["weight"].sum } / 1e3, 1e-3, @what
  end

  def perfetto_agrees(data, packets)
    names = packets.flat_map { |packet| packet.dig(:interned_data, 0, :event_names) || [] }
    names = names.to_h { |entry| [entry[:iid], entry[:name].first] }
    sums, begun = Hash.new(0), Hash.new { |hash, key| hash[key] = [] }
    packets.each do |packet|
      event = packet.dig(:track_event, 0) or next
      case event[:type]
      when [1.0] then begun[event[:track_uuid]] << [names[event[:name_iid]], packet[:timestamp].first]
      when [2.0]
        name, from = begun[event[:track_uuid]].pop
        sums[name] += packet[:timestamp].first - from
      end
    end
    slack = 1e-7 * (data[:totals][:switches].values.sum * 4 + 100)
    %w[running ready suspended].each do |state|
      assert_in_delta data[:totals][:"#{state}_s"], sums[state] / 1e9, slack, "#{@what}: Perfetto, #{state}"
    end
  end
end
