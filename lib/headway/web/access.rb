# frozen_string_literal: true

module Headway
  class Web
    # Who may see the page, and who may change settings with it: the application says.
    class Access
      ENVIRONMENTS = %w[RAILS_ENV RACK_ENV APP_ENV].freeze
      # Hosts that no stranger's name server answers for. Any other name could be a stranger's that leads here (DNS rebinding), and
      # its pages would be of our origin.
      LOCAL = /\A(?:(?:[\w-]+\.)*(?:localhost|test)|\d{1,3}(?:\.\d{1,3}){3}|\[[\h:.]+\])(?::\d+)?\z/i
      private_constant :ENVIRONMENTS, :LOCAL

      # @param authenticate [#call, nil]
      # @param controls [#call, nil]
      # @raise [SettingError] nobody to ask, outside development
      def initialize(authenticate, controls)
        @authenticate = authenticate
        @controls = controls
        return if authenticate || development?

        raise SettingError, "Headway::Web has no block that says who may see it, which it must have outside development (#{said}): " \
                            "give Headway::Web.new { |env| … }, in braces"
      end

      # @param env [Hash]
      # @return [Boolean]
      def allowed?(env)
        return !!@authenticate.call(env) if @authenticate

        hosts(env).all? { |host| LOCAL.match?(host) }
      end

      # @return [String] a line for who is not allowed
      def refusal
        return "You may not see this page." if @authenticate

        "Without a block that says who may see it, this page is shown as localhost, by an address or below .test alone: " \
          "give Headway::Web.new { |env| … }"
      end

      # @param env [Hash]
      # @return [Boolean] whether settings may be changed
      def controls?(env)
        !@controls.nil? && !!@controls.call(env)
      end

      private

      # Browsers name one. A tunnel or a proxy may put its own in that one's place, and name it beside: Rails, too, looks at both.
      def hosts(env)
        [env.fetch("HTTP_HOST", "localhost").b, *env["HTTP_X_FORWARDED_HOST"].to_s.b.split(/,\s*/)]
      end

      # All that say something say development, and one does: a server started without any is not taken for a developer's, unless it
      # takes itself for one, as Puma and rackup do.
      def development?
        environments.any? && environments.values.all?("development")
      end

      def environments
        @environments ||= begin
          named = ENVIRONMENTS.to_h { |name| [name, ENV[name].to_s] }
          # Not defined?(::Rails.env), which would drop what is raised into the thread meanwhile.
          named["Rails.env"] = ::Rails.env.to_s if Object.const_defined?(:Rails) && ::Rails.respond_to?(:env)
          named.reject { |_, value| value.empty? }
        end
      end

      def said
        return "#{ENVIRONMENTS.first} and #{ENVIRONMENTS[1]} are not set" if environments.empty?

        environments.map { |name, value| "#{name} is #{value.inspect[0, 60]}" }.join(", ")
      end
    end
  end
end
