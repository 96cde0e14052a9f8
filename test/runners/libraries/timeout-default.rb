# frozen_string_literal: true

# The same with the timeout that comes with this Ruby: this one is run outside of the bundle.
require_relative "timeout"
