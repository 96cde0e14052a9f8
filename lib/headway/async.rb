# frozen_string_literal: true

require_relative "base"
return if Headway::Copies.instead(__FILE__)

begin
  require "async"
rescue LoadError => error
  raise unless error.path == "async"

  raise LoadError, "headway/async needs the gem async: add it to the Gemfile", cause: nil
end

module Headway
  # The one-liner for applications that let Async build its scheduler, such as Falcon's:
  #
  #   require "headway/async"
  #
  # Every Async::Scheduler hands blocking operations to a {Headway::OffloadPool} of its own from then on, which ends with it. One
  # that has a worker_pool keeps that. Before Ruby 3.4 the VM doesn't ask a scheduler to run operations elsewhere, and nothing
  # changes.
  module AsyncOverlay
    # Falcon reads config.ru, and with it whatever the application requires, in the loop that is to serve it.
    def self.join(scheduler)
      return if scheduler.closed?

      # Its run has begun; its turns are still to come.
      scheduler.define_singleton_method(:run_once) { |*timeout| Headway.interactive { super(*timeout) } }
      return if scheduler.instance_variable_get(:@worker_pool)

      scheduler.instance_variable_set(:@worker_pool, OffloadPool.new)
      scheduler.singleton_class.prepend(OffloadPool::Hook)
    end

    def initialize(*arguments, worker_pool: OffloadPool.new, **options)
      super
      singleton_class.prepend(OffloadPool::Hook) if worker_pool.is_a?(OffloadPool)
    end

    # As {FiberScheduler#run}: an interactive thread.
    def run(...) = Headway.interactive { super }
  end

  if RUBY_VERSION >= "3.4" && Headway.supported?
    if Async::Scheduler.instance_method(:initialize).parameters.any? { |kind, name| kind == :keyrest || name == :worker_pool }
      Async::Scheduler.prepend(AsyncOverlay)
      ObjectSpace.each_object(Async::Scheduler) { |scheduler| AsyncOverlay.join(scheduler) }
    else
      Notices.add("headway/async does nothing: Async #{Async::VERSION} takes no worker_pool; 2.21.1 and newer do")
    end
  end
end
