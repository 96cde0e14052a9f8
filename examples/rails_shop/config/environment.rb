# frozen_string_literal: true

require_relative "application"
Shop::Application.initialize!
