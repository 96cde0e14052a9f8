# frozen_string_literal: true

preload_app!
plugin :headway
# Each worker of each machine a file of its own, of the last million events.
headway recorder: { file: "#{ENV.fetch("TRACE_DIRECTORY")}/", mode: :flight }
