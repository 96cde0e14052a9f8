# frozen_string_literal: true

class LabelJob < ActiveJob::Base
  def perform(order) = order.update!(label: Picture.label(order))
end
