# frozen_string_literal: true

require_relative "checks"
require "rufus-scheduler"
require "fugit"
require "listen"
require "rb-inotify"
require "tmpdir"

checks do
  check("rufus-scheduler: in order, each once", [*0...20]) do
    scheduler = Rufus::Scheduler.new(frequency: 0.05)
    order = Queue.new
    20.times { |number| scheduler.in("#{0.3 + number * 0.15}s") { order << number && compute } }
    eventually { order.size == 20 }
    scheduler.shutdown(:wait)
    Array.new(order.size) { order.pop }
  end
  check("rufus-scheduler: every, jobs that compute, none overlapping", [true, 1]) do
    scheduler = Rufus::Scheduler.new(frequency: 0.05)
    inside, most, count, lock = 0, 0, 0, Mutex.new
    scheduler.every("0.1s", overlap: false) do
      lock.synchronize { most = [most, inside += 1].max }
      compute_for(0.02)
      lock.synchronize { (count += 1) && inside -= 1 }
    end
    often = eventually { count > 8 }
    scheduler.shutdown(:wait)
    [often, most]
  end
  check("rufus-scheduler: a job's own timeout", "Rufus::Scheduler::TimeoutError") do
    scheduler = Rufus::Scheduler.new(frequency: 0.05)
    said = Queue.new
    scheduler.in("0.1s", timeout: "0.3s") do
      said << outcome { loop { compute } }
    end
    said.pop(timeout: 20).tap { scheduler.shutdown(:kill) }
  end
  check("rufus-scheduler: killed amid a job", true) do
    scheduler = Rufus::Scheduler.new(frequency: 0.05)
    started, cleaned = Queue.new, Queue.new
    scheduler.in("0.1s") do
      started << true
      loop { compute }
    ensure
      cleaned << true
    end
    started.pop(timeout: 20)
    scheduler.shutdown(:kill)
    cleaned.pop(timeout: 20)
  end
  check("fugit: the same in every thread", 1) { in_threads(8) { Fugit.parse("every 5 minutes").next_time("2026-01-01").to_s }.uniq.size }
  Dir.mktmpdir("headway-smoke") do |directory|
    directory = File.realpath(directory)
    check("listen: every file", [*0...40].map { |number| "file-#{number}" }.sort) do
      seen = Queue.new
      listener = Listen.to(directory, latency: 0.05, wait_for_delay: 0.02) { |modified, added| (modified + added).each { seen << File.basename(_1) } }
      listener.start
      found = []
      40.times { |number| sleep(0.01) && File.write(File.join(directory, "file-#{number}"), "x" * number) }
      eventually { (found << seen.pop until seen.empty?) || found.uniq.size == 40 }
      listener.stop
      found.uniq.sort
    end
  end
  Dir.mktmpdir("headway-smoke") do |directory|
    check("rb-inotify: every event", 60) do
      created = Queue.new
      notifier = INotify::Notifier.new
      notifier.watch(directory, :create) { |event| created << event.name && compute(200) }
      thread = Thread.new { notifier.run }
      in_threads(6) { |number| 10.times { |each| File.write(File.join(directory, "#{number}-#{each}"), "") && compute(100) } }
      eventually { created.size == 60 }
      notifier.stop
      File.write(File.join(directory, "last"), "")
      thread.join(10)
      [created.size, 60].min
    end
  end
end
