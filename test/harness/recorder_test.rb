# frozen_string_literal: true

require "harness/trap_test"
require "headway/trace"
require "tmpdir"

module Harness
  # A test of the recorder: each in a process of its own, with a directory for its traces.
  class RecorderTest < TrapTest
    def setup
      super
      @directory = File.realpath(Dir.mktmpdir("headway-recorder"))
      @in = Process.pid
    end

    def teardown
      Headway.stop
      FileUtils.rm_rf(@directory) if Process.pid == @in
      super
    end

    def file(name = "out.headway") = File.join(@directory, name)

    def files = Dir.children(@directory).sort

    # Records the block to a file and returns what it says.
    def recorded(mode = :observe, **options)
      with_headway(mode) do
        assert Headway::Recorder.start(file: file, **options), Headway.notices.join("; ")
        yield
        Headway::Recorder.stop
      end
      analysis
    end

    def analysis(*paths) = Headway::Trace.open(*(paths.empty? ? [file] : paths)).to_h

    def thread_named(name, from: analysis)
      from[:threads].find { |row| row[:name] == name } or flunk "no thread #{name} among #{from[:threads].map { |row| row[:name] }}"
    end

    # Kinds of a thread's events, in order.
    def kinds(name)
      number = thread_named(name)[:number]
      Headway::Trace.open(file).events.filter_map { |_, _, thread, kind,| kind if thread == number }
    end

    # A program in a process of its own, which has FILE.
    def program(code, *options, **settings)
      RubyProcess.eval("require 'headway'; FILE = #{file.inspect}\n#{code}", *options, **settings)
    end
  end
end
