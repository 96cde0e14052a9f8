# frozen_string_literal: true

require "test_helper"
require "headway"
require "harness/ruby_process"
require "servers/rails_application"

# What rails/cable_race.rb closes, with the real Action Cable.
class CableRaceTest < Minitest::Test
  APP = Harness::RailsApplication.text("action_controller", "").sub('require "headway"', "require \"action_cable/engine\"\n\\0")

  # A message is about to be put aside as the connection gets ready: the buffer of a Rails that switches threads there.
  SWITCHED = <<~RUBY
    Shop.configure { config.logger = Logger.new(nil) }
    Shop.initialize!
    ActionCable::Connection::Base
    inside, go_on = Queue.new, Queue.new
    class_of_buffer = Class.new(ActionCable::Connection::MessageBuffer) do
      define_method(:buffer) do |message|
        inside << true
        go_on.pop
        super(message)
      end
      private :buffer
    end
    received = []
    connection = Object.new
    connection.define_singleton_method(:receive) { |message| received << message }
    buffer = class_of_buffer.new(connection)
    come = Thread.new { buffer.append("subscribe") }
    inside.pop
    ready = Thread.new { buffer.process! }
    Thread.pass until ready.stop?
    go_on << true
    [come, ready].each(&:join)
    buffer.append("next")
    p received
  RUBY

  def setup
    skip Headway.unsupported_reason unless Headway.supported?
  end

  def test_a_message_that_comes_as_a_connection_gets_ready_is_received
    run = eval_with("")
    assert_equal "[\"subscribe\", \"next\"]\n", run.out, run
  end

  # Else the test doesn't show it.
  def test_without_headway_it_is_lost
    run = eval_with("Shop.configure { config.headway.enabled = false }")
    assert_equal "[\"next\"]\n", run.out, run
  end

  def test_who_receives_a_message_may_append_one
    run = Harness::RubyProcess.eval(<<~RUBY)
      #{APP}
      Shop.configure { config.logger = Logger.new(nil) }
      Shop.initialize!
      ActionCable::Connection::Base
      received = []
      connection = Object.new
      buffer = ActionCable::Connection::MessageBuffer.new(connection)
      connection.define_singleton_method(:receive) { |message| buffer.append("second") if received.push(message).one? }
      buffer.append("first")
      buffer.process!
      p received
    RUBY
    assert_equal "[\"first\", \"second\"]\n", run.out, run
  end

  private

  def eval_with(configuration) = Harness::RubyProcess.eval("#{APP}\n#{configuration}\n#{SWITCHED}")
end
