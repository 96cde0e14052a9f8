# frozen_string_literal: true

# Whatever of Headway was loaded before Rails, by `headway run` or Puma's plugin, loaded headway/base: this file is evaluated when the
# application, which has Rails by then, requires "headway".
require_relative "headway/base"
Headway.join_rails
