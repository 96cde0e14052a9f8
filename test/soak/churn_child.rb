# frozen_string_literal: true

# One kind of churn in a process of its own: the same thing over and over for so many seconds, and now and then the process's
# figures, a line of JSON each. Arguments: the kind, seconds, and "stock" where Headway is to stay out.

require "json"
require "tmpdir"
require "zlib"
require_relative "figures"

module Soak
  # What is made and ended again and again. What a round leaves behind shows as memory that grows with the rounds.
  module Churning
    KINDS = %w[threads named_threads killed_threads works starts recordings flights marks fibers offload pools schedulers metrics
               control stats blame forks autotune].freeze
    # Those that can be done without Headway, too: there is something to compare with.
    PLAIN = %w[threads named_threads killed_threads fibers blame forks].freeze
    LINES = 30

    module_function

    def play(kind, seconds, headway)
      if headway
        require "headway"
        Headway.start(policy: :fair) or abort(Headway.notices.join("; "))
      end
      step = method("#{kind}_round")
      rounds = 0
      LINES.times do
        deadline = now + seconds / LINES
        step.call(rounds += 1) while now < deadline
        3.times { GC.start }
        puts JSON.generate(Figures.of(Process.pid).merge(rounds:, slots: GC.stat(:heap_live_slots)))
        $stdout.flush
      end
    end

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

    def threads_round(_number) = Thread.new { 10.times { 1 + 1 } }.join

    def named_threads_round(number)
      Thread.new { Thread.current.name = "n#{number}"; sleep 0 }.join
    end

    def killed_threads_round(number)
      thread = Thread.new { number.odd? ? sleep : loop { 1 + 1 } }
      Thread.pass
      thread.kill.join
    end

    def works_round(number)
      work = Headway::Work.start(number.odd? ? :job : :request, "name #{number}")
      work.finish
    end

    def starts_round(_number)
      Headway.stop
      Headway.start(policy: %i[fair quantum observe].sample, preempt: %i[signal poll].sample)
    end

    def recordings_round(number)
      @directory ||= Dir.mktmpdir
      Headway::Recorder.start(file: "#{@directory}/#{number}.headway", events: 10_000)
      Thread.new { Headway::Work.start(:job, "recorded #{number}").finish }.join
      Headway::Recorder.stop
      File.delete("#{@directory}/#{number}.headway")
    end

    def flights_round(number)
      @directory ||= Dir.mktmpdir
      Headway::Recorder.start(mode: :flight, events: 10_000, wait_threshold: 0.05)
      Thread.new { Headway::Work.start(:job, "recorded #{number}").finish }.join
      Headway::Recorder.dump("#{@directory}/dump.headway")
      Headway::Recorder.stop
    end

    def marks_round(number)
      @recording ||= Headway::Recorder.start(mode: :flight, events: 10_000)
      Headway.mark("mark #{number}") { nil }
    end

    def fibers_round(_number) = Fiber.new { Fiber.yield }.tap(&:resume).resume

    def offload_round(_number)
      @text ||= Random.bytes(20_000)
      Thread.new do
        Fiber.set_scheduler(Headway::FiberScheduler.new)
        20.times { Fiber.schedule { Zlib.gzip(@text) } }
      end.join
    end

    def pools_round(_number)
      pool = Headway::OffloadPool.new
      pool.close
    end

    def schedulers_round(_number)
      Thread.new do
        Fiber.set_scheduler(Headway::FiberScheduler.new)
        5.times { Fiber.schedule { sleep 0.0001 } }
      end.join
    end

    def metrics_round(number)
      require "headway/metrics"
      @endpoint ||= Headway::Metrics::Endpoint.new
      Headway::Metrics.request("GET /#{number}", running: 0.01, ready: 0.002, suspended: 0.1)
      @endpoint.call({ "REQUEST_METHOD" => "GET", "PATH_INFO" => "/" }).last.each { |part| part } if (number % 20).zero?
    end

    def control_round(_number)
      @client ||= begin
        require "headway/control/client"
        Headway::Control::Client.new(Process.pid, Headway::Control.path)
      end
      @client.stats
      @client.set(quantum_ms: rand(10..100))
    end

    def stats_round(_number) = Headway.stats

    # Threads that compete, with methods that are ever new: stacks to blame, of which so many are kept and no more.
    def blame_round(number)
      name = "busy_#{number}"
      Object.class_eval("def #{name} = (over = Soak::Churning.now + 0.004; nil while Soak::Churning.now < over)", "#{name}.rb")
      [Thread.new { __send__(name) }, Thread.new { 4.times { sleep 0.0005 } }].each(&:join)
      Object.class_eval { remove_method(name) }
    end

    def forks_round(_number)
      Process.wait(fork { Thread.new { 1 + 1 }.join; exit!(0) })
      $?.success? or raise "a child failed: #{$?}"
    end

    def autotune_round(_number)
      Headway::Autotune.start(log: ->(_line) {}, window: 1)
      Headway::Autotune.stop
    end
  end
end

Soak::Churning.play(ARGV[0], Float(ARGV[1]), ARGV[2] != "stock")
