# frozen_string_literal: true

require_relative "checks"
require "mysql2"
require "trilogy"
require "tmpdir"
require "timeout"

# A MariaDB of its own, behind a socket.
def served
  Dir.mktmpdir("headway-mariadb") do |directory|
    data, socket, log = %w[data socket log].map { |name| File.join(directory, name) }
    user = ["--user=#{Etc.getpwuid.name}"]
    said = { out: log, err: %i[child out], in: File::NULL }
    system("mariadb-install-db", "--no-defaults", "--datadir=#{data}", "--auth-root-authentication-method=normal", *user, **said) or
      raise File.read(log)
    pid = Process.spawn("mariadbd", "--no-defaults", "--datadir=#{data}", "--socket=#{socket}", "--skip-networking", "--max-connections=200",
                        "--pid-file=#{directory}/pid", *user, **said)
    eventually(60) { File.socket?(socket) && outcome { Trilogy.new(socket: socket, username: "root").ping } == true } or raise File.read(log)
    yield socket
  ensure
    Process.kill(:TERM, pid) && Process.wait(pid) if pid
  end
end

CLIENTS = {
  "mysql2" => [->(socket) { Mysql2::Client.new(socket: socket, username: "root", database: "smoke") }, ->(row) { row.values }],
  "trilogy" => [->(socket) { Trilogy.new(socket: socket, username: "root", database: "smoke") }, ->(row) { row }]
}.freeze

served do |socket|
  Trilogy.new(socket: socket, username: "root").then do |client|
    client.query("CREATE DATABASE smoke")
    client.query("CREATE TABLE smoke.items (id INT AUTO_INCREMENT PRIMARY KEY, number INT) ENGINE=InnoDB")
  end
  checks do
    CLIENTS.each do |name, (connect, values)|
      query = ->(client, sql) { client.query(sql).then { |found| found.to_a.flat_map(&values) } }
      check("#{name}: each thread's own answers", []) do
        in_threads(10) do |thread|
          client = connect.call(socket)
          Array.new(40) { |number| [thread * 40 + number, query.call(client, "SELECT #{thread * 40 + number}").first] }
               .reject { |asked, found| asked == found }.tap { client.close }
        end.flatten
      end
      check("#{name}: transactions that wait for each other", 200) do
        ["TRUNCATE items", "INSERT INTO items VALUES (1, 0)"].each { |sql| connect.call(socket).query(sql) }
        in_threads(10) do
          client = connect.call(socket)
          20.times do
            client.query("BEGIN")
            number = query.call(client, "SELECT number FROM items WHERE id = 1 FOR UPDATE").first
            compute(300)
            client.query("UPDATE items SET number = #{number + 1} WHERE id = 1")
            client.query("COMMIT")
          end
        end
        query.call(connect.call(socket), "SELECT number FROM items WHERE id = 1").first
      end
      check("#{name}: large answers", [2000]) do
        in_threads(6) do
          query.call(connect.call(socket), "SELECT REPEAT('x', 1000) FROM seq_1_to_2000").count { |text| text.size == 1000 }
        end.uniq
      end
      # mysql2 lets a timeout in when the query is over.
      check("#{name}: late", { "Timeout::Error" => 24 }) do
        tally(8) do
          Array.new(3) { connect.call(socket).then { |client| outcome { Timeout.timeout(0.1) { client.query("SELECT SLEEP(2)") } } } }
        end
      end
      check("#{name}: killed", 16) do
        in_threads(16) do
          client = connect.call(socket)
          thread = Thread.new { client.query("SELECT SLEEP(20)") }
          sleep(0.05) && thread.kill.join(30)
        end.compact.size
      end
      check("#{name}: waiting without the GVL", true) do
        began = now
        in_threads(8) { query.call(connect.call(socket), "SELECT SLEEP(1)") }
        now - began < 7
      end
    end
  end
end
