# frozen_string_literal: true

require_relative "checks"
require_relative "puma_server"

WORKER = <<~RUBY
  run(lambda do |env|
    (1..200_000).sum { |number| number.to_s.size } if env["PATH_INFO"] == "/compute"
    [200, {}, [Process.pid.to_s]]
  end)
RUBY

def answers(puma, path, count) = in_threads(6) { Array.new(count) { outcome { puma.get(path) }.then { [*_1] } } }.flatten(1)

# Whose answer is a worker's that isn't there: of none of them.
def workers(puma) = eventually(30) { answers(puma, "/pid", 6).map(&:last).uniq.grep(/\A\d+\z/).then { |pids| pids.size > 1 && pids.sort } }

# A worker that ends closes connections that have said nothing yet, as on stock Ruby: what is said then comes back as one of these.
def lost(said) = said.uniq - [200, "EOFError", "Errno::ECONNRESET"]

checks do
  impatient = "workers 2\nthreads 4, 4\nworker_timeout 6\nworker_check_interval 1 if respond_to?(:worker_check_interval)"
  PumaServer.open(WORKER, impatient) do |puma|
    check("workers that compute aren't taken for hung", [workers(puma), { 200 => 90 }]) do
      ends = now + 9
      said = answers(puma, "/compute", 15).map(&:first).tally
      sleep 0.1 until now > ends
      [workers(puma), said]
    end
    check("one that is stopped is replaced, and answers go on", [true, 200]) do
      before = workers(puma)
      Process.kill(:STOP, before.first.to_i)
      [eventually(50) { puma.output.include?("Terminating timed out worker") } && true, eventually { outcome { puma.get("/pid") }.first }]
    end
    check("both", true) { workers(puma).is_a?(Array) }
    check("phased restart under load", [[], true]) do
      before = workers(puma)
      puma.signal(:USR1)
      said = answers(puma, "/compute", 10).map(&:first)
      [lost(said), eventually(50) { (workers(puma) & before).empty? }]
    end
  end
  killer = <<~RUBY
    workers 2
    threads 4, 4
    before_fork do
      require "puma_worker_killer"
      PumaWorkerKiller.reaper_status_logs = false
      PumaWorkerKiller.enable_rolling_restart(3, 0)
    end
  RUBY
  PumaServer.open(WORKER, killer) do |puma|
    check("puma_worker_killer: a worker is replaced, no request lost", [true, []]) do
      before = workers(puma)
      said = []
      replaced = eventually(50) do
        said.concat(answers(puma, "/compute", 1).map(&:first))
        answers(puma, "/pid", 4).any? { |_, pid| !before.include?(pid) }
      end
      [replaced, lost(said)]
    end
  end
end
