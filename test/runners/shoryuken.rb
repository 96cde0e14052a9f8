# frozen_string_literal: true

# The worker of the application that bin/smoke runs.
require "aws-sdk-sqs"
require "shoryuken"
require_relative "seen"

# It names its queues by a host that only its own name server knows.
Aws::SQS::Client.remove_plugin(Aws::SQS::Plugins::QueueUrls)
Shoryuken.sqs_client = Aws::SQS::Client.new(endpoint: ENV.fetch("SQS"), region: "us-east-1", verify_checksums: false,
                                            credentials: Aws::Credentials.new("nobody", "nothing"))

class LabelWorker
  include Shoryuken::Worker
  shoryuken_options queue: "labels", auto_delete: true

  def perform(_message, number) = Seen.work_as("labels", Integer(number))
end
