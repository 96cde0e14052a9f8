# frozen_string_literal: true

require "test_helper"
require "headway"
require "servers/server_process"

# What integrations/puma_races.rb closes.
class PumaRacesTest < Minitest::Test
  include Harness::Serving

  # A Puma that switches threads where it must not: once a connection was handed on, and while an answer is being written. Without
  # Headway some answers have no status line.
  WIDER = <<~RUBY
    Puma::ThreadPool.prepend(Module.new { def <<(client) = super.tap { sleep 0.002 } })
    Puma::IOBuffer.prepend(Module.new { def <<(text) = super.tap { sleep 0.005 if text.start_with?("HTTP") } })
  RUBY
  ANSWER = 'run ->(_) { [200, {}, ["whole #{defined?(Headway.started?) && Headway.started?}"]] }'

  def test_with_the_plugin
    assert_whole_answers puma("plugin :headway")
  end

  def test_of_a_program_that_starts_headway_before_puma
    assert_whole_answers puma("", "-r", "headway/autostart")
  end

  def test_of_an_application_that_starts_headway
    assert_whole_answers puma("", application: "require 'headway'; Headway.start")
  end

  def test_stopped_and_started_again
    assert_whole_answers puma("", "-r", "headway/autostart", application: "Headway.stop; Headway.start")
  end

  def test_a_buffer_of_each_thread_that_what_was_broken_off_leaves_empty
    alone = <<~RUBY
      require "headway"
      require "puma"
      require "puma/server"
      Headway.start
      client = Puma::Client.new(File.open(IO::NULL))
      mine = client.io_buffer
      mine << "HTTP/1.1 500"
      other = Thread.new { client.io_buffer }.value
      p [mine.length, client.io_buffer.equal?(mine), mine.length, other.equal?(mine)]
    RUBY
    run = Harness::RubyProcess.eval(alone)
    assert_equal "[12, true, 0, false]\n", run.out, run
  end

  # Of Rails, for one, among whose models there may be a Puma.
  def test_a_puma_of_the_application_s_own_is_loaded_when_that_asks_for_it
    write("puma.rb", "$loaded = true\nclass Puma\nend\n")
    run = Harness::RubyProcess.eval(<<~RUBY)
      require "headway"
      autoload :Puma, #{File.join(@directory, "puma.rb").inspect}
      Headway.start
      Thread.new { }.join
      p $loaded
      Puma
      Thread.new { }.join
      p $loaded, Headway.notices
    RUBY
    assert_equal "nil\ntrue\n[]\n", run.out, run
  end

  # Beside processes that compute, which may have the processor when the handler is about to leave its write; without Headway a few of
  # these hang.
  def test_told_to_stop_by_a_signal_it_stops
    stops = <<~RUBY
      require "headway"
      require "puma"
      require "puma/server"
      Headway.start
      hogs = Array.new(3) { fork { loop { } } }
      at_exit { Process.kill(:KILL, *hogs) }
      trap("USR2") { $server.stop }
      stopped = Array.new(40) do
        $server = Puma::Server.new(->(_) { [200, {}, []] }, nil, log_writer: Puma::LogWriter.null)
        $server.add_tcp_listener("127.0.0.1", 0)
        thread = $server.run
        signal = spawn("sleep 0.02; kill -USR2 \#{Process.pid}")
        ended = thread.join(15)
        Process.wait(signal)
        !ended.nil?
      end
      p stopped.tally
    RUBY
    run = Harness::RubyProcess.eval(stops)
    assert_equal "{true => 40}", run.out.chomp.sub("true=>", "true => "), run
  end

  def test_what_a_server_is_told_has_no_room_or_no_ear
    told = <<~RUBY
      require "headway"
      require "puma"
      require "puma/server"
      Headway.start
      server = Puma::Server.new(->(_) { [200, {}, []] }, nil, log_writer: Puma::LogWriter.null)
      server.stop
      read, write = IO.pipe
      server.instance_variable_set(:@notify, write)
      nil while write.write_nonblock("x" * 65_536, exception: false) != :wait_writable
      server.stop
      read.close
      server.stop
      write.close
      server.stop
      p :told
    RUBY
    run = Harness::RubyProcess.eval(told)
    assert_equal ":told\n", run.out, run
  end

  private

  def puma(line, *flags, application: "")
    port = Harness::ServerProcess.free_port
    write("config.ru", [application, WIDER, ANSWER].join("\n"))
    write("config.rb", "threads 3, 3\nbind 'tcp://127.0.0.1:#{port}'\n#{line}\n")
    serve(*flags, gem_program("puma"), "-C", "config.rb", "config.ru").await_output(/Use Ctrl-C to stop/)
    port
  end

  # More connections than threads, so that each goes from thread to thread.
  def assert_whole_answers(port)
    answers = Array.new(8) do
      Thread.new do
        Thread.current.report_on_exception = false
        Net::HTTP.start("127.0.0.1", port) { |http| Array.new(60) { http.get("/").body } }
      end
    end
    assert_equal({ "whole true" => 480 }, answers.flat_map(&:value).tally)
  end
end
