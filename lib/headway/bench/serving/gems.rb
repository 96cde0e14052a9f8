# frozen_string_literal: true

module Headway
  module Bench
    class Serving
      # Gems the benchmarks need and Headway doesn't. An arm's environment loads no bundle, so their folders are named.
      module Gems
        class << self
          # @param name [String] of a gem
          # @return [Boolean]
          def installed?(name) = Gem::Specification.find_all_by_name(name).any?

          # @param name [String] of a gem
          # @return [Array<String>] what Ruby's command line needs to load it
          # @raise [Error] it isn't installed
          def flags(name)
            specifications(name).values.flat_map(&:full_require_paths).flat_map { |path| ["-I", path] }
          rescue Gem::MissingSpecError => error
            raise Error, "this benchmark needs the gem #{error.name}: gem install #{name}"
          end

          private

          # With those it depends on. What comes with Ruby is found there.
          def specifications(name, found = {})
            return found if found.key?(name)

            specification = Gem::Specification.find_by_name(name)
            return found if specification.default_gem?

            found[name] = specification
            specification.runtime_dependencies.each { |dependency| specifications(dependency.name, found) }
            found
          end
        end
      end
    end
  end
end
