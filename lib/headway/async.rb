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
  # Every Async::Scheduler made from then on hands blocking operations to a {Headway::OffloadPool} of its own, which ends with it. One
  # that is given a worker_pool keeps that. Before Ruby 3.4 the VM doesn't ask a scheduler to run operations elsewhere, and nothing
  # changes.
  module AsyncOverlay
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
    else
      Notices.add("headway/async does nothing: Async #{Async::VERSION} takes no worker_pool; 2.21.1 and newer do")
    end
  end
end
