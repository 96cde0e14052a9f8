# frozen_string_literal: true

# The same requests one after another and by several threads at once: I/O-bound threads wait together, so much is gained.
# Usage: io.rb '{"url": "http://…", "requests": 64, "concurrency": 16, "priority": 0}'

require "json"
require "net/http"
require "uri"
require_relative "measure"

# What fails at once isn't fast.
def get(uri)
  status = Net::HTTP.start(uri.host, uri.port, use_ssl: uri.scheme == "https", open_timeout: 10, read_timeout: 30) do |http|
    http.request(Net::HTTP::Get.new(uri)).code
  end
  raise "#{uri} answers with status #{status}" if status.match?(/\A[^23]/)
end

config = JSON.parse(ARGV.fetch(0))
uri = URI(config.fetch("url"))
requests = config.fetch("requests")
concurrency = [config.fetch("concurrency"), requests].min
Thread.report_on_exception = false # join raises it again, once
get(uri) # loads what is loaded at first use

sequential = measure { requests.times { get(uri) } }
concurrent = measure do
  queue = Queue.new(Array.new(requests, uri)).close
  Array.new(concurrency) do
    Thread.new do
      Thread.current.priority = config.fetch("priority")
      while (next_uri = queue.pop)
        get(next_uri)
      end
    end
  end.each(&:join)
end

puts JSON.generate(
  figures: { sequential:, concurrent: },
  policy: defined?(Headway.started?) && Headway.started? ? Headway.policy : nil
)
