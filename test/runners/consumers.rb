# frozen_string_literal: true

require "socket"
require_relative "runner"

# On librdkafka's own brokers, which speak Kafka's protocol on this machine: consumer groups, offsets, produced messages.
class Karafka < Runner
  BROKERS = <<~RUBY
    require "ffi"
    module Brokers
      extend FFI::Library
      ffi_lib ARGV.fetch(0)
      attach_function :rd_kafka_new, [:int, :pointer, :pointer, :size_t], :pointer
      attach_function :rd_kafka_mock_cluster_new, [:pointer, :int], :pointer
      attach_function :rd_kafka_mock_cluster_bootstraps, [:pointer], :string
      attach_function :rd_kafka_mock_topic_create, [:pointer, :string, :int, :int], :int
    end
    cluster = Brokers.rd_kafka_mock_cluster_new(Brokers.rd_kafka_new(0, nil, nil, 0), 3)
    Brokers.rd_kafka_mock_topic_create(cluster, "labels", 4, 3)
    puts "brokers " + Brokers.rd_kafka_mock_cluster_bootstraps(cluster) + " ready"
    $stdout.flush
    sleep
  RUBY

  private

  def prepare
    brokers = start(RbConfig.ruby, "-e", BROKERS, Dir.glob(File.join(gem("karafka-rdkafka").full_gem_path, "ext/librdkafka.*")).first)
    @env["BROKERS"] = brokers.await("the brokers") { brokers.output[/^brokers (\S+) ready/, 1] }
    @env["KARAFKA_ROOT_DIR"] = @directory
    @env["KARAFKA_BOOT_FILE"] = File.expand_path("karafka.rb", __dir__)
    ruby("require #{@env["KARAFKA_BOOT_FILE"].dump}; (1..#{JOBS}).each { |n| Karafka.producer.produce_sync(topic: 'labels', " \
         "payload: n.to_s, partition: n % 4) }")
  end

  def command = [Gem.bin_path("karafka", "karafka"), "server"]

  def work = "labels"
end

# On a server that speaks the protocol of SQS, from npm: fauxqs.
class Shoryuken < Runner
  private

  def prepare
    port = TCPServer.open("127.0.0.1", 0) { |server| server.addr[1] }
    @env["FAUXQS_PORT"] = port.to_s
    @env["SQS"] = "http://127.0.0.1:#{port}"
    server = start(File.join(ENV.fetch("FAUXQS"), "node_modules/.bin/fauxqs"))
    server.await("fauxqs") { TCPSocket.new("127.0.0.1", port).close || true rescue nil } # rubocop:disable Style/RescueModifier
    @app = File.expand_path("shoryuken.rb", __dir__)
    ruby("require #{@app.dump}; Shoryuken.sqs_client.create_queue(queue_name: 'labels'); (1..#{JOBS}).each { LabelWorker.perform_async(_1.to_s) }")
  end

  def command = [Gem.bin_path("shoryuken", "shoryuken"), "-r", @app, "-q", "labels", "-c", "5"]

  def work = "labels"
end
