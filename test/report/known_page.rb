# frozen_string_literal: true

require "report/browser"
require "report/page_fixture"

module Report
  # Ten seconds of four threads, small enough to work out by hand:
  #
  #   worker-1   runs 0–2, suspended, waits 4–5, runs 5–6, suspended
  #   worker-2   suspended, waits 1–2, runs 2–5, suspended
  #   quiet      suspended, waits 3–6.5, runs 6.5–7, suspended
  #   gc         4–4.25
  class KnownPage < PageFixture
    def initialize(**facts)
      super(headline: "worker-1 waited because of `Report#render`")
      process(**facts)
      thread("main", [[:suspended, 10]])
      thread("worker-1", [[:running, 2], [:suspended, 2], [:ready, 1], [:running, 1], [:suspended, 4]])
      thread("worker-2", [[:suspended, 1], [:ready, 1], [:running, 3], [:suspended, 5]])
      thread("quiet", [[:suspended, 3], [:ready, 3.5], [:running, 0.5], [:suspended, 3]])
      gc([[0, 4], [1, 0.25], [0, 5.75]])
      data[:gc] = { count: 1, total_s: 0.25, max_s: 0.25 }
      data[:marks] = [{ thread: 1, name: "GET /report", start_s: 2.0, end_s: 4.0 }, { thread: 2, name: "deploy", start_s: 8.0, end_s: nil }]
      frames = [%w[<main> app.rb], %w[Report#render app/report.rb], %w[JSON.generate app/json.rb], %w[Array#map <cfunc>]]
      data[:blame] = {
        samples: 8, weight_s: 4.0, folded: 0,
        frames: frames.zip([1, 42, 7, 0]).map { |(method, file), line| { method:, file:, line: } },
        stacks: [{ thread: 1, frames: [1, 0], weight_s: 1.0, samples: 2 }, { thread: 1, frames: [3, 1, 0], weight_s: 2.0, samples: 4 }, { thread: 2, frames: [2, 0], weight_s: 1.0, samples: 2 }]
      }
    end
  end

  # What tests of the page share: one browser for all of them, and words for what a reader does. After each test nothing
  # may have been complained about in the console.
  module InBrowser
    class << self
      def browser
        @browser ||= begin
          program = Browser.program
          Browser.new(program).tap { |browser| Minitest.after_run { browser.close } } if program
        end
      end

      def say_missing
        @said ||= $stderr.puts("The HTML report was NOT looked at: there is no Chromium here. Install one (Debian: " \
                               "apt-get install chromium) or name one in CHROMIUM.") || true
      end
    end

    def setup
      super
      @folder = Dir.mktmpdir("headway-page")
      return if browser

      InBrowser.say_missing
      skip "no Chromium or Chrome on this machine"
    end

    def teardown
      FileUtils.rm_rf(@folder)
      assert_empty browser.complaints if browser
      super
    end

    def time_limit = 180 # a browser on a busy machine

    def browser = InBrowser.browser

    def evaluate(expression) = browser.evaluate(expression)

    def open_page(fixture, **options)
      browser.open(fixture.write(File.join(@folder, "page.html")), **options)
      browser.settle
    end

    # Spaces that do not break are spaces.
    def text(selector) = evaluate("document.querySelector(#{selector.to_json}).textContent").gsub(/[\u00a0\u202f]/, " ")

    def press(selector)
      evaluate("document.querySelector(#{selector.to_json}).click()")
      browser.settle
    end

    def type(selector, what)
      evaluate("(() => { const field = document.querySelector(#{selector.to_json}); field.focus(); field.value = #{what.to_json};" \
               "field.dispatchEvent(new Event('input')) })()")
      browser.settle
    end

    # Where on the screen a thread is at a time.
    def place(thread, time)
      evaluate(<<~SCRIPT)
        (() => {
          document.getElementById("timeline").scrollIntoView({ behavior: "instant" })
          const section = document.getElementById("timeline").dataset
          const box = document.getElementById("canvas").getBoundingClientRect()
          const row = [...document.querySelectorAll("#names li.thread")].find((item) => item.querySelector("button").textContent === #{thread.to_json})
          const line = row.getBoundingClientRect()
          return [box.left + (#{time} - section.from) / (section.to - section.from) * box.width, line.top + line.height / 2]
        })()
      SCRIPT
    end

    def hover(thread, time)
      browser.mouse("mouseMoved", *place(thread, time))
      browser.settle
    end

    def card(*keys) = evaluate("({ ...document.getElementById('card').dataset })").values_at(*keys)

    def held_by
      evaluate("[...document.querySelectorAll('#card li[data-name]')].map((item) => [item.dataset.name, +item.dataset.seconds])")
    end

    # [from, to] of what is seen, in seconds.
    def view = evaluate("(({ from, to }) => [+from, +to])(document.getElementById('timeline').dataset)")

    def percentile(name) = evaluate("+document.querySelector('[data-percentile=\"#{name}\"]').dataset.value")

    # The values behind a table's cells; numbers as numbers.
    def rows_of(table)
      rows = evaluate("[...document.querySelectorAll('[data-table=#{table.to_json}] tbody tr')].map((row) => [...row.cells].map((cell) => cell.dataset.value))")
      rows.map { |row| row.map { |value| Float(value, exception: false) || value } }
    end

    def whom = rows_of("Who waited for whom").map { _1.first(3) }
  end
end
