# frozen_string_literal: true

module Headway
  module Metrics
    # A Rack application that answers what Prometheus asks for.
    #
    #   map("/metrics") { run Headway::Metrics::Endpoint.new }
    #   map("/metrics") { run Headway::Metrics::Endpoint.new(directory: "tmp/metrics") }   # several processes, such as Puma's workers
    #
    # Figures are collected once a second at most: however many scrape at once, one of them does the work and the others get its
    # answer.
    class Endpoint
      # @param directory [String, nil] where the processes of this application put their figures, to be answered together; see
      #   {Siblings}
      # @raise [SettingError] a directory that can't be written to
      def initialize(directory: nil)
        @answer = Answer.new(directory && Siblings.at(directory))
      end

      # Rails lists what is mounted by it.
      # @return [String]
      def inspect
        "#<#{self.class}>"
      end

      # @param env [Hash] Rack's
      # @return [Array(Integer, Hash, Array<String>)]
      def call(env)
        return plain(405, "GET or HEAD\n", "allow" => "GET, HEAD") unless %w[GET HEAD].include?(env["REQUEST_METHOD"])

        status, headers, body = ["", "/"].include?(env["PATH_INFO"].to_s) ? figures : plain(404, "nothing here\n")
        [status, headers, env["REQUEST_METHOD"] == "HEAD" ? [] : body]
      end

      private

      def figures
        text = @answer.text
        [200, { "content-type" => Exposition::CONTENT_TYPE, "cache-control" => "no-store", "content-length" => text.bytesize.to_s }, [text]]
      rescue StandardError => error
        plain(500, "no metrics: #{Reason.line(error)}\n")
      end

      def plain(status, text, headers = {})
        [status, { "content-type" => "text/plain", "content-length" => text.bytesize.to_s, **headers }, [text]]
      end

      # What is answered now. Apart from the endpoint, which Rack::Builder#freeze_app freezes.
      class Answer
        FRESH_S = 1.0
        private_constant :FRESH_S

        # @param siblings [Siblings, nil]
        def initialize(siblings)
          @siblings = siblings
          @lock = Mutex.new
        end

        # @return [String]
        def text
          @lock.synchronize { @siblings ? text_of_all : fresh_text }
        end

        private

        # The same text while nobody has anything new.
        def text_of_all
          families = @siblings.families(FRESH_S)
          @text = Exposition.text(families) unless families.equal?(@families)
          @families = families
          @text
        end

        # A forked child has its parent's text, which is not about it.
        def fresh_text
          now = ::Process.clock_gettime(::Process::CLOCK_MONOTONIC)
          unless @text && now - @at < FRESH_S && @pid == ::Process.pid
            @text = Metrics.text
            @at = now
            @pid = ::Process.pid
          end
          @text
        end
      end
      private_constant :Answer
    end
  end
end
