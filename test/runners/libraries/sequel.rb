# frozen_string_literal: true

require_relative "checks"
require "sequel"
require "tmpdir"
require "timeout"

# SQLite's own waiting for another connection's lock keeps the GVL, and so keeps who has the lock from going on; this one doesn't. But while
# it waits, whoever collects a statement that was left open waits for the connection, with the GVL: no thread goes on, with Headway or
# without. So there is one connection where transactions are cut short.
PATIENT = ->(connection) { connection.busy_handler_timeout = 30_000 }

# With each of Sequel's pools of threads.
def open_database(directory, pool, connections = 4)
  database = Sequel.sqlite(File.join(directory, "#{pool}.sqlite3"), pool_class: pool, max_connections: connections, pool_timeout: 30,
                                                                    after_connect: PATIENT)
  database.run("PRAGMA journal_mode = WAL")
  database.create_table?(:items) { primary_key :id; Integer :number }
  database
end

Dir.mktmpdir("headway-smoke") do |directory|
  checks do
    %i[threaded timed_queue].each do |pool|
      database = open_database(directory, pool)
      items = database[:items]
      check("rows of many threads, #{pool}", [*0...200]) do
        in_threads(10) { |thread| 20.times { |number| items.insert(number: thread * 20 + number) && compute(500) } }
        items.select_map(:number).sort
      end
      check("transactions, #{pool}", 100) do
        items.update(number: 0)
        in_threads(10) do
          10.times do
            database.transaction(mode: :immediate) { items.where(id: 1).update(number: items.get(:number) + 1) && compute(500) }
          end
        end
        items.where(id: 1).get(:number)
      end
      database.disconnect
      database = open_database(directory, pool, 1)
      items = database[:items]
      check("rolled back, #{pool}", [40, 200]) do
        said = tally(4) do
          Array.new(10) do
            outcome { Timeout.timeout(0.05) { database.transaction { items.insert(number: 1) && loop { compute(200) } } } }
          end
        end
        [said.values.sum - said[true].to_i, items.count]
      end
      check("none to be had, #{pool}", { "Sequel::PoolTimeout" => 16 }) do
        small = Sequel.sqlite(File.join(directory, "#{pool}.sqlite3"), pool_class: pool, max_connections: 1, pool_timeout: 0.05)
        taken, release = Queue.new, Queue.new
        holder = Thread.new { small.synchronize { taken << 1 && release.pop } }
        taken.pop
        tally(8) { Array.new(2) { outcome { small.get(1) } } }.tap { release << 1 && holder.join }
      end
      check("killed amid computing, #{pool}", 200) do
        20.times do
          inside = Queue.new
          thread = Thread.new { database.transaction { items.insert(number: 1) && inside << 1 && loop { compute(200) } } }
          inside.pop(timeout: 20) && thread.kill.join
        end
        items.count
      end
      check("connections, #{pool}", [true, 200]) do
        few = database.pool.size <= 1
        database.disconnect
        [few, items.count]
      end
    end
  end
end
