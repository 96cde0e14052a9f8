# frozen_string_literal: true

makers = %w[Arnold Bauer Clarke Duval Evans]
things = %w[Lamp Chair Table Shelf Mirror Clock Vase Rug]
Item.insert_all(Array.new(200) do |number|
  { name: "#{things[number % things.size]} #{number + 1}", maker: makers[number % makers.size], stock: number * 7 % 40 }
end)
