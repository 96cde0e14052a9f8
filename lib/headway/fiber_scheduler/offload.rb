# frozen_string_literal: true

module Headway
  class FiberScheduler
    # Hands blocking operations to a pool.
    module Offload
      # The hook for pools that aren't an {OffloadPool}, which has a faster one.
      module Hook
        def blocking_operation_wait(work) = @worker_pool.call(work)
      end
      private_constant :Hook

      private

      def offload_to(pool)
        pool = @own_pool = (OffloadPool.new if Headway.supported?) if pool == true
        return unless pool
        raise ArgumentError, "pool is #{pool.inspect}: give true, nil, or one that can be called" unless pool.respond_to?(:call)

        @worker_pool = pool
        extend(pool.is_a?(OffloadPool) ? Native::OffloadHook : Hook)
      end
    end
    private_constant :Offload
  end
end
