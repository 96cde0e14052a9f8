# frozen_string_literal: true

class Order < ApplicationRecord
  belongs_to :item

  validates :amount, numericality: { only_integer: true, in: 1..1000 }
end
