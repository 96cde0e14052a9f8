# frozen_string_literal: true

# An application's upstream is there already; this one is the example's own.
require Rails.root.join("price_service")
PriceService.start
