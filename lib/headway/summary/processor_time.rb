# frozen_string_literal: true

module Headway
  class Summary
    # What no policy gives who waits for a thread that has the GVL: a processor for it. Reports say it, too.
    module ProcessorTime
      # Shorter times are not worth a word.
      SLIGHT_S = 0.005
      # From this share on of the time that the GVL was held, that the holder was on no processor is worth a sentence.
      MUCH = 0.1
      # From this share of its periods on, a quota that was used up is.
      OFTEN = 0.05
      private_constant :MUCH, :OFTEN

      class << self
        # @param off_s [Numeric] how long the holder was on no processor
        # @param held_s [Numeric] how long the GVL was held
        # @param quotas [Array<Hash>] of CPU quotas: their :periods, and in how many of them they were used up (:exhausted)
        # @param since [String, nil] from when on, with a space before it; nil: all the time
        # @param least [Boolean] it may have been for longer
        # @return [String, nil] a sentence or two
        def sentence(off_s, held_s, quotas, since: nil, least: false)
          worst = quotas.select { |quota| often?(quota) }.max_by { |quota| quota[:exhausted].fdiv(quota[:periods]) }
          said = [*(off(off_s, held_s, since, worst, least) if off_s >= [SLIGHT_S, MUCH * held_s].max), *(exhausted(worst) if worst)]
          said.join(" ") if said.any?
        end

        private

        def often?(quota) = quota[:exhausted] >= [1, OFTEN * quota[:periods]].max

        def off(off_s, held_s, since, quota, least)
          "For #{"at least " if least}#{Text.percent(off_s / held_s)} of the time that the GVL was held#{since} (#{Text.duration(off_s)}), the holder was on no processor" \
            "#{": other programs, a quota or threads without the GVL took it, or native code slept" unless quota}."
        end

        def exhausted(quota)
          "The CPU quota was used up in #{quota[:exhausted]} of its #{quota[:periods]} periods, and then every thread stands still until the next: " \
            "no policy helps there, a larger quota does."
        end
      end
    end
  end
end
