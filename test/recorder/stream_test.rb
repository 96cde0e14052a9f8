# frozen_string_literal: true

require "harness/recorder_test"

# Mode stream: what happened is in the file, however the program ended.
class RecorderStreamTest < Harness::RecorderTest
  STATES = %i[started ready resumed suspended preempted exited known].freeze

  test_under_all = Harness::Modes::ALL.keys

  test_under_all.each do |mode|
    define_method("test_the_events_of_a_known_program_under_#{mode}") do
      recorded(mode) do
        queue = Thread::Queue.new
        napper = Thread.new { 3.times { queue.pop } }
        napper.name = "napper"
        3.times { queue << sleep(0.005) }
        napper.join
      end
      seen = kinds("napper") & STATES
      assert_equal :started, seen.first
      assert_includes kinds("napper"), :exited
      holds = kinds("napper").select { |kind| STATES.include?(kind) }.each_cons(2).select { |before, _| before == :resumed }
      assert_operator holds.size, :>=, 3
      assert_empty holds.map(&:last) - %i[suspended preempted exited], "every hold ends"
    end
  end

  def test_holds_that_the_vms_slice_ended_count_as_preempted
    preempted = -> { Headway.stats[:threads].find { |row| row[:name] == "cpu-0" }&.dig(:switches, :preempted).to_i }
    hog = thread_named("cpu-0", from: recorded(:observe) { beside_cpu_threads(2) { await("a slice's end", pause: 0.05) { preempted.call >= 1 } } })
    assert_operator hog[:switches][:preempted], :>=, 1
    assert_operator hog[:switches][:voluntary], :<=, 2, "it never blocks but to end"
  end

  def test_states_add_up_and_every_wait_is_assigned
    trace = recorded(:fair_signal) { beside_cpu_threads(3) { beside_io_threads(3) { sleep 0.4 } } }
    assert_equal 7, trace[:threads].count { |row| row[:running_s].positive? && row[:name] =~ /cpu|io|main/ }
    trace[:threads].each do |row|
      assert_in_delta row[:end_s] - row[:start_s], row[:running_s] + row[:ready_s] + row[:suspended_s], 1e-6
      assert_in_delta row[:ready_s], row[:waited_for].sum { |entry| entry[:s] }, 1e-6
    end
    process = trace[:processes].first
    assert_equal [nil, 0, Process.pid], process.values_at(:damage, :dropped, :pid)
    assert_equal RUBY_VERSION, process[:ruby]
  end

  def test_the_trace_agrees_with_the_statistics
    rows = nil
    trace = recorded(:fair_signal) do
      beside_cpu_threads(2) { beside_io_threads(2, pause: 0.001) { sleep 0.3 } }
      rows = Headway.stats[:threads].reject { |row| row[:alive] }
    end
    rows.each do |row|
      next unless row[:name] =~ /\A(cpu|io)/

      traced = thread_named(row[:name], from: trace)
      assert_in_delta row[:ready], traced[:ready_s], 0.02
      assert_in_delta row[:running], traced[:running_s], 0.02
    end
  end

  def test_how_often_a_cpu_quota_was_used_up
    stat = File.join(@directory, "cpu.stat")
    File.write(stat, "nr_periods 100\nnr_throttled 40\n")
    quota = Headway.const_get(:Quota).new(0.5, stat)
    quota.class.singleton_class.prepend(Module.new { define_method(:find) { |*| quota } })

    assert_equal({ periods: 40, exhausted: 30 }, recorded { File.write(stat, "nr_periods 140\nnr_throttled 70\n") }[:processes].first[:quota])
  end

  def test_threads_have_names_and_sites
    stop = false
    trace = recorded do
      living = Thread.new { sleep 0.001 until stop }
      living.name = "living"
      ended = Thread.new { Thread.current.name = "ended" }
      ended.join
      spaced = Thread.new { Thread.current.name = "srv tp 001" }
      spaced.join
      Thread.new { sleep 0.001 }.join
      sleep 0.01
      Headway::Recorder.stop
      stop = true
      living.join
    end
    names = trace[:threads].map { |row| row[:name] }
    %w[main living ended].each { |name| assert_includes names, name }
    ["ended", "srv tp 001"].each { |name| assert_match(/\A\S*stream_test\.rb:\d+\z/, thread_named(name, from: trace)[:site]) }
    assert names.any? { |name| name =~ /stream_test\.rb:\d+\z/ }, names.inspect
  end

  def test_garbage_collections_are_spans
    trace = recorded do
      5.times { GC.start }
      Array.new(50_000) { Object.new.to_s }
    end
    assert_operator trace[:gc][:count], :>=, 5
    assert_operator trace[:gc][:total_s], :>, 0
    assert_operator trace[:gc][:total_s], :<, trace[:wall_s]
  end

  ENDINGS = {
    "its last line" => ["", 0], "exit" => ["exit 3", 3], "an exception" => ["raise 'oops'", 1],
    "a signal" => ["Process.kill(:TERM, Process.pid); sleep", 15], "an exit in a thread" => ["Thread.new { exit 4 }; sleep", 4],
    "threads that go on" => ["3.times { Thread.new { loop { } } }; sleep 0.1", 0]
  }.freeze

  ENDINGS.each do |name, (code, status)|
    define_method("test_a_program_that_ends_with_#{name.tr(" ", "_")}") do
      run = program(<<~RUBY)
        Headway.start(policy: :fair, record: FILE)
        thread = Thread.new { 20.times { sleep 0.001 } }
        thread.name = "worker"
        Headway.mark("work") { thread.join }
        #{code}
      RUBY
      assert_equal status, run.status.exitstatus || run.status.termsig, run
      trace = analysis
      assert_nil trace[:processes].first[:damage]
      assert_operator thread_named("worker", from: trace)[:wait][:count], :>=, 20
      assert_equal ["work"], trace[:marks].map { |mark| mark[:name] }
    end
  end

  def test_it_can_be_read_while_it_is_written
    with_headway(:observe) do
      Headway::Recorder.start(file: file)
      100.times { Headway.mark("early") }
      await("the writer") { analysis[:processes].first[:events] >= 100 }
      assert_match(/cut short|end/i, analysis[:processes].first[:damage].to_s)
    end
  end

  # They may be a thousand. Whoever is renamed is told of again.
  def test_threads_of_which_nothing_new_is_to_be_told_are_not_told_again
    release = Queue.new
    with_headway(:observe) do
      sleepers = Array.new(20) { |number| Thread.new { release.pop }.tap { |thread| thread.name = "sleeper #{number}" } }
      Headway::Recorder.start(file: file)
      3.times do |round|
        sleepers.first.name = "renamed #{round}, which is more than Linux keeps"
        # Names are written once a second: that of who runs.
        await("names, for the #{round + 1}. time") do
          Headway.mark("round") { sleep 0.1 }
          thread_records.tally.values.max.to_i > round
        end
      end
      Headway::Recorder.stop
      sleepers.each { release << nil }
      sleepers.each(&:join)
    end
    names = analysis[:threads].map { |thread| thread[:name] }
    assert_includes names, "renamed 2, which is more than Linux keeps"
    assert_equal 1, names.count("sleeper 7")
    told = thread_records.tally
    assert_operator told.values.max, :>=, 3
    assert_operator told.values.sum, :<=, 2 * told.size + 6
  end

  private

  # The numbers that the blocks of threads name.
  def thread_records
    bytes = File.binread(file)
    place, numbers = 12, []
    while place + 12 <= bytes.bytesize
      type, length = bytes[place, 8].unpack("VV")
      break if place + 12 + length > bytes.bytesize # it is being written

      numbers.concat(numbers_in(bytes[place + 12, length].bytes)) if type == 3
      place += 12 + length
    end
    numbers
  end

  def numbers_in(bytes)
    numbers = []
    until bytes.empty?
      numbers << varint(bytes)
      2.times { bytes.shift(varint(bytes)) } # name and site
    end
    numbers
  end

  def varint(bytes)
    shift = value = 0
    loop do
      byte = bytes.shift
      value |= (byte & 0x7f) << shift
      return value if byte < 0x80

      shift += 7
    end
  end
end
