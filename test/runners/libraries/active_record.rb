# frozen_string_literal: true

require_relative "checks"
require "active_record"
require "tmpdir"
require "timeout"

class Item < ActiveRecord::Base; end

def connected = ActiveRecord::Base.connection_pool

Dir.mktmpdir("headway-smoke") do |directory|
  ActiveRecord::Base.establish_connection(adapter: "sqlite3", database: File.join(directory, "items.sqlite3"), pool: 4,
                                          checkout_timeout: 30, reaping_frequency: 0.05, idle_timeout: 0.1, timeout: 30_000)
  ActiveRecord::Schema.verbose = false
  ActiveRecord::Schema.define { create_table(:items) { |table| table.integer :number } }
  checks do
    check("rows of many threads", [*0...200]) do
      in_threads(10) do |thread|
        20.times do |number|
          connected.with_connection { Item.create!(number: thread * 20 + number) }
          compute(500)
        end
      end
      Item.pluck(:number).sort
    end
    check("the query cache and reads", { 200 => 100 }) do
      tally(10) { Array.new(10) { connected.with_connection { Item.cache { Item.count && Item.count } } } }
    end
    # One at a time: sequel.rb says why.
    check("rolled back", [{ "Timeout::Error" => 10 }, 200]) do
      said = Array.new(10) do
        outcome { Timeout.timeout(0.2) { Item.transaction { Item.create!(number: 1) && loop { compute(200) } } } }
      end.tally
      [said, Item.count]
    end
    check("none to be had", { "ActiveRecord::ConnectionTimeoutError" => 8 }) do
      ActiveRecord::Base.connection_handler.clear_active_connections!
      taken, release = Queue.new, Queue.new
      holders = Array.new(4) { Thread.new { connected.with_connection { taken << 1 && release.pop } } }
      4.times { taken.pop }
      tally(8) { outcome { connected.checkout(0.1) } }.tap { 4.times { release << 1 } && holders.each(&:join) }
    end
    check("connections of threads that are gone are reaped", true) do
      4.times { Thread.new { ActiveRecord::Base.lease_connection.execute("SELECT 1") && compute }.join }
      eventually { connected.stat[:dead].zero? && connected.stat[:busy] <= 1 }
    end
    check("idle ones are flushed", true) do
      ActiveRecord::Base.connection_handler.clear_active_connections!
      eventually { connected.stat[:connections] <= 1 }
    end
    check("asynchronous loads", [200] * 20) do
      ActiveRecord.async_query_executor = :global_thread_pool
      Array.new(20) { Item.all.load_async }.map { |items| items.to_a.size }
    end
    check("in forked children", [0] * 3) do
      forked(3) { in_threads(4) { connected.with_connection { Item.count } }.uniq == [200] }
    end
  end
end
