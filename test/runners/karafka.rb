# frozen_string_literal: true

# The boot file of the application that bin/smoke runs.
require "karafka"
require_relative "seen"

class LabelsConsumer < Karafka::BaseConsumer
  def consume
    messages.each { |message| Seen.work_as("labels", Integer(message.raw_payload)) }
  end
end

class App < Karafka::App
  setup do |config|
    config.kafka = { "bootstrap.servers": ENV.fetch("BROKERS"), "auto.offset.reset": "earliest" }
    config.client_id = config.group_id = "labels"
    config.concurrency = 4
  end

  routes.draw { topic("labels") { consumer LabelsConsumer } }
end
