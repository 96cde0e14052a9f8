# frozen_string_literal: true

require "test_helper"
require "rbconfig"
require "headway"

# The files that a program may require by themselves, each in a process where nothing of Headway has been loaded, and in one where
# "headway" has.
class FilesTest < Minitest::Test
  ROOT = File.expand_path("..", __dir__)
  # Parts of "headway", which load nothing that they need, and what is for `headway run`.
  PARTS = %w[autostart face inert offload_pool].freeze
  NAMES = { "async" => :AsyncOverlay, "base" => :Error, "cli" => :CLI, "version" => :VERSION }.freeze

  def test_each_warns_of_nothing_and_defines_its_constant
    files = Dir.children(File.join(ROOT, "lib/headway")).grep(/\.rb\z/).map { |name| name.delete_suffix(".rb") } - PARTS
    assert_empty complaints(files.sort, RUBY_VERSION < "3.4" ? ["async"] : [])
  end

  # Who goes through all modules of a program (debuggers, profilers, frameworks) asks each for its name.
  def test_no_module_answers_otherwise_than_modules_do
    files = Dir.children(File.join(ROOT, "lib/headway")).grep(/\.rb\z/).map { |name| name.delete_suffix(".rb") } - PARTS - %w[async bench cli]
    run = Harness::RubyProcess.eval(<<~RUBY)
      %w[#{files.sort.join(" ")}].each { |file| require "headway/\#{file}" }
      Headway::Report.constants.each { |name| Headway::Report.const_get(name) }
      ObjectSpace.each_object(Module) do |each|
        next unless Module.instance_method(:name).bind_call(each).to_s.start_with?("Headway")

        own = each.singleton_class.instance_methods(false) + each.singleton_class.private_instance_methods(false)
        own.select! { |name| Module.method_defined?(name) && each.singleton_class.instance_method(name).source_location }
        puts "\#{each}: \#{own.join(" ")}" if own.any?
      end
      puts "looked"
    RUBY
    assert_equal "looked\n", run.out, run
  end

  private

  # A process forks for each, as most of the time one takes is that of starting a Ruby. Gems may warn of themselves.
  def complaints(files, without)
    names = files.to_h { |file| [file, NAMES.fetch(file) { file.split("_").map(&:capitalize).join.to_sym }] }
    run = Harness::RubyProcess.run("-w", "-e", <<~RUBY, env: { "HEADWAY_CONTROL" => "0" })
      #{names.except(*without)}.to_a.product([false, true]) do |(file, name), after|
        warn "== \#{file}\#{" after headway" if after}"
        pid = fork do
          require "headway" if after
          require "headway/\#{file}"
          Headway.const_get(name, false)
        end
        warn "FAILED" unless Process.wait2(pid).last.success?
      end
    RUBY
    tried = run.err.split(/^(?=== )/).grep(/\A== /)
    assert_equal [true, 2 * (files - without).size], [run.success?, tried.size], run
    tried.grep(/^FAILED|warning:.*#{Regexp.escape(ROOT)}/)
  end
end
