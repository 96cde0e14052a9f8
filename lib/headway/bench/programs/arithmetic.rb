# frozen_string_literal: true

# Work that needs nothing but the processor; required by cpu.rb and processes.rb.
# Keep to syntax that Ruby 2.6 parses: JRuby runs this, too, old ones included.

def work(iterations)
  number = 1
  iterations.times { number = (number * 1_000_003 + 97) % 1_000_000_007 }
  number
end
