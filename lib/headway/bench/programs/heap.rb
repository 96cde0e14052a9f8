# frozen_string_literal: true

# What stays in memory, as much as in a small Rails application; for programs that allocate. In a heap with next to nothing in it a
# few thousand objects more, such as the code of what is measured, halve what is free, and garbage is collected twice as often.
module Heap
  KEPT = Array.new(150_000) { |number| [number.to_s] }
  Process.warmup
end
