# frozen_string_literal: true

require "rack"
require "rack/mock_request"

# Headway::Rack in front of an application, and the works that it makes.
module RackStack
  # A body that works while it is sent.
  class Streamed
    def each
      3.times { |number| sleep(0.01); yield number.to_s }
    end

    def close = @closed = true
    def closed? = @closed
  end

  private

  def stack(app, **options) = Headway::Rack.new(app, **options)

  def environment(more = {}) = Rack::MockRequest.env_for("/").merge(more)

  # The works that were finished during the block.
  def finished(mode = :fair_signal)
    works = []
    asked = Headway::Work.subscribe { |work| works << work }
    with_headway(mode) { yield }
    works
  ensure
    Headway::Work.unsubscribe(asked)
  end
end
