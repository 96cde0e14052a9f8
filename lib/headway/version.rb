# frozen_string_literal: true

module Headway
  VERSION = "0.1.0"
end
