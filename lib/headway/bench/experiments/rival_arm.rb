# frozen_string_literal: true

module Headway
  module Bench
    # Where a thread competes with computing ones there is one arm more: what becomes of it when each of those is a process of its
    # own. Nobody takes the GVL from it then, so this is the best a scheduler of threads could do on the machine.
    class RivalArm < Arm
      KINDS = { **Arm::KINDS, "processes" => { apart: true } }.freeze
    end
  end
end
