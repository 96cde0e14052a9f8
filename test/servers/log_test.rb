# frozen_string_literal: true

require "test_helper"
require "headway"
require "headway/integrations/log"

class LogTest < Minitest::Test
  def test_a_line_says_how_long_it_is_about
    assert_equal ["0.05", "0.5", "1", "2.5", "10", "60", "3600"], [0.0501, 0.5003, 1.0004, 2.5001, 9.9601, 60.0007, 3600.001].map { |seconds| said(seconds) }
  end

  private

  def said(seconds)
    lines = []
    log = Headway::Integrations::Log.new(60) { |line| lines << line }
    account = { running: 0.0, ready: 0.0, wait: { count: 0 }, switches: { preempted: 0 } }
    log.send(:say, { at: 5.0, process: account }, { at: 5.0 + seconds, process: account })
    lines[0][/\Aheadway: (\S+) s: GVL held 0 % of it, 0 waits of 0\.00 ms on average, 0 preemptions\z/, 1]
  end
end
