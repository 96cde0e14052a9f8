# frozen_string_literal: true

require "control/controlled_process"
require "headway/version"

# docs/control-protocol.md: what is asked and answered.
class ControlProtocolTest < Minitest::Test
  include ControlledProcesses

  # What Headway.stats has beyond the protocol.
  MORE = %i[waited_for caused].freeze

  def test_ping
    path = sleeper.socket
    answer = ask(path, { ping: true })

    assert_equal [1, Headway::VERSION, RUBY_VERSION, sleeper.pid], answer[:ping].values_at(:schema, :headway, :ruby, :pid)
    assert_operator answer[:ping][:wall], :>, 0
    assert_kind_of String, answer[:ping][:command]
  end

  # Nothing has happened since to judge it by: who computes is alone, and who sleeps isn't woken.
  def test_whether_a_thread_is_batch_is_told_as_it_is_now
    program = program(<<~RUBY)
      require "json"
      cpu_s = -> { Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) }
      compute = -> { (stop = cpu_s.call + 0.05) && (nil while cpu_s.call < stop) }
      sleeper = Thread.new { compute.call; sleep }
      sleeper.name = "sleeper"
      sleep 0.01 until sleeper.stop? && Headway.thread(sleeper).stats[:switches][:voluntary].positive?
      sleep 0.1
      ready
      $stdin.gets
      compute.call
      puts JSON.generate([Headway.thread, Headway.thread(sleeper)].flat_map { |thread| [thread.batch?, thread.stats[:batch]] })
      sleep
    RUBY

    refute stats(program.socket)[:threads].find { |row| row[:name] == "sleeper" }[:batch]
    assert_equal [true, true, false, false], JSON.parse(line_of(program))
  end

  def test_statistics_are_those_of_headway_stats
    program = program(<<~RUBY)
      require "json"
      begun = Thread::Queue.new
      worker = Thread.new { begun << true; loop { sleep 0.001 } }
      begun.pop
      worker.name = "worker" # its native thread's, too, as it has begun
      Thread.new { Thread.current.name = "gone" }.join
      Headway.thread(worker).quantum_ms = 2.5
      ready
      $stdin.gets
      loop { sleep 0.002; puts JSON.generate(Headway.stats) }
    RUBY
    asked = stats(program.socket)
    own = JSON.parse(line_of(program), symbolize_names: true)

    assert_empty own.keys - MORE - asked.keys
    assert_empty own[:process].keys - MORE - asked[:process].keys
    assert_equal({ policy: "fair", quantum_ms: 100, preempt: "signal" }, asked.slice(:policy, :quantum_ms, :preempt))
    assert_equal own[:threads].map { |row| row[:name] }.sort, asked[:threads].map { |row| row[:name] }.sort
    own[:threads].zip(asked[:threads]) { |ours, theirs| assert_empty ours.keys - MORE - theirs.keys }
    worker = asked[:threads].find { |row| row[:name] == "worker" }
    assert_equal [true, 1, 2.5], worker.values_at(:alive, :count, :quantum_ms)
    assert_includes %w[running ready suspended], worker[:state]
    assert_equal [false, nil, nil], asked[:threads].find { |row| row[:name] == "gone" }.values_at(:alive, :number, :state)
    assert_equal [0, nil], asked.values_at(:threads_left_out, :recorder)
  end

  def test_times_of_a_thread_add_up
    path = program("3.times { Thread.new { loop { nil } } }; 3.times { Thread.new { loop { sleep 0.001 } } }; ready; sleep").socket
    times = [now]
    before = stats(path)
    times << now
    sleep 0.2
    times << now
    after = stats(path)
    times << now
    by_number = before[:threads].to_h { |row| [row[:number], row] }

    after[:threads].each do |row|
      earlier = by_number.fetch(row[:number])
      passed = %i[running ready suspended].sum { |state| row[state] - earlier[state] }
      assert_includes (times[2] - times[1])..(times[3] - times[0]), passed, row[:name]
    end
  end

  def test_settings_are_changed_together_or_not_at_all
    program = program(<<~RUBY)
      ready
      while $stdin
        puts [Headway.policy, Headway.quantum_ms, Headway.preempt].inspect
        sleep 0.02
      end
    RUBY
    path = program.socket
    said = ->(text) { await("the program sees #{text}") { line_of(program) == text } }

    said['[:fair, 100, :signal]']
    assert_equal({ settings: { policy: "quantum", preempt: "poll", quantum_ms: 2.5 } },
                 ask(path, { set: { policy: "quantum", quantum_ms: 2.5, preempt: "poll" } }))
    said['[:quantum, 2.5, :poll]']
    assert_equal({ policy: "quantum", preempt: "poll", quantum_ms: 2.5 }, ask(path, { get: "settings" })[:settings])
    assert_match(/quantum_ms is 0: /, ask(path, { set: { policy: "fair", quantum_ms: 0 } })[:error])
    assert_equal "quantum", ask(path, { get: "settings" })[:settings][:policy]
    assert_equal 20, ask(path, { set: { "quantum_ms" => "20" } })[:settings][:quantum_ms]
    said['[:quantum, 20, :poll]']
  end

  def test_settings_of_the_program_and_of_a_client_follow_each_other
    program = program("ready; Thread.pass until Headway.quantum_ms == 7; Headway.policy = :quantum; ready; sleep")
    ask(program.socket, { set: { quantum_ms: 7 } })
    await_ready(program)

    assert_equal({ policy: "quantum", preempt: "signal", quantum_ms: 7 }, ask(program.socket, { get: "settings" })[:settings])
  end

  def test_bad_values_get_the_words_of_the_settings
    require "headway/settings"
    path = sleeper.socket
    { quantum_ms: [0, -1, 0.5, 4_294_968, "abc", "", "1_000", " 5", nil, true, [], "9" * 90], policy: ["nope", "Fair", 1, nil],
      preempt: ["nope", "", false] }.each do |name, values|
      values.each do |value|
        error = ask(path, { set: { name => value } }).fetch(:error)
        ours = assert_raises(Headway::SettingError) { Headway::Settings.public_send(name, value) }.message

        assert_equal ours[/: give .*/], error[/: give .*/]
        assert_equal ours, error if value.is_a?(Integer) || (value.is_a?(String) && value.size < 60)
      end
    end
    assert_equal 100, ask(path, { get: "settings" })[:settings][:quantum_ms]
  end

  def test_good_values_of_every_form
    path = sleeper.socket
    { 1 => 1, 4_294_967 => 4_294_967, 1.5 => 1.5, "2.25" => 2.25, "1e1" => 10, 1.0 => 1 }.each do |value, result|
      assert_equal result, ask(path, { set: { quantum_ms: value } })[:settings][:quantum_ms], value.inspect
    end
    assert_equal 100, ask(path, '{"set":{"quantum_ms":1E+2}}')[:settings][:quantum_ms]
  end

  NO_REQUESTS = {
    "" => "it ends too early", "{" => "a name in it has no quotes", "nonsense" => "it is no JSON", "[]" => "it is no object",
    "{}" => "it must have one member", '{"get":"stats","ping":true}' => "it must have one member",
    '{"get":"stats"} x' => "something follows it", '{"get":"sta' => "a string in it is wrong", "{\"get\":\"a\tb\"}" => "a string",
    '{"get":[[[[[]]]]]}' => "nested too deeply", "{\"a\":[#{"1," * 40}1]}" => "too many members", '{"get":01}' => "a number",
    '{"get":"\\ud8"}' => "a string", '{"get" "stats"}' => "has no value", '{"frob":1}' => 'no request is named "frob"',
    '{"get":"frob"}' => 'there is no "frob" to get', '{"get":1}' => "there is no 1 to get", '{"set":{}}' => "nothing to set",
    '{"set":1}' => "set is 1: give an object", '{"set":{"frob":1}}' => 'no setting is named "frob"',
    '{"dump":"relative"}' => 'dump is "relative": give an absolute path', '{"dump":1}' => "dump is 1"
  }.freeze

  def test_what_is_no_request_gets_an_error_and_the_connection_goes_on
    socket = connect(sleeper.socket)
    NO_REQUESTS.each do |line, words|
      socket.write("#{line}\n")
      assert_includes answer(socket)[:error], words, line
    end
    socket.write("{\"ping\":true}\r\n")
    assert answer(socket)[:ping]
  ensure
    socket&.close
  end

  def test_several_requests_in_one_write_are_answered_in_order
    socket = connect(sleeper.socket)
    socket.write("{\"ping\":true}\n{\"get\":\"stats\"}\n{\"get\":\"settings\"}\nx\n")
    assert_equal %i[ping stats settings error], Array.new(4) { answer(socket).keys.first }
    socket.write("\n" * 4000)
    4000.times { assert answer(socket)[:error] }
  ensure
    socket&.close
  end

  def test_dumps
    require "headway"
    assert_match(/no flight recorder runs/, ask(sleeper.socket, { dump: true })[:error])
    program = program(<<~RUBY)
      Headway::Recorder.start(mode: :flight)
      def heavy = loop { 1 + 1 }
      Thread.new { heavy }.name = "cpu"
      Thread.new { loop { sleep 0.001 } }.name = "io"
      Headway.mark("a mark")
      Dir.chdir(#{@directory.inspect})
      ready
      sleep
    RUBY
    await("names and blame") { in_a_dump?(program, /"io"/) && in_a_dump?(program, /"cpu"/) && in_a_dump?(program, /heavy/) }
    dumps = [ask(program.socket, { dump: File.join(@directory, "a \u00e9 dump") }), ask(program.socket, { dump: true })]

    assert_equal [{ dump: File.join(@directory, "a \u00e9 dump") }, { dump: File.join(@directory, "headway-#{program.pid}.headway") }], dumps
    dumps.each { |dump| assert_dump dump[:dump], program.pid }
    assert_match(%r{no dump to /no/such: No such file}, ask(program.socket, { dump: "/no/such" })[:error])
  end

  def assert_dump(file, pid)
    trace = Headway::Trace.open(file).to_h
    names = trace[:threads].map { |thread| thread[:name] }

    assert_equal [pid], trace[:processes].map { |process| process[:pid] }
    assert_empty %w[main cpu io] - names
    assert_match(/heavy/, trace[:blame].to_s)
    assert_match(/a mark/, trace.to_s)
  end

  def test_names_of_threads_of_any_bytes_and_length
    program = program(<<~'RUBY', wait: false)
      names = ["\u00e9\u4e2d", "a\"b\\c", "tab\there", "x" * 300, "bad \xff byte".b.force_encoding("UTF-8")]
      names.each { |name| Thread.new { loop { sleep 0.01 } }.name = name rescue nil }
      ready
      sleep 0.01 until File.exist?("#{ENV["HEADWAY_CONTROL_DIR"]}/go")
      Headway.stats
      ready
      sleep
    RUBY
    await_ready(program)
    await("the native thread's name") { names_in(program).include?("x" * 15) } if RUBY_PLATFORM.include?("linux")
    File.write(File.join(@sockets, "go"), "")
    await_ready(program)
    names = names_in(program)

    assert_empty ["\u00e9\u4e2d", "a\"b\\c", "tab\there", "x" * 95] - names
  end

  private

  def in_a_dump?(program, words)
    Headway::Trace.open(ask(program.socket, { dump: File.join(@directory, "look.headway") })[:dump]).to_h.to_s.match?(words)
  end

  def names_in(program) = stats(program.socket)[:threads].map { |row| row[:name] }
end
