# frozen_string_literal: true

require "fiber_scheduler/scheduled"

# Who closes the loop, and what goes on then.
class FiberSchedulerEndingsTest < Minitest::Test
  include Scheduled

  def test_the_loop_is_not_an_enumerators_because_the_first_fiber_was_started_in_one
    [Headway::FiberScheduler.new, nil].each do |made_elsewhere|
      %i[run schedule close].each do |first|
        said = []
        Thread.new { begin_in_an_enumerator(made_elsewhere || Headway::FiberScheduler.new, first, said) }.join
        assert_equal [:first, *(:second if first == :schedule), :closed], said
        made_elsewhere &&= Headway::FiberScheduler.new
      end
    end
  end

  def test_an_exit_in_an_ensure_clause_keeps_nobody_from_being_told
    ending = "ensure sleep 0.001; puts number; exit 10 + number if number.odd?; end"
    ["Fiber.schedule { sleep 0.01; exit 3 }", "raise IOError"].each do |last|
      result = process("5.times { |number| Fiber.schedule { begin sleep; #{ending} } }\n#{last}")
      assert_equal [11, "0\n1\n2\n3\n4\n"], [result.status.exitstatus, result.out], result.to_s
    end
  end

  def test_an_exit_in_a_thread_goes_on_when_all_fibers_of_it_have_ended
    result = process(<<~RUBY)
      Thread.new do
        Thread.current.report_on_exception = false
        Fiber.set_scheduler(Headway::FiberScheduler.new)
        Fiber.schedule { begin sleep; ensure exit 5; end }
        Fiber.schedule { begin sleep; ensure sleep 0.01; puts "ended"; end }
        raise IOError
      end
      Fiber.schedule { sleep 10 }
    RUBY
    assert_equal [5, "ended\n"], [result.status.exitstatus, result.out], result.to_s
  end

  # CRuby keeps the thread's exception where a rescue clause on the loop's fiber clears it.
  def test_what_is_rescued_on_the_loop_while_it_closes_loses_no_exception_of_the_thread
    return unless Headway.supported?

    stalls = 0
    rescues = ->(_) { (stalls += 1) && Integer("none") rescue 0 }
    error = assert_raises(IOError) do
      looping(stall_ms: 5, on_stall: rescues) do
        Fiber.schedule { ensured(-> { sleep(0.001) && busy(0.1) && sleep(0.001) }) { sleep } }
        raise IOError, "body"
      end
    end
    assert_equal "body", error.message
    assert_operator stalls, :>, 0
  end

  def test_a_fiber_that_fails_as_it_is_stopped_does_not_replace_what_ended_the_thread
    error = assert_raises(IOError) do
      looping do
        Fiber.schedule { ensured(-> { sleep(0.001) && raise("its end") }) { sleep } }
        raise IOError, "body"
      end
    end
    assert_equal "body", error.message
  end

  def test_a_second_interrupt_ends_the_close_and_gives_everything_back
    interrupt = Class.new(Interrupt)
    scheduler = Headway::FiberScheduler.new
    closing = Queue.new
    thread = Thread.new do
      Thread.current.report_on_exception = false
      Fiber.set_scheduler(scheduler)
      Fiber.schedule { ensured(-> { (closing << true) && sleep }) { sleep } }
      raise IOError, "body"
    end
    closing.pop
    await("the loop to wait") { thread.status == "sleep" }
    thread.raise(interrupt, "again")
    assert_raises(interrupt) { thread.value }
    assert_predicate scheduler, :closed?
    assert_predicate scheduler.worker_pool, :closed? if scheduler.worker_pool
  end

  # Neither a fiber of the loop nor another thread can wait for all of them.
  def test_who_closes_it_where_that_is_not_possible_takes_nobody_s_loop
    [->(scheduler) { scheduler.close }, ->(_) { Fiber.set_scheduler(nil) }, ->(scheduler) { elsewhere { scheduler.close } }].each do |close|
      said = []
      looping do |scheduler|
        Fiber.schedule do
          sleep 0.02 while said.empty?
          said << :ended
        end
        Fiber.schedule { said << assert_raises(Headway::Error) { sleep(0.001) && close.call(scheduler) }.class }
        scheduler.run
      end
      assert_equal [Headway::Error, :ended], said
    end
  end

  # Wherever it comes: before the loop runs to its end, and as what it has is given back.
  def test_what_strikes_as_it_closes_ends_fibers_and_pool
    { "ending?" => "Headway::FiberScheduler", "close" => "Headway::FiberScheduler.const_get(:Stalls)" }.each do |place, owner|
      result = Harness::RubyProcess.eval(<<~RUBY)
        require "headway"
        #{owner}.prepend(Module.new { def #{place} = raise("struck") })
        scheduler = Headway::FiberScheduler.new
        thread = Thread.new do
          Thread.current.report_on_exception = false
          Fiber.set_scheduler(scheduler)
          Fiber.schedule do
            sleep 0.01
          ensure
            puts "ended"
          end
        end
        puts((thread.join rescue $!.message), scheduler.closed?, scheduler.worker_pool.closed?)
      RUBY
      assert_equal "ended\nstruck\ntrue\ntrue\n", result.out, "#{place}: #{result}"
    end
  end

  def test_a_failure_that_cannot_be_reported_takes_nothing_else_down
    speechless = Class.new(StandardError) { def message = raise("no words") }
    written = []
    only_write = Object.new.tap { |out| out.define_singleton_method(:write) { |*texts| written.concat(texts) } }
    gone = Object.new.tap { |out| out.define_singleton_method(:write) { |*| raise Errno::EPIPE } }
    [[IOError, only_write], [speechless, only_write], [IOError, gone]].each do |error, out|
      assert_equal [error, true], failing_with(error, out)
    end
    assert_match(/report_on_exception.*IOError.*report_on_exception.*whose message raises RuntimeError/m, written.join)
  end

  # A timer that is taken out, and the count of those that are still to be.
  def test_what_strikes_the_loop_while_it_sorts_its_timers_loses_none
    struck = []
    scheduler = Headway::FiberScheduler.new
    strikes = Module.new do
      define_method(:removed!) do
        super()
        next unless cancelled? && (thread = Thread.current).thread_variable_get(:strike)

        thread.thread_variable_set(:strike, nil)
        thread.raise(Interrupt)
      end
    end
    IO::Event::Timers::Handle.prepend(strikes)
    queue = Queue.new
    thread = Thread.new do
      Thread.current.thread_variable_set(:strike, true)
      Fiber.set_scheduler(scheduler)
      Fiber.schedule { queue.pop(timeout: 0.05) } # whose timer is given up
      Fiber.schedule { sleep(0.01) && queue << true }
      Fiber.schedule { sleep(0.3) && struck << :slept }
      begin
        scheduler.run
      rescue Interrupt
        struck << :left
        scheduler.run
      end
    end
    assert thread.join(patience(10)), "the last sleep never ends"
    assert_equal %i[left slept], struck
  ensure
    thread&.kill
  end

  private

  def elsewhere(&block)
    Thread.new { (Thread.current.report_on_exception = false) || block.call }.join
  end

  # @return [Array(Class, Boolean)] what the loop raised, whether a fiber beside the one that failed came to its end
  def failing_with(error, out)
    ended = false
    before = $stderr
    raised = assert_raises(Exception) do
      looping do |scheduler|
        Fiber.schedule { sleep(0.005) && ended = true }
        Thread.current.report_on_exception = true
        $stderr = out
        Fiber.schedule { raise error }
        $stderr = before
        Thread.current.report_on_exception = false
        scheduler.run
      end
    end
    [raised.class, ended]
  ensure
    $stderr = before
  end

  def begin_in_an_enumerator(scheduler, first, said)
    Fiber.set_scheduler(scheduler)
    assert_equal 1, Enumerator.new { |yielder| Fiber.schedule { sleep(0.001) && said << :first } && yielder << 1 }.next
    scheduler.run if first == :run
    Fiber.schedule { sleep(0.3) && said << :second } if first == :schedule
    Fiber.set_scheduler(nil)
    said << :closed
  end

  def ensured(last)
    yield
  ensure
    last.call
  end

  def busy(seconds)
    stop = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
    nil while Process.clock_gettime(Process::CLOCK_MONOTONIC) < stop
    true
  end

  def process(code)
    Harness::RubyProcess.eval("require 'headway'; Fiber.set_scheduler(Headway::FiberScheduler.new)\n#{code}", limit: 20)
  end
end
