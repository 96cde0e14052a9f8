# frozen_string_literal: true

require "test_helper"
require "headway/trace"
require "tmpdir"
require_relative "encoder"

# Tests with trace files in a directory of their own.
class TraceCase < Minitest::Test
  def setup
    @directory = Dir.mktmpdir("headway-trace")
  end

  def teardown
    FileUtils.remove_entry(@directory)
  end

  def file(content, name = "trace.headway")
    path = File.join(@directory, name)
    File.binwrite(path, content.respond_to?(:bytes) && !content.is_a?(String) ? content.bytes : content)
    path
  end

  def trace_of(*contents)
    Headway::Trace.open(*contents.each_with_index.map { |content, place| file(content, "trace#{place}.headway") })
  end

  # Milliseconds after the clock in the header.
  def ms(number)
    1_000_000 + (number * 1_000_000).round
  end

  # A computing thread that makes another wait, with one of everything.
  def known_trace(**header)
    encoder = TraceEncoder.new(**header)
    encoder.strings(1 => "Report#render", 2 => "app/report.rb", 3 => "request", 4 => "Array#each")
    encoder.thread(1, "main").thread(2, "worker", "pool.rb:12")
    encoder.frames(1 => [1, 2, 17], 2 => [4, 0, 0]).stacks(1 => [2, 1])
    encoder.events([ms(0), 1, :known, 2], [ms(0), 2, :known, 0], [ms(10), 2, :mark_begin, 3], [ms(20), 2, :ready],
                   [ms(50), 1, :blame, 1])
    encoder.events([ms(60), 1, :preempted], [ms(61), 2, :resumed], [ms(64), 2, :gc_start], [ms(66), 2, :gc_end],
                   [ms(68), 2, :mark, 3], [ms(71), 2, :suspended], [ms(72), 1, :resumed], [ms(75), 2, :mark_end, 3],
                   [ms(80), 2, :exited], [ms(100), 1, :known, 2])
    encoder.dropped(5, 2).end
  end
end
