# frozen_string_literal: true

require "fiber_scheduler/scheduled_by_async"
require "pg"
require "redis"
require "servers/postgres"
require "sqlite3"

# Clients of databases, against a real PostgreSQL and a real Redis of the test's own, and SQLite.
class FiberSchedulerDatabasesTest < Minitest::Test
  include Scheduled
  include Harness::Serving

  def test_postgres
    postgres = Harness::Postgres.new(self, @directory)
    queries_at_once(postgres)
    a_query_that_times_out(postgres)
    a_transaction_and_who_waits_for_it(postgres)
  end

  def test_redis
    port = Harness::ServerProcess.free_port
    serve(*Harness::ServerProcess.redis(port, @directory), program: true)
      .await_output(/[Rr]eady to accept/)
    a_blocking_pop(port)
    increments_at_once(port)
    a_pop_that_times_out(port)
  end

  # It never asks for the hook, and a lock of another connection is waited for inside it.
  def test_sqlite_offloaded
    path = File.join(@directory, "test.sqlite3")
    SQLite3::Database.new(path) { |database| database.execute("create table numbers (number integer)") }
    @ticks = 0
    left = 8
    looping do
      Fiber.schedule { (sleep 0.002) && @ticks += 1 until left.zero? }
      8.times { |number| Fiber.schedule { insert(path, number) && left -= 1 } }
    end
    assert_equal (0...8).to_a, SQLite3::Database.new(path) { |database| return_numbers(database) }.then { @numbers.sort }
  ensure
    Headway::OffloadPool.default.close
  end

  private

  def connected(postgres)
    connection = PG.connect(**postgres.settings)
    yield connection
  ensure
    connection&.close
  end

  # Each waits for a lock, which goes when all of them do: one after another they would wait for ever.
  def queries_at_once(postgres)
    numbers = []
    waiting = "select count(*) from pg_locks where locktype = 'advisory' and not granted"
    looping do
      Fiber.schedule do
        connected(postgres) do |connection|
          connection.exec("select pg_advisory_lock(1)")
          20.times { |number| Fiber.schedule { numbers << number_behind_a_lock(postgres, number) } }
          sleep 0.005 until connection.exec(waiting).getvalue(0, 0) == "20"
          connection.exec("select pg_advisory_unlock(1)")
        end
      end
    end
    assert_equal (0...20).to_a, numbers.sort
  end

  def number_behind_a_lock(postgres, number)
    connected(postgres) { |connection| connection.exec_params("select $1::int from pg_advisory_lock_shared(1)", [number]).getvalue(0, 0).to_i }
  end

  def a_query_that_times_out(postgres)
    value = scheduled do
      connected(postgres) do |connection|
        assert_raises(Timeout::Error) { Timeout.timeout(0.05) { connection.exec("select pg_sleep(30)") } }
        connection.cancel
        connection.discard_results
        connection.exec("select 42").getvalue(0, 0)
      end
    end
    assert_equal "42", value
  end

  def a_transaction_and_who_waits_for_it(postgres)
    order = []
    changed = Thread::Queue.new
    scheduled { connected(postgres) { |connection| connection.exec("create table accounts (number int primary key, cents int); insert into accounts values (1, 0)") } }
    looping do
      Fiber.schedule do
        connected(postgres) do |connection|
          connection.transaction do
            connection.exec("update accounts set cents = 1 where number = 1")
            changed << true
            sleep 0.05
            order << :first
          end
        end
      end
      Fiber.schedule do
        changed.pop
        connected(postgres) { |connection| connection.exec("update accounts set cents = cents + 1 where number = 1") && order << :second }
      end
    end
    cents = scheduled { connected(postgres) { |connection| connection.exec("select cents from accounts").getvalue(0, 0) } }
    assert_equal [%i[first second], "2"], [order, cents]
  end

  def with_redis(port)
    redis = Redis.new(port: port, reconnect_attempts: 0, timeout: 20) # of its own, a second, is little on a machine under load
    yield redis
  ensure
    redis&.close
  end

  def a_blocking_pop(port)
    popped = []
    looping do
      10.times { Fiber.schedule { with_redis(port) { |redis| popped << redis.blpop("list", timeout: 10)&.last } } }
      Fiber.schedule { with_redis(port) { |redis| 10.times { |number| redis.rpush("list", number) } } }
    end
    assert_equal (0...10).map(&:to_s), popped.compact.sort
  end

  def increments_at_once(port)
    looping { 20.times { Fiber.schedule { with_redis(port) { |redis| redis.pipelined { |pipeline| 50.times { pipeline.incr("count") } } } } } }
    assert_equal "1000", scheduled { with_redis(port) { |redis| redis.get("count") } }
  end

  def a_pop_that_times_out(port)
    assert_nil scheduled { with_redis(port) { |redis| redis.blpop("nothing", timeout: 0.1) } }
    assert_raises(Timeout::Error) { scheduled { with_redis(port) { |redis| Timeout.timeout(0.05) { redis.blpop("nothing", timeout: 10) } } } }
  end

  # Each of them holds the lock while others wait for it, until the loop has gone on for a while.
  def insert(path, number)
    Headway.offload do
      SQLite3::Database.new(path) do |database|
        database.busy_handler_timeout = 20_000
        database.transaction(:immediate) do
          database.execute("insert into numbers values (?)", [number])
          enough = @ticks + 3
          sleep 0.001 until @ticks >= enough
        end
      end
    end
    true
  end

  def return_numbers(database) = @numbers = database.execute("select number from numbers").flatten
end

if RUBY_VERSION >= "3.4" # before that there is no hook that Async's pool could be tried with
  class AsyncDatabasesTest < FiberSchedulerDatabasesTest
    include ScheduledByAsync
  end
end
