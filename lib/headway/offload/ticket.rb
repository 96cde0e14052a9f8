# frozen_string_literal: true

module Headway
  class OffloadPool
    # A job's place in the queue, for which one worker comes.
    #
    # @!attribute job [Job] the worker comes for: another one than at first, when that was given up
    # @!attribute called [Boolean, nil] whether a worker has come
    Ticket = Struct.new(:job, :called)
    private_constant :Ticket

    # The tickets of jobs that were given up. While all workers are at something long, the queue would else be full of what nobody waits
    # for. They stand in the queue, from the middle of which nothing can be taken; so others get them.
    #
    # To be used with the pool's lock.
    class Vacancies
      def initialize
        @tickets = {}.compare_by_identity
      end

      # @param ticket [Ticket, nil] of a job that was given up
      def add(ticket)
        @tickets[ticket] = true if ticket && !ticket.called
      end

      # @return [Ticket, nil] that is the job's from now on
      def take(job)
        ticket, = @tickets.shift
        ticket.job = job if ticket
        ticket
      end

      # @param ticket [Ticket] that is in the queue no more
      # @return [Job] that has it
      def call(ticket)
        @tickets.delete(ticket)
        ticket.called = true
        ticket.job
      end
    end
    private_constant :Vacancies
  end
end
