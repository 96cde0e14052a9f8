# frozen_string_literal: true

require "etc"

module Headway
  module Recorder
    # Where a trace goes when many processes write theirs to one place: a directory, or a name with places to be filled in, so that
    # no two traces have one name, of whatever machine, process and time.
    module FileName
      # The host alone isn't enough, nor is the process: in containers every main process is number 1, again after each restart.
      UNIQUE = "%h-%p-%t.headway"
      # A place, or a percent sign that begins none.
      PLACE = /%(.?)/.freeze
      # What a trace begins with: core/trace_format.h.
      MAGIC = "\x89HWT\r\n\x1a\n".b.freeze
      private_constant :PLACE, :MAGIC

      class << self
        # @param path [String, #to_path] a file; a directory: one that is there, or a path that ends with a slash. In a file's name (not
        #   in its directory's) %h is the host, %p the process id, %t the time, %% a percent sign
        # @return [String] a file's absolute path
        # @raise [SettingError] it is no name, or there is another character after a %
        def resolve(path)
          path = pattern(checked(path, "file"))
          base = File.basename(path)
          File.join(File.dirname(path), base.b.gsub(PLACE) { fill($1, path) }.force_encoding(base.encoding))
        end

        # @param path [String]
        # @return [String] the absolute path, with places that are still to be filled in
        def pattern(path)
          raise SettingError, "file is \"\": give a name, or a directory" if path.empty?

          absolute = absolute(path)
          path.end_with?("/") || File.directory?(absolute) ? File.join(absolute, UNIQUE) : absolute
        end

        # A name and the current directory are bytes to the system; in a locale that can't read them File.absolute_path won't join them.
        #
        # @param path [String, #to_path]
        # @param from [String] what has that value, for the error
        # @return [String]
        # @raise [SettingError] it is no name, or there is no current directory
        def absolute(path, from: "file")
          path = checked(path, from)
          return File.expand_path(path) if path.start_with?("/") || in_a_home?(path)

          File.absolute_path(path, Dir.pwd.force_encoding(path.encoding))
        rescue Errno::ENOENT
          raise SettingError, "#{from} is #{path.scrub.inspect[0, 200]}: the current directory is gone; give an absolute path"
        end

        # @param path [String] a file's
        # @return [Boolean] whether it is there and is no trace, be it a damaged one: nothing is written to that
        def spared?(path)
          File.file?(path) && !MAGIC.start_with?(File.binread(path, MAGIC.bytesize).to_s)
        rescue SystemCallError
          File.size?(path) ? true : false # what can't be read may be anything
        end

        # @param path [String] a file's
        # @return [Boolean] whether a trace is there, be it a damaged one
        def trace?(path)
          File.file?(path) && File.binread(path, MAGIC.bytesize) == MAGIC
        rescue SystemCallError
          false
        end

        # @param path [String] as {pattern} returns it
        # @return [Boolean] whether each process gets a file of its own
        def unique?(path)
          File.basename(path).scan(PLACE).include?(["p"])
        end

        # @param name [String] a file's, with places
        # @return [String] of a regular expression: what that name may have become
        def expression(name)
          name.split(/(%.)/).map { |part| part.match?(/\A%[hpt]\z/) ? ".+" : Regexp.escape(part.sub("%%", "%")) }.join
        end

        private

        # An IO that is no File has a name, too, such as <STDOUT>, but no file of that name.
        def checked(path, from)
          raise TypeError if path.is_a?(IO) && !path.is_a?(File)

          File.path(path).tap { |text| File.basename(text) } # which refuses what File.path doesn't
        rescue TypeError, ArgumentError, EncodingError
          raise SettingError, "#{from} is #{path.inspect[0, 200]}: give a file's name"
        end

        # As to a shell: where there is no user of that name, a ~ is a character like any other.
        def in_a_home?(path)
          path.start_with?("~") && File.expand_path(path)
        rescue ArgumentError
          false
        end

        def fill(place, path)
          case place
          when "h" then host
          when "p" then Process.pid.to_s
          when "t" then Time.now.utc.strftime("%Y%m%dT%H%M%S%LZ")
          when "%" then "%"
          else
            raise SettingError, "file is #{path.inspect[0, 200]}: %#{place} is no place to be filled in; give %h (host), %p (process " \
                                "id), %t (time) or %% (a percent sign)"
          end
        end

        def host
          Etc.uname[:nodename].to_s.gsub(/[^\w.-]+/, "_")
        end
      end
    end
  end
end
