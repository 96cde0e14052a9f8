# frozen_string_literal: true

require "test_helper"
require "tmpdir"
require "harness/timing"
require "headway"

# Fibers under Headway's scheduler, on a thread of their own.
module Scheduled
  include Harness::Timing

  # Runs the block in a fiber and waits until every fiber has ended.
  # @return what the block returns
  # @raise what it, or the first fiber that failed, raised
  def scheduled(**options)
    value = nil
    looping(**options) { Fiber.schedule { value = yield } }
    value
  end

  # Runs the block on the loop's own fiber.
  def looping(**options)
    scheduler = Headway::FiberScheduler.new(**options)
    thread = Thread.new do
      Thread.current.report_on_exception = false
      Fiber.set_scheduler(scheduler)
      yield scheduler
    end
    thread.join
    scheduler
  end
end
