# frozen_string_literal: true

module Harness
  # What a thread still runs once its block is done, in no list of threads any more: the method `exception` of what it hands on to the
  # main thread, in which this is raised. No SystemExit, which Ruby hands on by itself, but Minitest lets pass: a test that it struck at the
  # wrong place would end its process, and say nothing.
  class LastWord < StandardError
    # @return [Thread] that ends at once, and runs the block as it does
    def self.of_a_thread(&word)
      Thread.new(new) do |error|
        Thread.current.report_on_exception = false
        Thread.current.abort_on_exception = true
        raise error
      ensure
        Thread.current[:last_word] = word
      end
    end

    def exception(*)
      Thread.current[:last_word]&.call
      self
    end
  end
end
