# frozen_string_literal: true

require "test_helper"
require "json"
require "tmpdir"
require "headway"
require "headway/cli"
require "trace/encoder"

# Traces of known programs, and the command line on them.
class PredictCase < Minitest::Test
  def setup
    skip Headway.unsupported_reason unless Headway.supported?
    @directory = Dir.mktmpdir("headway-predict")
  end

  def teardown
    FileUtils.remove_entry(@directory) if @directory
  end

  def write(encoder, name = "trace.headway")
    File.join(@directory, name).tap { |path| File.binwrite(path, encoder.bytes) }
  end

  # One thread that does requests one after the other: some GVL, a delay, some GVL; `pause_ms` without work between them.
  #
  # @param queued_ms [Float, nil] for which each stood in a queue before
  # @param blocked_at [String, nil] the method in which each was, called at app/shop.rb:12
  # @param span [Symbol, nil] what they are, as the recorder tells it: :request, :job
  # @yieldreturn [Array(Integer, Float, Float, Float)] of each request: name's number, milliseconds
  def one_thread(count, names: { 1 => "order" }, pause_ms: 0, queued_ms: nil, blocked_at: nil, span: nil, **header)
    encoder = TraceEncoder.new(policy: "observe", **header).strings(names).thread(1, "worker")
    if blocked_at
      encoder.strings(91 => blocked_at, 92 => "<cfunc>", 93 => "Shop#price", 94 => "app/shop.rb")
      encoder.frames(1 => [91, 92, 0], 2 => [93, 94, 12]).stacks(1 => [1, 2])
    end
    at_ms = 0.0
    events = [[ns(0), 1, :known, 2]]
    count.times do |i|
      name, before_ms, delay_ms, after_ms = yield i
      events << [ns(at_ms), 1, :mark_begin, name, span]
      events << [ns(at_ms), 1, :queued, (queued_ms * 1000).round] if queued_ms
      events << [ns(at_ms += before_ms), 1, :suspended]
      events << [ns(at_ms += delay_ms), 1, :ready] << [ns(at_ms), 1, :resumed]
      events << [ns(at_ms), 1, :blocked, 1] if blocked_at
      events << [ns(at_ms += after_ms), 1, :mark_end, name, span]
      events << [ns(at_ms), 1, :suspended] << [ns(at_ms += pause_ms), 1, :ready] << [ns(at_ms), 1, :resumed] if pause_ms.positive?
    end
    events << [ns(at_ms), 1, :known, 2]
    events.each_slice(10_000) { |slice| encoder.events(*slice) }
    encoder.dropped(0, 0).end
  end

  # 6 ms, of which 2 need the GVL.
  def orders(count = 500, name: "trace.headway", **options) = write(one_thread(count, **options) { [1, 1, 4, 1] }, name)

  # Every twentieth is heavy.
  def mixed(**options)
    write(one_thread(1_000, names: { 1 => "light", 2 => "heavy" }, **options) { |i| i % 20 == 0 ? [2, 40, 1, 40] : [1, 0.5, 8, 0.5] })
  end

  def run_cli(*arguments)
    status = nil
    out, err = capture_io { status = Headway::CLI.call(arguments) }
    [status, out, err]
  end

  def json_of(*arguments)
    status, out, err = run_cli(*arguments, "--json")
    assert_equal [0, ""], [status, err]
    JSON.parse(out)
  end

  def assert_bad_usage(words, *arguments)
    status, out, err = run_cli(*arguments)
    assert_equal [2, ""], [status, out]
    assert_equal 1, err.lines.size, err
    assert_match words, err
  end

  private

  def ns(at_ms) = 1_000_000 + (at_ms * 1_000_000).round
end
