# frozen_string_literal: true

module Headway
  module Rails
    # Splits the time of each SQL query: into what the thread waited for the GVL, and the rest, which is the database's and the
    # client's. Subscribers that are told later find it in the event's payload, as payload[:headway][:gvl_wait] and [:database], in seconds;
    # those that are told before find nothing there. The request's or job's {Work} has the sum, as parts[:sql].
    class Queries
      EVENTS = "sql.active_record"
      PART = "Headway's account of queries"
      BEFORE = :headway_before
      private_constant :PART, :BEFORE

      def start(_name, _id, payload)
        Integrations::Guard.masked(PART) { payload[BEFORE] = Headway.thread_account }
      end

      def finish(_name, _id, payload)
        Integrations::Guard.masked(PART) do
          before = payload.delete(BEFORE)
          after = before && Headway.thread_account
          split(before, after, payload) if after
        end
      end

      private

      def split(before, after, payload)
        wall = after.sum - before.sum
        wait = after[1] - before[1]
        return if wait.negative? || wall.negative? # Headway was started anew meanwhile

        payload[:headway] = { gvl_wait: wait, database: wall - wait }
        work = Work.current
        work.add(:sql, wall, wait) if work&.here? && !payload[:cached]
      end
    end
  end
end
