# frozen_string_literal: true

require "rails/generators/base"

module Headway
  module Generators
    # rails generate headway:install
    class InstallGenerator < ::Rails::Generators::Base
      desc "Writes config/initializers/headway.rb, which names every option of config.headway"
      source_root File.expand_path("templates", __dir__)

      def copy_initializer
        copy_file "initializer.rb", "config/initializers/headway.rb"
      end
    end
  end
end
