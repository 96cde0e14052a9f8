# frozen_string_literal: true

require "json"
require "rack-timeout"
require "headway" unless ENV["HEADWAY"] == "0"

SERVICE_TIMEOUT = 1.5

def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

def compute_for(seconds)
  ends = now + seconds
  (1..1000).sum { |number| number % 7 } while now < ends
end

APPLICATION = lambda do |env|
  case env["PATH_INFO"]
  when "/fine" then compute_for(0.005) || sleep(0.005)
  when "/wait_in_time" then sleep 0.3
  when "/compute/3" then compute_for(3 * SERVICE_TIMEOUT)
  when "/sleep/3" then sleep 3 * SERVICE_TIMEOUT
  when "/compute/edge", "/sleep/edge"
    left = SERVICE_TIMEOUT / 10 - 0.001 + 0.001 * rand
    env["PATH_INFO"].start_with?("/c") ? compute_for(left) : sleep(left)
  end
  [200, { "content-type" => "text/plain" }, ["in time"]]
rescue Rack::Timeout::RequestTimeoutException => error
  error.env.equal?(env) ? raise : [200, { "content-type" => "text/plain" }, ["another's timeout"]]
end

# Each request has an answer, whatever is raised; and is counted.
class Outermost
  @started = 0
  @lock = Mutex.new
  class << self
    def start = @lock.synchronize { @started += 1 }

    def counts
      { started: @started, finished: FINISHED.size, open: Thread.list.filter_map { |thread| thread[:headway_work]&.then { _1.name.to_s } },
        metrics: metrics, policy: Headway.policy, preempt: Headway.preempt, notices: Headway.notices }
    end

    private

    def metrics = Headway::Metrics.text.scan(/^ruby_gvl_request_wait_seconds_count.* (\d+)$/).sum { |count,| count.to_i }
  end

  def initialize(app) = @app = app

  def call(env)
    return [200, {}, [JSON.generate(Outermost.counts)]] if env["PATH_INFO"] == "/counts"

    Outermost.start
    begin
      @app.call(env)
    rescue Rack::Timeout::Error, Rack::Timeout::RequestTimeoutException
      [503, { "content-type" => "text/plain" }, ["late"]]
    end
  end
end

# Its timeout is a tenth for requests that are to be done when it comes.
class Timeouts
  def initialize(app)
    @usual, @edge = [1, 10].map { |part| Rack::Timeout.new(app, service_timeout: SERVICE_TIMEOUT / part, wait_timeout: false) }
  end

  def call(env) = (env["PATH_INFO"].end_with?("edge") ? @edge : @usual).call(env)
end

Rack::Timeout::Logger.disable
middlewares = [Timeouts]
if defined?(Headway)
  FINISHED = Queue.new
  Headway::Work.subscribe { |work| FINISHED << work.name }
  middlewares.unshift(Headway::Rack)
end
Headway::Metrics.text if defined?(Headway) # counts from now on
Array.new(2) { Thread.new { loop { compute_for(1) } } }

use Outermost
(ENV["ORDER"] == "timeout first" ? middlewares.reverse : middlewares).each { |middleware| use middleware }
run APPLICATION
