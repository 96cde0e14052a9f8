# frozen_string_literal: true

# What stays in memory, as much as in a small Rails application; for programs that allocate. In a heap with next to nothing in it a
# few thousand objects more, such as the code of what is measured, halve what is free, and garbage is collected twice as often. Ruby
# keeps objects of each size apart, and with no place left for one it sweeps the places of all, some milliseconds at once, however
# many of another size are free: so there are some of every size, and places between them.
module Heap
  # Fields of an array that is as large as a place => how many. examples/rails_shop has 207,000, 52,000 and 24,000 objects in places of
  # the first three sizes, and a few hundred in larger ones; the strings in the arrays are of the first.
  FIELDS = { 3 => 100_000, 8 => 50_000, 18 => 24_000, 38 => 300, 78 => 300 }.freeze
  KEPT = FIELDS.flat_map do |fields, count|
    Array.new(count) do |number|
      Array.new(fields) # left to the collector
      Array.new(fields, number.to_s)
    end
  end
  4.times { GC.start } # what survives three is old

  # Asked for by the benchmark while there is nothing to do (Serving::Swept). What a waiting thread's C stack happens to have left of its
  # last request keeps that alive until the thread has another, and what is alive at three collections is old: only the next full one,
  # after a quarter of an hour here, finds that it is garbage, and until then it makes all others slower. How much becomes old hangs on
  # whether two or three collections fit in between, and on what overwrites the stack: one server had twice as much as another.
  trap("WINCH") { GC.start }
end
