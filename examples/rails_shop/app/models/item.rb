# frozen_string_literal: true

class Item < ApplicationRecord
  has_many :orders

  # Of the same maker.
  def others = Item.where(maker:).where.not(id:).order(:name).limit(5)

  # @return [Integer] cents, which only the price service knows
  def price = PriceService.price(id)
end
