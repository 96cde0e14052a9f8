# frozen_string_literal: true

module Headway
  module CLI
    module Doctor
      # One thing looked at: its name, whether it is :ok, a :fault or just a :note, what was found, and its figures.
      Check = Struct.new(:name, :status, :detail, :figures) do
        # @param name [String]
        # @param good [Boolean]
        # @param detail [String]
        # @param figures [Hash] medians and spreads, the unit in each key
        # @return [Check]
        def self.judge(name, good, detail, figures = {})
          new(name, good ? :ok : :fault, detail, figures)
        end

        # @return [Check] something to know that is neither good nor bad
        def self.note(name, detail)
          new(name, :note, detail, {})
        end

        def fault?
          status == :fault
        end

        # @return [Hash] as it is in the JSON
        def to_h
          { "name" => name, "status" => status.to_s, "detail" => detail }.merge(figures)
        end
      end
    end
  end
end
