# frozen_string_literal: true

class ApplicationController < ActionController::Base
  # The shop has no accounts, so there is nothing that a forged request could misuse.
  skip_forgery_protection

  rescue_from(ActiveRecord::RecordNotFound) { head :not_found }
  rescue_from(ActiveRecord::RecordInvalid) { |error| render json: { error: error.message }, status: :unprocessable_content }
end
