# frozen_string_literal: true

module Headway
  # Text in a terminal's columns: Chinese, Japanese, Korean characters and pictures take two, combining marks none.
  module TextWidth
    WIDE = [0x1100..0x115f, 0x2e80..0x303e, 0x3041..0xa4cf, 0xac00..0xd7a3, 0xf900..0xfaff, 0xfe30..0xfe6f,
            0xff00..0xff60, 0xffe0..0xffe6, 0x20000..0x3fffd].freeze
    PICTURE = /\A[\p{Emoji_Presentation}&&[^\u{1f1e6}-\u{1f1ff}]]\z/ # of a flag's two letters each takes one
    private_constant :WIDE, :PICTURE

    class << self
      # @return [Integer]
      def of(text)
        return text.length if text.ascii_only?

        text.each_char.sum { |character| columns(character) }
      end

      # @param output [IO]
      # @return [Integer, nil] the columns of the terminal that it is; nil: it is none, or doesn't say
      def of_terminal(output)
        return unless output.respond_to?(:tty?) && output.tty?

        require "io/console"
        _, width = output.winsize
        width unless width.zero?
      rescue LoadError, SystemCallError
        nil
      end

      # @return [String] cut or filled with blanks to exactly so many columns
      def fit(text, width)
        text = cut(text, width)
        text + " " * (width - of(text))
      end

      # @return [String]
      def cut(text, width)
        return text if of(text) <= width
        return "" if width < 1

        kept = +""
        used = 0
        text.each_char do |character|
          used += columns(character)
          break if used > width - 1

          kept << character
        end
        kept << "…"
      end

      private

      def columns(character)
        return 0 if character.match?(/\A[\p{Mn}\p{Me}\p{Cf}]\z/)

        code = character.ord
        character.match?(PICTURE) || WIDE.any? { |range| range.cover?(code) } ? 2 : 1
      end
    end
  end
end
