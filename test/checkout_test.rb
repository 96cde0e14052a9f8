# frozen_string_literal: true

require "test_helper"
require "open3"
require "tmpdir"

# The programs of a checkout, which are shell scripts.
class CheckoutTest < Minitest::Test
  ROOT = File.expand_path("..", __dir__)
  # What is said before anything is set up.
  SAYS_HOW = %w[bin/setup bin/smoke examples/rails_shop/run].freeze

  def test_they_are_found_through_links
    Dir.mktmpdir do |directory|
      SAYS_HOW.each do |program|
        File.symlink(File.join(ROOT, program), target = File.join(directory, "target"))
        File.symlink("target", link = File.join(directory, "link"))
        out, err, status = Open3.capture3(link, "--help", chdir: "/")
        assert_equal ["", true], [err, status.success?], program
        assert_match(/#{program}/, out)
        File.unlink(target, link)
      end
    end
  end

  # What takes minutes to set up is refused at once.
  def test_a_runner_that_there_is_not_is_refused_before_anything_is_set_up
    out, err, status = Open3.capture3({ "PATH" => "/usr/bin:/bin", "RUBY" => "nothing" }, File.join(ROOT, "bin/smoke"), "timeout", "nosuch")
    assert_equal ["", "smoke: nosuch is no runner here: bin/smoke --help says which there are\n", 2], [out, err, status.exitstatus]
  end

  def test_a_ruby_below_a_directory_with_a_space_is_found
    Dir.mktmpdir do |whole|
      directory = File.join(File.realpath(whole), "of rubies")
      Dir.mkdir(directory)
      made_up = File.join(directory, "made_up.rb")
      File.write(made_up, %(require "rbconfig"; RbConfig::CONFIG.update("bindir" => #{directory.dump}, "ruby_install_name" => "ruby")))
      ruby = File.join(directory, "ruby")
      File.write(ruby, %(#!/bin/sh\nexec "#{RbConfig.ruby}" -r "#{made_up}" "$@"\n))
      File.chmod(0o755, ruby)
      assert_includes sourced("suitable_rubies", "PATH" => "#{directory}:/usr/bin:/bin", "RUBY" => ruby).lines, "#{ruby}\n"
    end
  end

  def test_bundler_is_found_whatever_is_called_bundle
    Dir.mktmpdir do |directory|
      shim = File.join(directory, "bundle")
      File.write(shim, "#!/bin/sh\nexit 7\n")
      File.chmod(0o755, shim)
      ["/nonexistent", directory].each do |path|
        version = sourced(%(use_ruby "$RUBY"; "$ruby" "$bundle" --version), "PATH" => path, "RUBY" => RbConfig.ruby)
        assert_match(/^(Bundler version )?\d+\.\d+/, version)
      end
    end
  end

  # A signal to the one is one to the other.
  def test_bin_test_becomes_the_tests
    Dir.mktmpdir do |directory|
      File.write(test = File.join(directory, "own_test.rb"), "warn Process.pid")
      IO.pipe do |said, err|
        pid = Process.spawn({ "HEADWAY_IS_SET_UP" => "yes", "RUBY" => RbConfig.ruby }, File.join(ROOT, "bin/test"), test, err:)
        err.close
        assert_equal pid.to_s, said.read.lines.last&.chomp
        assert_predicate Process.wait2(pid).last, :success?
      end
    end
  end

  # A directory, a name without its .rb: no test ran, and all seemed well.
  def test_bin_test_runs_no_nothing
    environment = { "HEADWAY_IS_SET_UP" => "yes", "RUBY" => RbConfig.ruby, "TESTOPTS" => nil }
    ["test/cli", "test/own_thread_test", "--name=/x/"].each do |word|
      out, err, status = Open3.capture3(environment, File.join(ROOT, "bin/test"), word)
      assert_equal ["", 1], [out, status.exitstatus]
      assert_match(/^test: #{word} is no test file: /, err)
    end
  end

  # Through a link too, as the three above: in the same line.
  def test_they_all_look_alike_for_the_checkout
    programs = Dir[File.join(ROOT, "bin/*")].select { |path| File.file?(path) }
    lines = programs.map { |path| File.readlines(path).grep(/\Aroot=/) }
    assert_equal 1, lines.uniq.size, lines.uniq.inspect
  end

  private

  # What the programs' common part answers.
  def sourced(command, **env)
    out, err, status = Open3.capture3(env, "/bin/sh", "-euc", %(root=$1; . "$root/bin/support/rubies.sh"; #{command}), "test", ROOT)
    assert_predicate status, :success?, err
    out
  end
end
