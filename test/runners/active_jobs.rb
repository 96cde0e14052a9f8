# frozen_string_literal: true

require_relative "runner"

# On SQLite, in the processes it forks.
class SolidQueue < Runner
  include Runner::Rails

  private

  def database = @env["DATABASE_URL"] = "sqlite3:#{@directory}/queue.sqlite3?timeout=10000" # as a generated database.yml has it

  def schema = "load #{File.join(gem("solid_queue").full_gem_path, "lib/generators/solid_queue/install/templates/db/queue_schema.rb").dump}"

  def command
    ["-e", "require './config/environment'; require 'solid_queue/cli'; SolidQueue::Cli.start(%w[start --skip-recurring])"]
  end
end

# On a PostgreSQL of its own, which listens on a socket in its directory only.
class GoodJob < Runner
  include Runner::Rails

  private

  # It refuses to run as root.
  def database
    require "etc"
    user = Process.uid.zero? ? Etc.getpwnam("nobody") : nil
    data = File.join(@directory, "data")
    Dir.mkdir(data, 0o700)
    File.chown(user.uid, user.gid, data) if user
    finish(program("initdb"), "-D", data, "-U", "runner", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C", uid: user&.uid)
    server = start(program("postgres"), "-D", data, "-k", data, "-h", "", "-F", uid: user&.uid)
    server.await("PostgreSQL") { server.output.include?("ready to accept connections") }
    @env["DATABASE_URL"] = "postgresql:///postgres?host=#{data}&user=runner"
  end

  def program(name)
    places = ENV.fetch("PATH").split(File::PATH_SEPARATOR) + Dir.glob("/usr/lib/postgresql/*/bin").sort.reverse
    places.map { |place| File.join(place, name) }.find { |file| File.executable?(file) } or
      raise "#{name} is missing (Debian: apt-get install postgresql)"
  end

  # The migration that its generator would write.
  def schema
    template = File.join(gem("good_job").full_gem_path, "lib/generators/good_job/templates/install/migrations/create_good_jobs.rb.erb")
    code = File.read(template).sub("<%= migration_version %>", "[7.1]")
    File.write(File.join(@directory, "migration.rb"), code)
    "require './migration'; CreateGoodJobs.migrate(:up)"
  end

  def command = [Gem.bin_path("good_job", "good_job"), "start", "--max-threads=5"]
end
