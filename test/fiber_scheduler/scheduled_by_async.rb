# frozen_string_literal: true

require "fiber_scheduler/scheduled"

# The same under Async with Headway's pool, for tests that include {Scheduled}.
module ScheduledByAsync
  def scheduled(**)
    value = error = nil
    looping do
      Fiber.schedule do
        value = yield
      rescue Exception => error
        nil
      end
    end
    raise error if error

    value
  end

  def looping(**)
    require "headway/async"
    Thread.new do
      Thread.current.report_on_exception = false
      Fiber.set_scheduler(scheduler = Async::Scheduler.new)
      refute_nil scheduler.instance_variable_get(:@worker_pool)
      yield scheduler
    end.join
  end
end
