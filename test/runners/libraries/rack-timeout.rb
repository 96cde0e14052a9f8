# frozen_string_literal: true

require_relative "checks"
require_relative "puma_server"

RACKUP = File.read(File.join(__dir__, "rack-timeout.ru"))
MIX = [*%w[/fine /fine /fine /compute/3 /sleep/3], "/fine", "/wait_in_time"].freeze
EXPECTED = { "/fine" => [200, "in time"], "/wait_in_time" => [200, "in time"],
             "/compute/3" => [503, "late"], "/sleep/3" => [503, "late"] }.freeze

def served(puma, clients: 10, each: 14)
  answers = in_threads(clients) do |client|
    puma.keep { |get| Array.new(each) { |number| MIX[(client + number) % MIX.size].then { [_1, *get.call(_1)] } } }
  end.flatten(1)
  answers.reject { |path, *answer| EXPECTED.fetch(path) == answer }.push(answers.size)
end

# Requests that are done at about the time their timeout comes. Between its last look whether one is done and raising, rack-timeout may be
# overtaken by it, with Headway or without: then who comes next in its thread, mostly Puma itself, has the exception.
def close_calls(puma, clients: 10, each: 40)
  in_threads(clients) do |client|
    puma.keep { |get| Array.new(each) { |number| get.call(number.odd? ? "/compute/edge" : "/sleep/edge") } }
  end.flatten(1).map(&:last).tally
end

# What Headway counts, once all is sent.
def counts(puma)
  eventually { JSON.parse(puma.get("/counts").last).then { |counts| counts if counts["open"].empty? } } || JSON.parse(puma.get("/counts").last)
end

checks do
  ["headway first", "timeout first"].each do |order|
    PumaServer.open(RACKUP, "threads 12, 12", "ORDER" => order) do |puma|
      check("every request's answer, #{order}", [140]) { served(puma) }
      check("close calls, #{order}", 400) do
        answers = close_calls(puma)
        answers.slice("in time", "late", "another's timeout").values.sum == 400 ? 400 : answers
      end
      check("afterwards, #{order}", [140]) { served(puma) }
      if defined?(Headway)
        check("what Headway counted, #{order}", [true, []]) do
          counts = counts(puma)
          [counts["finished"] == counts["started"] && counts["metrics"] == counts["finished"] || counts, counts["open"]]
        end
        check("Headway in Puma, #{order}", [Headway.policy.to_s, Headway.preempt.to_s, []]) do
          JSON.parse(puma.get("/counts").last).values_at("policy", "preempt", "notices")
        end
      end
      check("Puma's own errors, #{order}", []) { puma.output.lines.grep(/Error|Exception/).grep_v(/RequestTimeoutException/).first(3) }
    end
  end
end
