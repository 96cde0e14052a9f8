# frozen_string_literal: true

preload_app!
bind "tcp://127.0.0.1:#{ENV.fetch("PORT", 3000)}"
workers Integer(ENV.fetch("WEB_CONCURRENCY", 0))
count = Integer(ENV.fetch("RAILS_MAX_THREADS", 10))
threads count, count
