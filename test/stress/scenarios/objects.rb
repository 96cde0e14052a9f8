# frozen_string_literal: true

module Stress
  module Scenarios
    # ObjectSpace: walks over the heap, weak references, and finalizers, all of which have run when the process is gone.
    class Objects < Scenario
      @finalizers = 0
      class << self
        attr_accessor :finalizers
      end

      # Made where no object is in sight that it would keep alive.
      def self.finalizer(run, number)
        proc { run.report << [:finalized, number] unless run.forked? }
      end

      def round
        walks = values_of(Array.new(rand(1..2)) { start_thread { ObjectSpace.each_object(Class).count } })
        check(walks.all? { |count| count > 100 }, "the heap has lost its classes")
        weak = ObjectSpace::WeakMap.new
        keys = Array.new(20) { |number| "key #{number}" }
        keys.each { |key| weak[key] = key }
        GC.start if rand(4).zero?
        check(keys.all? { |key| weak[key].equal?(key) }, "a weak reference to a living object is gone")
        define_finalizers(5)
        account(:walks, walks.size, walks.size)
      end

      private

      def define_finalizers(count)
        return if self.class.finalizers >= 100

        count.times do
          ObjectSpace.define_finalizer(Object.new, self.class.finalizer(@run, self.class.finalizers += 1))
        end
        @run.report << [:finalizers_issued, count]
      end
    end
  end
end
