# frozen_string_literal: true

require "harness/trap_test"
require "json"

# Trap: a name that has ended is kept in so many bytes, and may be cut inside a character.
class ThreadNameTest < Harness::TrapTest
  def test_statistics_can_be_written_as_json_whatever_threads_are_called
    Headway.start(policy: :fair)
    ["\u00e9" * 60, "x\u00e9" * 60, "caf\xe9", "caf\xe9".dup.force_encoding(Encoding::ISO_8859_1)].each do |name|
      Thread.new { Thread.current.name = name }.join
    end
    ended = -> { Headway.stats[:threads].reject { |row| row[:alive] } }
    await("their exit") { ended.call.sum { |row| row[:count] } == 4 } # a little after they can be joined
    names = ended.call.map { |row| row[:name] }

    assert_operator names.size, :>=, 3
    names.each { |name| assert_predicate name, :valid_encoding? }
    assert_includes JSON.generate(names), "\u00e9" * 47
  end
end
