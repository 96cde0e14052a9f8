# frozen_string_literal: true

require "test_helper"
require "headway/platform"
require "headway/version"
require "parser/ruby26"

class PlatformTest < Minitest::Test
  Platform = Headway::Platform

  def test_cruby_from_3_3_on_is_supported
    ["3.3.0", "3.3.11", "3.4.1", "3.10.0", "4.0.5", "10.0.0"].each do |version|
      assert_nil Platform.reason(engine: "ruby", version: version, platform: "x86_64-linux"), version
    end
  end

  def test_every_refusal_says_why
    assert_match(/3\.2\.9 is too old/, Platform.reason(engine: "ruby", version: "3.2.9", platform: "x86_64-linux"))
    assert_match(/1\.9\.3 is too old/, Platform.reason(engine: "ruby", version: "1.9.3", platform: "x86_64-linux"))
    assert_match(/\Ajruby has no GVL/, Platform.reason(engine: "jruby", version: "3.4.2", platform: "java"))
    assert_match(/\Atruffleruby/, Platform.reason(engine: "truffleruby", version: "3.3.7", platform: "x86_64-linux"))
    assert_match(/Windows/, Platform.reason(engine: "ruby", version: "3.4.1", platform: "x64-mingw-ucrt"))
    assert_match(/no threads/, Platform.reason(engine: "ruby", version: "3.4.1", platform: "wasm32-wasi"))
  end

  def test_macos_is_not_taken_for_windows
    assert_nil Platform.reason(engine: "ruby", version: "3.4.1", platform: "arm64-darwin24")
  end

  def test_timeslice
    refute Platform.timeslice?(version: "3.3.8")
    assert Platform.timeslice?(version: "3.4.0")
    assert Platform.timeslice?(version: "4.0.0")
  end

  def test_this_ruby_is_supported
    assert_predicate Headway, :supported?
    assert_nil Headway.unsupported_reason
  end

  # A module of its own, so that this process's own reason stays as it is.
  def test_a_missing_extension_is_a_reason
    platform = Platform.clone
    platform.extension_missing(LoadError.new("cannot load such file -- headway/headway\nmore"))

    assert_match(%r{native extension was not built for this Ruby, .*headway/headway\): run bin/setup in /.+\z}, platform.unsupported_reason)
    assert_nil Platform.unsupported_reason
  end

  def test_without_the_extension_everything_is_there
    run = eval_without_extension(<<~RUBY)
      require "headway"
      abort "supported" if Headway.supported? || Headway.start
      pool = Headway::OffloadPool.new(workers: 2, queue: 10, full: :wait, deadline: 1, mode: :always)
      p pool.call(-> { 1 }), pool.run(deadline: 2) { 2 }, Headway.offload { 3 }, pool.mode, pool.stats[:inline], pool.close
      p((pool.run { 4 } rescue $!.class))
      p Headway::Autotune.start(window: 5), Headway::Autotune.current, Headway::Autotune.stop
      Headway::Work.start(:request, "a").finish
      outer = Headway::Work.start(:job, "b").tap { Headway::Work.start(:job, "left") }
      outer.finish
      p Headway::Work.current, (Headway::Work.start(:mail) rescue $!.message)
      p Headway::Metrics.request("b", running: 1, ready: 1, suspended: 1), Headway::Metrics.text.lines.grep_v(/^#/)

      Fiber.set_scheduler(scheduler = Headway::FiberScheduler.new)
      reader, writer = IO.pipe
      Fiber.schedule { p IO.select([reader], nil, nil, 10)&.flatten == [reader], reader.read(2) }
      Fiber.schedule { sleep(0.01) and writer.write(Headway.offload { "ab" }) }
      scheduler.close
      p scheduler.stats[:errors]
    RUBY
    off = [%(headway_info{version="#{Headway::VERSION}",policy="fair",preempt="signal",quantum_ms="100"} 0\n)].inspect # all there is
    assert_equal [*%w[1 2 3 :never 2 nil Headway::OffloadPool::ClosedError nil nil false nil], '":mail: :request or :job"', "nil", off, *%w[true "ab" 0]],
                 run.out.split("\n")
    assert_match(/does nothing here: its native extension was not built/, run.err)
  end

  # Of what an application has a line for. The parser takes no string for one whose bytes aren't UTF-8; Ruby does.
  class Builder < Parser::Builders::Default
    private

    def string_value(token)
      value(token)
    end
  end

  def test_what_an_application_loads_is_parsed_by_the_oldest_ruby_it_is_installed_on
    run = eval_without_extension(<<~RUBY)
      require "rails"
      %w[headway headway/rack headway/puma headway/sidekiq headway/rails].each { |file| require file }
      Headway::Web
      Headway::Metrics.constants.each { |name| Headway::Metrics.const_get(name) }
      puts $LOADED_FEATURES.grep(%r{lib/headway})
    RUBY
    files = run.out.split("\n")
    assert_operator files.size, :>, 50
    (files + Dir[File.expand_path("../lib/{puma,generators}/**/*.rb", __dir__)]).each do |file|
      parser = Parser::Ruby26.new(Builder.new)
      parser.diagnostics.all_errors_are_fatal = true
      parser.parse(Parser::Source::Buffer.new(file, source: File.read(file)))
    rescue Parser::SyntaxError => error
      flunk "#{file}:#{error.diagnostic.location.line}: #{error.message}"
    end
  end

  private

  # Of this version there is none.
  def eval_without_extension(script)
    run = Harness::RubyProcess.eval(%(require "rbconfig"; RbConfig::CONFIG["ruby_version"] = "9.9.0"\n#{script}))
    assert run.success?, run
    run
  end
end
