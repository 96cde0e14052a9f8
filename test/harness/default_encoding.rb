# frozen_string_literal: true

module Harness
  # What programs set for themselves, or a locale for them.
  module DefaultEncoding
    # @param default [Symbol] default_external or default_internal
    def with_encoding(default, encoding)
      before = Encoding.public_send(default)
      set_encoding(default, encoding)
      yield
    ensure
      set_encoding(default, before)
    end

    private

    def set_encoding(default, encoding)
      verbose, $VERBOSE = $VERBOSE, nil # Ruby warns of it
      Encoding.public_send(:"#{default}=", encoding)
    ensure
      $VERBOSE = verbose
    end
  end
end
