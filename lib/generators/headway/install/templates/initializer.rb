# frozen_string_literal: true

Rails.application.configure do
  # Headway is on in every environment but test. HEADWAY=0 in the environment turns it off, whatever this file says.
  # config.headway.enabled = Rails.env.production?

  # How threads are scheduled: :fair, :quantum, or :observe, which only measures.
  # config.headway.policy = :fair
  # config.headway.quantum_ms = 100
  # config.headway.preempt = :signal

  # What is measured: requests (env["headway.request"]), Active Job's jobs, and each SQL query's wait for the GVL.
  # config.headway.requests = true
  # config.headway.jobs = true
  # config.headway.queries = true

  # "GVL wait: 1.2ms" in the log line that ends a request: what it waited so far, ahead of its action, too.
  # config.headway.log = true

  # Requests: the share that is looked at; a Server-Timing header, which every client sees; a class of your own naming.
  # config.headway.sample = 1
  # config.headway.server_timing = Rails.env.development?
  # config.headway.route = ->(env) { "#{env["REQUEST_METHOD"]} #{env["PATH_INFO"]}" }

  # A recorder; Rails' queries, templates, cache calls, jobs and actions become spans in its traces. This one keeps the last
  # million events and writes them to a file when a request has waited for longer than wait_threshold seconds in all. %p is the
  # process id: each process, a console too, has a recorder of its own. Its files, of 24 MB at most (one as it ends, ten of such
  # requests), are there until you remove them.
  # config.headway.recorder = { mode: :flight, file: Rails.root.join("log/headway-%p.headway").to_s }
  # config.headway.wait_threshold = 0.5
  # config.headway.markers = true
end
