# frozen_string_literal: true

module Headway
  module Bench
    class Serving
      # What a server can run under. Its threads are made by Puma or Sidekiq and have the priority those give them: an arm that is nothing
      # but a priority would be stock by another name. In headway-said heavy requests say that they are, with Headway.batch.
      class ServedArm < Arm
        KINDS = Arm::KINDS.reject { |_, kind| kind.key?(:priority) }.merge(
          "headway-said" => { variables: { "HEADWAY_BENCH_SAYS" => "1" }, headway: { policy: "fair", preempt: "signal" } }
        ).freeze
      end
    end
  end
end
