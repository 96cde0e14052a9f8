# frozen_string_literal: true

module Headway
  module Rails
    # While something records, what Rails does becomes spans in the trace: queries, templates, the cache, jobs, actions. The first
    # three are parts of what goes on, be it only the application's start: no requests that predictions are about.
    class Markers
      EVENTS = /\A(?:sql\.active_record|render_\w+\.action_view|cache_\w+\.active_support|perform\.active_job|process_action\.action_controller)\z/
      VIEWS = %r{\A.*/app/views/}
      private_constant :VIEWS

      def start(name, _id, payload)
        return unless Recorder.recording? && payload.is_a?(Hash) && !payload.frozen? # without a place for the mark nobody would end it

        Integrations::Guard.masked("Headway's markers") { payload[:headway_mark] = begin_span(name, text(name, payload)) }
      end

      def finish(_name, _id, payload)
        return unless payload.is_a?(Hash) && payload.key?(:headway_mark) # it may be anything, and a Hash make up what it is asked for

        Integrations::Guard.masked("Headway's markers") { Native.end_mark(payload.delete(:headway_mark), nil) }
      end

      private

      def begin_span(event, name)
        case event
        when "process_action.action_controller" then Native.begin_request(name)
        when "perform.active_job" then Native.begin_job(name)
        else Native.begin_part(name)
        end
      end

      def text(name, payload)
        case name
        when "sql.active_record" then "sql #{payload[:name]}".rstrip
        when "perform.active_job" then "perform #{payload[:job].class.name}"
        when "process_action.action_controller" then "#{payload[:controller]}##{payload[:action]}"
        when /\Arender_/ then "render #{payload[:identifier].to_s.sub(VIEWS, "")}".rstrip
        else name.delete_suffix(".active_support")
        end
      end
    end
  end
end
