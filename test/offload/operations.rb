# frozen_string_literal: true

require "tmpdir"
require "headway"

# Operations that try a pool's patience.
module Operations
  # Goes on for that long whatever the pool raises.
  def stubborn(seconds)
    stop = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
    begin
      sleep 0.0005 while Process.clock_gettime(Process::CLOCK_MONOTONIC) < stop
    rescue Headway::OffloadPool::Cancelled
      retry
    end
    yield if block_given?
  end

  def with_fifo
    Dir.mktmpdir do |folder|
      File.mkfifo("#{folder}/fifo")
      yield "#{folder}/fifo"
    end
  end
end
