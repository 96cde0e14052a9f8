# frozen_string_literal: true

# What Headway relies on in CRuby, asserted on stock Ruby without Headway. When
# a new Ruby breaks the scheduler, a failure here says which assumption fell.

Dir[File.join(__dir__, "ruby_compatibility", "*_test.rb")].sort.each { |file| require file }
