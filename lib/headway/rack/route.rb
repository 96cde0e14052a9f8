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
      # Where env["SCRIPT_NAME"] as the application left it is: Rack::URLMap takes its own back.
      PLACE = "headway.script_name"
      # Where {Headway::Web} is that answered.
      WEB = "headway.mount"
      # Parameters of a route that are in no path.
      TARGETS = %i[controller action format].freeze
      PARAMETERS = "action_dispatch.request.path_parameters"
      MOST_NAMES = 500
      MOST_STRAY_PATHS = 25 # where a framework tells routes: half of the classes that metrics keep apart
      LONGEST = 200 # characters of a path
      OTHERS = "(others)"
      private_constant :METHODS, :IDENTIFIER, :FORMAT, :PLACE, :WEB, :TARGETS, :PARAMETERS, :MOST_NAMES, :MOST_STRAY_PATHS, :LONGEST, :OTHERS

      # Names of one kind, a bounded number of them: scanners ask for thousands.
      class Names
        def initialize
          @names = {}
          @of_paths = {}
        end

        # @return [String] one of {OTHERS} once there are so many
        def one(name, most = MOST_NAMES)
          @names[name] || (@names.size < most ? @names[name] = name : OTHERS)
        end

        # @return [String, nil]
        def known(method, path)
          paths = @of_paths[method] and paths[path]
        end

        # A path that comes often is looked at once.
        def of_path(method, path, most)
          known(method, path) || one("#{method} #{yield path}", most).tap do |name|
            paths = @of_paths[method] ||= {}
            paths[path] = name if paths.size < MOST_NAMES && path.size <= LONGEST
          end
        end

        def empty?
          @names.empty?
        end
      end
      private_constant :Names

      # None takes the others' room: what was asked for before the first route is known, or is answered in front of the router, as
      # redirects and files are, is anybody's to make up.
      def initialize
        @routes = Names.new
        @paths = Names.new
        @provisional = Names.new
      end

      # Where a mounted engine or application is has to be seen as soon as it has answered: the innermost is the first to.
      #
      # @param env [Hash]
      # @return [void]
      def look(env)
        script = env["SCRIPT_NAME"]
        env[PLACE] ||= script unless script.nil? || script.empty?
      end

      # @param env [Hash]
      # @param status [Integer, nil] nil: nobody has routed the request yet
      # @return [String] such as "GET /users/:id"; of a bounded number
      def name(env, status = nil)
        route = framework_route(env)
        return @routes.one(route) if route

        method = env["REQUEST_METHOD"]
        return "#{standard(method)} (not found)" if status == 404

        path = env[WEB] || whole(env)
        names = status ? @paths : @provisional
        names.known(method, path) || names.of_path(standard(method), path, most(names)) { pattern(path) }
      end

      private

      def standard(method)
        METHODS.fetch(method, "OTHER")
      end

      def most(names)
        names.equal?(@provisional) || @routes.empty? ? MOST_NAMES : MOST_STRAY_PATHS
      end

      def framework_route(env)
        sinatra = env["sinatra.route"]
        rails = env["action_dispatch.route_uri_pattern"] || env["action_dispatch.route"]
        return unless sinatra || rails

        method, pattern = sinatra&.split(" ", 2)
        return "#{method} #{joined(place(env, pattern) || lead(env, pattern), pattern)}" if pattern

        rails = rails&.path&.spec&.to_s unless rails.is_a?(String)
        pattern = rails && rails_pattern(env, rails) or return
        "#{standard(env["REQUEST_METHOD"])} #{pattern}"
      # In another version of the framework it may be something else, and routes may be in any encoding. Not StandardError, which a
      # server's timeout may be.
      rescue NoMethodError, ArgumentError, TypeError, EncodingError
        nil
      end

      # Rails tells the innermost route. An engine's begins where the engine is mounted; another application that is mounted has
      # that of its mount, without a format.
      def rails_pattern(env, pattern)
        own = pattern.end_with?(FORMAT) ? with_format(pattern.delete_suffix(FORMAT), asked_for(env)) : pattern
        if (place = place(env))
          place.end_with?(pattern) ? place : joined(place(env, own), own)
        else # what is mounted at the root has all the paths there are
          own unless own == "/" && !["", "/"].include?(env["PATH_INFO"])
        end
      end

      # A table as CSV takes no less than its page does: what the path asks for, of the formats that Rails knows, but for a page.
      def asked_for(env)
        format = env[PARAMETERS].to_h[:format]
        return if format.nil? || format == "html" || !env["PATH_INFO"].to_s.end_with?(suffix = ".#{format}")

        suffix if defined?(::Mime) && ::Mime[format]
      end

      # A route may have one format only, and its path ends so already.
      def with_format(pattern, suffix)
        suffix && !pattern.end_with?(suffix) ? "#{pattern}#{suffix}" : pattern
      end

      def joined(place, pattern)
        place && pattern == "/" ? place : "#{place}#{pattern}"
      end

      # @return [String, nil] where the application is that answered, with the parameters on the way there, not its own route's
      def place(env, pattern = "")
        script = env[PLACE] or return
        parameters = env[PARAMETERS].to_h.reject { |name,| TARGETS.include?(name) || pattern.include?(":#{name}") }
        named = script.b.split("/").map do |part|
          name = parameters.key(part.gsub(/%(\h\h)/) { $1.hex.chr(Encoding::BINARY) }.force_encoding(Encoding::UTF_8))
          name ? ":#{name}" : part
        end
        pattern(named.join("/"))
      end

      # The same where Rack::URLMap has taken it back: what the path has more than the pattern, if none of its parts may be several.
      def lead(env, pattern)
        return if pattern.match?(%r{[^\w/:.-]})

        parts = whole(env).b.split("/").reject(&:empty?)
        more = parts.size - pattern.split("/").count { |part| !part.empty? }
        pattern("/#{parts.first(more).join("/")}") if more.positive?
      end

      def whole(env)
        script = env["SCRIPT_NAME"]
        path = env["PATH_INFO"].to_s
        script.nil? || script.empty? ? path : "#{script.b}#{path.b}".force_encoding(Encoding::UTF_8)
      end

      def pattern(path)
        return "/" if path.empty?

        named = path.dup.force_encoding(Encoding::UTF_8).scrub.gsub(IDENTIFIER, "/:id") # servers give it as bytes
        named.size > LONGEST ? "#{named[0, LONGEST]}…" : named
      end
    end
  end
end
