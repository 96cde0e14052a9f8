# frozen_string_literal: true

require "harness/trap_test"
require "timeout"

# Trap: a postponed job swallows what was raised into its thread meanwhile.
class LostInterruptTest < Harness::TrapTest
  COUNT = 150

  test_under Harness::Modes::PREEMPTING, "no raise is lost or doubled", quantum_ms: 1 do
    received = []
    under_rapid_preemption do
      target = catching_thread(received)
      scale(COUNT).times do |number|
        target.raise(IndexError, number.to_s)
        await("raise no. #{number}") { received.size > number }
      end
      target.kill.join
    end
    assert_equal (0...scale(COUNT)).map(&:to_s), received
  end

  # While one unwinds, at its interrupt checks, another that is raised just then takes its place; so it is on any Ruby. The last one
  # has nobody to fear, and the job must make it rare (ext/headway/yield.c): it is one of a million here.
  test_under Harness::Modes::PREEMPTING, "no burst of raises is lost", quantum_ms: 1 do
    received = []
    last = scale(COUNT) - 1
    under_rapid_preemption do
      target = catching_thread(received)
      (0..last).each { |number| target.raise(IndexError, number.to_s) }
      await("the last raise") { received.last == last.to_s }
      target.kill.join
    end
    numbers = received.map(&:to_i)
    assert_equal numbers.sort.uniq, numbers, "out of order, or doubled"
    assert_operator ((0..last).to_a - numbers).size, :<=, 2, "lost: #{(0..last).to_a - numbers}"
  end

  # A thread is preempted before its block begins, too, and there Headway itself runs Ruby code: it looks for Puma.
  test_under Harness::Modes::PREEMPTING, "no raise into a thread that begins is lost", quantum_ms: 1 do
    under_rapid_preemption do
      scale(COUNT).times do |number|
        target = Thread.new { nil while true }
        target.report_on_exception = false
        target.raise(IndexError, number.to_s)
        error = assert_raises(IndexError, "no. #{number}") { target.join(patience(10)) }
        assert_equal number.to_s, error.message
      end
    end
  end

  test_under %i[fair_signal observe], "no interrupt is lost while a thread that begins looks for Puma" do
    %i[raise kill].each do |interrupt|
      looking = Thread::Queue.new
      server = Class.new
      server.define_singleton_method(:private_method_defined?) { |_| (looking << true) && sleep(0.1) && raise("not lost to this") }
      with_puma(Module.new { const_set(:Client, Class.new) && const_set(:Server, server) }) do
        target = Thread.new { flunk }
        target.report_on_exception = false
        looking.pop
        target.public_send(interrupt, *([IndexError] if interrupt == :raise))
        interrupt == :raise ? assert_raises(IndexError) { target.join(patience(10)) } : assert(target.join(patience(10)))
      end
    end
  end

  test_under %i[observe], "a thread that begins beside something else of Puma's name" do
    [42, Module.new { const_set(:Client, 42) && const_set(:Server, 42) }].each do |other|
      with_puma(other) { assert_equal :begun, Thread.new { :begun }.value }
    end
    assert_equal ["Puma's races"], Headway.notices.map { |notice| notice[/\A.*?(?= failed)/] }
  end

  test_under Harness::Modes::PREEMPTING, "no kill is lost", quantum_ms: 1 do
    under_rapid_preemption do
      scale(COUNT).times do |number|
        ensured = 0
        started = false
        target = Thread.new do
          started = true
          loop { nil }
        ensure
          ensured += 1
        end
        await("start") { started }
        target.kill
        assert target.join(patience(10)), "kill no. #{number} was lost"
        assert_equal 1, ensured
      end
    end
  end

  test_under Harness::Modes::PREEMPTING, "no timeout is lost", quantum_ms: 1 do
    under_rapid_preemption do
      scale(COUNT).times do |number|
        assert_raises(Timeout::Error, "no. #{number}") { Timeout.timeout(0.002) { nil while true } }
        assert_equal :done, Timeout.timeout(3600) { :done }
      end
    end
  end

  test_under Harness::Modes::PREEMPTING, "a deferred interrupt stays deferred and then comes", quantum_ms: 1 do
    under_rapid_preemption do
      30.times do
        steps = []
        target = Thread.new do
          Thread.handle_interrupt(IndexError => :never) do
            steps << :masked
            compute(0.005)
            steps << :unmasking
          end
          nil while true
        rescue IndexError
          steps << :raised
        end
        await("mask") { steps.any? }
        target.raise(IndexError)
        assert target.join(patience(10))
        assert_equal %i[masked unmasking raised], steps
      end
    end
  end

  private

  def with_puma(constant)
    Object.const_set(:Puma, constant)
    yield
  ensure
    Object.send(:remove_const, :Puma)
  end

  # Many threads that wake every 200 µs, so that a thread that computes is preempted all the time.
  def under_rapid_preemption(&)
    beside_cpu_threads(1) { beside_io_threads(6, pause: 0.0002, &) }
  end

  # Computes without end and notes what is raised into it, losing none in between. Kernel#loop has a rescue clause, in which one
  # exception could take another's place.
  def catching_thread(received)
    ready = false
    thread = Thread.new do
      Thread.handle_interrupt(IndexError => :never) do
        loop do
          Thread.handle_interrupt(IndexError => :immediate) do
            ready = true
            nil while true
          end
        rescue IndexError => error
          received << error.message
        end
      end
    end
    await("start") { ready }
    thread
  end
end
