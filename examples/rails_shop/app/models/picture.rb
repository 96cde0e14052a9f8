# frozen_string_literal: true

require "chunky_png"

# PNG files, drawn in Ruby: what keeps the GVL.
module Picture
  SIZE = 120
  private_constant :SIZE

  class << self
    # @param items [Array<Item>]
    # @return [String] of all of them, in rows of four
    def catalogue(items)
      sheet = ChunkyPNG::Image.new(4 * SIZE, (items.size / 4.0).ceil * SIZE, ChunkyPNG::Color::WHITE)
      items.each_with_index { |item, place| sheet.replace!(of(item), place % 4 * SIZE, place / 4 * SIZE) }
      sheet.to_blob(:fast_rgb)
    end

    # @param order [Order]
    # @return [String] what is put on its parcel
    def label(order)
      image = of(order.item).resample_bilinear(2 * SIZE, 2 * SIZE)
      order.id.digits(2).each_with_index { |bit, place| image.rect(place * 8, 0, (place * 8) + (bit * 4), 40, :black, :black) }
      image.to_blob(:fast_rgb)
    end

    private

    def of(item)
      image = ChunkyPNG::Image.new(SIZE, SIZE, ChunkyPNG::Color::WHITE)
      colour = ChunkyPNG::Color.from_hsl(item.id * 47 % 360, 0.5, 0.5)
      image.circle(SIZE / 2, SIZE / 2, 20 + (item.stock % 30), colour, colour)
    end
  end
end
