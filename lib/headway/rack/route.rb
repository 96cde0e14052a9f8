# frozen_string_literal: true

module Headway
  class Rack
    # Names a request's class: requests that are alike. The route where the framework tells it, else the path with what looks like
    # an identifier left out.
    class Route
      METHODS = %w[GET HEAD POST PUT PATCH DELETE OPTIONS TRACE].to_h { |name| [name, name] }.freeze
      # 42, a UUID, a hash, a token
      IDENTIFIER = %r{/(?:\d+|\h{8}-\h{4}-[\h-]+|\h{16,}|[^/]{41,})(?=/|\.|\z)}
      FORMAT = "(.:format)"
      MOST_NAMES = 500
      LONGEST = 200 # characters of a path
      OTHERS = "(others)"
      private_constant :METHODS, :IDENTIFIER, :FORMAT, :MOST_NAMES, :LONGEST, :OTHERS

      def initialize
        @names = {}
        @paths = {}
      end

      # @param env [Hash]
      # @param status [Integer, nil] nil: nobody has routed the request yet
      # @return [String] such as "GET /users/:id"; of a bounded number
      def name(env, status = nil)
        route = framework_route(env)
        return bounded(route) if route

        method = METHODS.fetch(env["REQUEST_METHOD"], "OTHER")
        status == 404 ? "#{method} (not found)" : by_path(method, env["SCRIPT_NAME"], env["PATH_INFO"])
      end

      private

      def framework_route(env)
        sinatra = env["sinatra.route"] and return sinatra
        rails = env["action_dispatch.route_uri_pattern"] || env["action_dispatch.route"]&.path&.spec&.to_s
        "#{METHODS.fetch(env["REQUEST_METHOD"], "OTHER")} #{rails.delete_suffix(FORMAT)}" if rails
      rescue NoMethodError # in another version of the framework it may be something else
        nil
      end

      # A path that comes often is looked at once.
      def by_path(method, script, path)
        path = path.to_s
        path = "#{script.b}#{path.b}".force_encoding(Encoding::UTF_8) unless script.nil? || script.empty?
        paths = @paths[method] ||= {}
        paths[path] || bounded("#{method} #{pattern(path)}").tap do |name|
          paths[path] = name if paths.size < MOST_NAMES && path.size <= LONGEST
        end
      end

      def pattern(path)
        return "/" if path.empty?

        named = path.dup.force_encoding(Encoding::UTF_8).scrub.gsub(IDENTIFIER, "/:id") # servers give it as bytes
        named.size > LONGEST ? "#{named[0, LONGEST]}…" : named
      end

      # Once there are so many, a new one is one of the others: scanners ask for thousands.
      def bounded(name)
        @names[name] || (@names.size < MOST_NAMES ? @names[name] = name : OTHERS)
      end
    end
  end
end
