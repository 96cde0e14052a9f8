# frozen_string_literal: true

require "harness/measured"
require "harness/recorder_test"
require "timeout"

# Blame: the stack of whoever held the GVL while others waited.
class BlameTest < Harness::RecorderTest
  include Harness::Measured

  # What the blame is to find.
  module Heavy
    def self.grind(seconds)
      deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
      nil while Process.clock_gettime(Process::CLOCK_MONOTONIC) < deadline
    end
  end

  MODES = Harness::Modes::ALL.keys
  ENDLESS = 40 * Harness::TimeLimit.seconds_scale # seconds of computing that nobody lets come to their end

  MODES.each do |mode|
    define_method("test_the_culprit_is_found_live_and_in_the_trace_under_#{mode}") do
      measured do
        blame = nil
        trace = recorded(mode) do
          beside_io_threads(3) do
            Thread.new { Heavy.grind(0.6) }.join
            # Once more where the machine stopped meanwhile.
            Thread.new { Heavy.grind(0.2) }.join until (blame = Headway.stats[:blame])[:samples] >= 3
          end
        end
        assert_operator blame[:samples], :>=, 3
        assert_in_delta 1, share(blame[:stacks]) / blame[:weight], 0.35
        blamed = trace[:blame]
        frames = blamed[:frames]
        guilty = blamed[:stacks].select { |stack| stack[:frames].any? { |index| frames[index][:method].include?("Heavy.grind") } }
        assert_operator guilty.sum { |stack| stack[:weight_s] }, :>, 0.6 * blamed[:weight_s]
        grind = frames.find { |frame| frame[:method].end_with?("Heavy.grind") }
        assert_equal [File.realpath(__FILE__), true], [grind[:file], grind[:line].between?(13, 18)]
      end
    end
  end

  # The same method in two kinds of work that compute, for longer in one of them.
  def test_work_is_blamed_with_the_stacks_it_was_in
    measured do
      trace = recorded(:observe) do
        beside_io_threads(3) do
          Thread.new { { "GET /long" => 0.5, "GET /short" => 0.2 }.each { |name, s| Headway.mark(name) { Heavy.grind(s) } } }.join
        end
      end
      long, short = trace[:work].select { |kind| kind[:name].start_with?("GET") }.sort_by { |kind| kind[:name] }.map do |kind|
        assert_operator kind[:blamed].sum { |stack| stack[:s] }, :<=, kind[:blamed_s] + 1e-6
        kind[:blamed].sum { |stack| stack[:frames].any? { |frame| trace[:blame][:frames][frame][:method].end_with?("Heavy.grind") } ? stack[:s] : 0.0 }
      end
      assert_operator short, :>, 0
      assert_operator long, :>, short
    end
  end

  # Without a file of its own, at lines that are not those of the file it is called in.
  module Evaluated
    CODE = "\n\n\nover = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 0.1\nnil while Process.clock_gettime(Process::CLOCK_MONOTONIC) < over"
    LINE = __LINE__ + 1
    def self.once = eval(CODE) # rubocop:disable Style/EvalWithLocation
    def self.within_another = eval("\neval(CODE)") # rubocop:disable Style/EvalWithLocation
  end

  %i[once within_another].each_with_index do |call, below|
    test_under %i[fair_signal observe], "what was evaluated is blamed at the line that evaluates it: #{call}" do
      method, places = "Evaluated.#{call}", nil
      beside_io_threads(1) do
        until places&.any?
          Thread.new { Evaluated.public_send(call) }.join
          frames = Headway.stats[:blame][:stacks].flat_map { |stack| stack[:frames] }
          places = frames.select { |frame| frame[:method].end_with?(method) }.map { |frame| [frame[:file], frame[:line]] }
        end
      end
      assert_equal [[File.realpath(__FILE__), Evaluated::LINE + below]], places.uniq
    end
  end

  # A server's stacks are deep, and new in their leaves all day: the table has the process's life to fill up, and blame goes on.
  def test_what_is_blamed_once_the_table_is_tight_is_the_programs_own
    with_headway(:fair_signal) do
      beside_io_threads(2, pause: 0.0003) do
        await("a stack cut short", limit: 120, pause: 0) do
          50.times { Others.call { own_code } }
          Headway.const_get(:Native).blame(1_000_000).last.map(&:last).any? { |frames| cut_short?(frames) }
        end
      end
    end
    assert_equal 0, Headway.stats[:blame][:folded]
  end

  # A gem that calls the program back, and one that is called by it, at another line each time.
  module Others
    FILE = "/srv/gems/others.rb"
    LEAF = "over = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 0.001; nil while Process.clock_gettime(Process::CLOCK_MONOTONIC) < over"
    eval("def self.call(deep = 50, &block) = deep.zero? ? block.call : call(deep - 1, &block)", binding, FILE)
    eval("def self.compute = eval(LEAF, nil, FILE, @line = @line.to_i + 1)", binding, FILE)
  end

  def own_code = Others.compute

  def cut_short?(frames)
    frames.first.first.end_with?("#own_code") && frames.none? { |_, file,| file == Others::FILE }
  end

  test_under %i[fair_signal observe], "nothing is blamed when nobody waits" do
    Heavy.grind(0.2)
    assert_operator Headway.stats[:blame][:weight], :<, 0.05
  end

  %i[fair_signal observe].each do |mode|
    define_method("test_code_that_heeds_no_interrupt_is_told_apart_under_#{mode}") do
      measured do
        late_shares(mode, 0.3).each { |share| assert_operator share, :>, 0.6 }
        late_shares(mode, 0.005).each { |share| assert_operator share, :<, 0.4 }
      end
    end
  end

  # They have turns of a tenth of a second and more, in which nobody asks them to give way.
  MODES.each do |mode|
    define_method("test_threads_that_compute_by_turns_heed_interrupts_under_#{mode}") do
      measured do
        late_shares_of(mode) { Array.new(3) { Thread.new { Heavy.grind(0.9) } }.each(&:join) }.each do |share|
          assert_operator share, :<, 0.4
        end
      end
    end
  end

  # Code that is gone must not be blamed under another's name, and what is blamed must survive compaction.
  test_under %i[fair_signal observe], "code that comes and goes, with compaction" do
    GC.auto_compact = true if GC.respond_to?(:auto_compact=)
    beside_io_threads(2) do
      rounds = 0
      # More of them where the machine was busy with others each time.
      grind_and_forget(rounds += 1) until (rounds >= 20 && ground?) || rounds == 200
      assert ground?
    end
  end

  # As an application's relations are, one for each request: the VM has an entry of its own for a method that an object was extended with.
  test_under %i[fair_signal observe], "an object that was extended goes when the program is done with it" do
    beside_io_threads(2) do
      20.times { Thread.new { Relation.new.extend(Pages).grind(0.02) }.join }
    end
    GC.start
    assert_operator ObjectSpace.each_object(Relation).count, :<=, 8 # four are what the method is known by, and stacks have leftovers
    assert(Headway.stats[:blame][:stacks].any? { |stack| stack[:frames].any? { |frame| frame[:method] == "#{Pages}#grind" } })
  end

  Relation = Class.new
  # What a relation is extended with.
  module Pages
    def grind(seconds) = Heavy.grind(seconds)
  end

  # The tables are allocated at the start, and without them there is no blame.
  MEMORY_IS_SHORT = <<~C
    #define _GNU_SOURCE
    #include <dlfcn.h>
    #include <stdlib.h>
    void *calloc(size_t count, size_t size)
    {
        static void *(*calloc_there_is)(size_t, size_t);
        static int looks;
        if (!calloc_there_is && !looks++) calloc_there_is = (void *(*)(size_t, size_t))dlsym(RTLD_NEXT, "calloc");
        if (!calloc_there_is || (count * size > 100000 && getenv("MEMORY_IS_SHORT"))) return NULL;
        return calloc_there_is(count, size);
    }
  C

  def test_where_memory_is_short_at_the_start_nobody_is_blamed
    skip "no LD_PRELOAD here" unless RUBY_PLATFORM.include?("linux")
    File.write(file("short.c"), MEMORY_IS_SHORT)
    system(*RbConfig::CONFIG["CC"].split, "-shared", "-fPIC", "-o", file("short.so"), file("short.c"), "-ldl", exception: true)
    run = Harness::RubyProcess.eval(<<~RUBY, env: { "LD_PRELOAD" => [ENV["LD_PRELOAD"], file("short.so")].compact.join(" ") })
      require "headway"
      ENV["MEMORY_IS_SHORT"] = "1"
      Headway.start
      ENV.delete("MEMORY_IS_SHORT")
      Array.new(3) { Thread.new { deadline = Time.now + 0.3; nil while Time.now < deadline } }.each(&:join)
      p Headway.stats[:blame][:samples]
    RUBY
    assert run.success?, run
    assert_equal "0\n", run.out, run
  end

  # Such as the methods that config.ru defines: the address of their object is another one in each worker.
  test_under [:fair_signal], "what has no name is called the same in every process" do
    nameless = Object.new
    def nameless.grind = Heavy.grind(0.1)
    methods = []
    beside_io_threads(1) do
      until methods.any?
        Thread.new { nameless.grind }.join
        methods = Headway.stats[:blame][:stacks].flat_map { |stack| stack[:frames].map { |frame| frame[:method] } }.grep(/Object.*grind/)
      end
    end
    assert_equal ["#<Object>.grind"], methods.uniq
  end

  # Its hash and its object's number differ from worker to worker, and from one reload of its view to the next.
  test_under [:fair_signal], "what a template was compiled to is called the same in every process" do
    names = %w[_app_views_carts_show_html_erb___4611686018427387904_1234 _app_views_carts_show_html_erb__77_8 __tilt_8 _reduce_12
               _step_1_2 step__1_2]
    methods = names.map { |name| Class.new { class_eval("def #{name} = Heavy.grind(0.1)", "/app/#{name[/[a-z_]+/]}", 1) }.new.method(name) }
    seen = []
    beside_io_threads(1) do
      until seen.size == 5
        methods.each { |method| Thread.new(&method).join }
        frames = Headway.stats[:blame][:stacks].flat_map { |stack| stack[:frames] }
        seen = frames.select { |frame| frame[:file].start_with?("/app/") }.map { |frame| frame[:method].sub(/.*#/, "") }.uniq
      end
    end
    assert_equal %w[__tilt _app_views_carts_show_html_erb _reduce_12 _step_1_2 step__1_2], seen.sort
  end

  # As the trap tests, with blame at every preemption and a recording: no exception, kill or timeout gets lost.
  (Harness::Modes::PREEMPTING + [:observe]).each do |mode|
    define_method("test_nothing_is_lost_while_blame_samples_under_#{mode}") do
      lost = []
      recorded(mode) do
        beside_io_threads(4, pause: 0.0005) do
          scale(25).times do
            victim = Thread.new { compute(ENDLESS) }
            sleep 0.002
            victim.report_on_exception = false
            victim.raise(IOError, "out")
            lost << :raise unless joined(victim) == IOError
            victim = Thread.new { compute(ENDLESS) }
            sleep 0.002
            victim.kill
            lost << :kill unless joined(victim).nil?
            lost << :timeout unless timed_out?
          end
        end
      end
      assert_empty lost
    end
  end

  private

  def late_shares(mode, seconds)
    late_shares_of(mode) do
      beside_io_threads(1) { Thread.new { (0.9 / seconds).to_i.times { VMFixture.sleep_holding_gvl(seconds) } }.join }
    end
  end

  # @return [Array<Float>] of what others waited, which part was for code that couldn't be looked at: as a trace says, and as is known live
  def late_shares_of(mode)
    live = nil
    trace = recorded(mode) do
      yield
      live = Headway.stats[:blame]
    end
    [trace[:blame][:stacks].sum { |stack| stack[:late_s] } / trace[:blame][:weight_s], live[:late] / live[:weight]]
  end

  def grind_and_forget(number)
    code = Module.new
    code.module_eval("def self.grind_#{number}(time) = (nil while Process.clock_gettime(Process::CLOCK_MONOTONIC) < time)")
    Thread.new { code.public_send("grind_#{number}", now + 0.015) }.join
    code = nil
    GC.start
    GC.compact if GC.respond_to?(:compact)
  end

  def ground? = Headway.stats[:blame][:stacks].any? { |stack| stack[:frames].any? { |frame| frame[:method] =~ /grind_\d+/ } }

  def joined(thread)
    thread.join(ENDLESS / 2) ? nil : :hangs
  rescue IOError => error
    error.class
  end

  def timed_out?
    Timeout.timeout(0.003) { compute(ENDLESS) }
    false
  rescue Timeout::Error
    true
  end

  def share(stacks)
    stacks.select { |stack| stack[:frames].any? { |frame| frame[:method].include?("Heavy.grind") } }.sum { |stack| stack[:weight] }
  end
end
