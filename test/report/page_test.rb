# frozen_string_literal: true

require "test_helper"
require "digest"
require "report/browser"
require "report/known_page"
require "report/page_fixture"

# The file itself: what it was built from and what it must not contain. Needs no browser.
class PageFileTest < Minitest::Test
  SOURCES = File.expand_path("../../report/src", __dir__)
  PAGE = File.read(Report::PageFixture::TEMPLATE, encoding: "UTF-8")

  def test_is_built_from_the_sources
    paths = Dir.glob("**/*", base: SOURCES).select { |path| File.file?(File.join(SOURCES, path)) }.sort
    digest = Digest::SHA256.new
    paths.each { |path| digest << path << "\0" << File.binread(File.join(SOURCES, path)) << "\0" }
    assert_includes PAGE, %(<meta name="headway-sources" content="#{digest.hexdigest}">),
                    "lib/headway/report/page.html is not what report/src builds: run rake page"
  end

  def test_is_small_and_asks_nothing_of_the_network
    assert_operator PAGE.bytesize, :<, 150 * 1024
    assert_empty PAGE.scan(%r{https?://[^"'\s]+}) - ["http://www.w3.org/2000/svg"]
    assert_includes PAGE, "default-src 'none'"
    refute_match(/@import|url\((?!data:)/, PAGE)
  end

  def test_has_each_placeholder_once
    assert_equal 1, PAGE.scan('"__HEADWAY_DATA__"').size
    assert_equal 1, PAGE.scan("__HEADWAY_LANES__").size
  end
end

# What the page shows of a trace of which every number is known (Report::KnownPage).
class PageTest < Minitest::Test
  include Report::InBrowser

  def test_shows_the_headline_and_the_totals
    open_page(Report::KnownPage.new)
    assert_equal "worker-1 waited because of Report#render", text("#headline")
    assert_equal "Report#render", text("#headline code")
    totals = evaluate("Object.fromEntries([...document.querySelectorAll('[data-total]')].map((tile) => [tile.dataset.total, +tile.dataset.value]))")
    { "recorded" => 10, "running" => 6.5, "ready" => 5.5, "suspended" => 28, "wait-p50" => 1, "wait-p99" => 3.5, "gc" => 0.25,
      "switches" => 5 }.each { |name, value| assert_in_delta value, totals.fetch(name), 1e-9, name }
    assert_equal "5.50 s", text(".tile.ready .figure")
    assert_equal "GVL held 65 %; 500 ms of that on no processor", text(".tile.running .faint")
    assert_equal [1, 1, 3.5], %w[p50 max].map { |name| percentile(name) }.then { |half, longest| [half, half, longest] }
    assert_equal 3, evaluate("[...document.querySelectorAll('.bucket')].reduce((sum, bar) => sum + +bar.dataset.count, 0)")
  end

  def test_no_line_of_the_headline_begins_with_a_full_stop
    page = Report::KnownPage.new
    page.data[:headline] = "main waited; it would go first: `headway run --policy fair -- a.rb`. More of it."
    open_page(page)
    assert_equal page.data[:headline].delete("`"), text("#headline")
    lines = evaluate(<<~SCRIPT)
      (() => {
        const headline = document.getElementById("headline")
        const code = headline.querySelector("code")
        const stop = document.createRange()
        return Array.from({ length: 300 }, (_, index) => {
          headline.style.width = `${500 + index}px`
          stop.setStart(code.nextSibling, 0)
          stop.setEnd(code.nextSibling, 1)
          return stop.getBoundingClientRect().left > code.getBoundingClientRect().left
        })
      })()
    SCRIPT
    assert_equal [true], lines.uniq
  end

  def test_a_figure_in_the_headline_stays_with_its_unit
    page = Report::KnownPage.new
    page.data[:headline] = "`GET /5 s` spent 38 % of its 15.4 s waiting; 99 % of 1.00 ms or 3 µs, 4 more threads."
    open_page(page)
    assert_equal page.data[:headline].delete("`"), text("#headline")
    assert_equal ["38 %", "15.4 s", "99 %", "1.00 ms", "3 µs"], evaluate("[...document.querySelectorAll('#headline .nowrap')].map((part) => part.textContent)")
  end

  # Paper is narrower than the screen, nothing is drawn anew for it, and browsers leave out what is only background.
  def test_on_paper
    open_page(Report::KnownPage.new, dark: true)
    browser.scheme(true, media: "print")
    lanes, canvas, middle = evaluate(<<~SCRIPT)
      (() => {
        const lanes = document.getElementById("lanes")
        const box = (part) => lanes.querySelector(part).getBoundingClientRect()
        lanes.style.width = "600px"
        return [lanes.getBoundingClientRect().right, box("#canvas").right, box(".axis span:nth-child(6)").left - box("#canvas").left - box("#canvas").width / 2]
      })()
    SCRIPT
    assert_in_delta lanes, canvas, 2
    assert_in_delta 0, middle, 1
    assert_equal "exact", evaluate("getComputedStyle(document.querySelector('.swatch')).printColorAdjust")
    assert_equal "rgb(26, 34, 48)", evaluate("getComputedStyle(document.body).color")
  end

  def test_the_overview_says_how_many_wait_at_most
    { [[:running, 10]] => "nobody waiting", [[:ready, 0.0001], [:running, 9.9999]] => "up to <0.1 waiting",
      [[:ready, 5], [:running, 5]] => "up to 1 waiting" }.each do |segments, said|
      page = Report::PageFixture.new
      page.process
      page.thread("main", segments)
      open_page(page)
      assert_equal said, evaluate("document.getElementById('overview').dataset.most")
    end
  end

  def test_whole_minutes_have_no_sixtieth_second
    { 599.4 => "599 s", 659.4 => "10 min 59 s", 659.7 => "11 min 0 s", 3_600 => "60 min 0 s" }.each do |seconds, said|
      open_page(Report::KnownPage.new.tap { |page| page.data[:wall_s] = seconds })
      assert_equal said, text(".tile.recorded .figure").tr("\u00a0", " ")
    end
  end

  def test_says_who_waited_for_whom
    open_page(Report::KnownPage.new)
    assert_equal [["quiet", "worker-2", 2.0], ["quiet", "worker-1", 1.0], ["worker-1", "worker-2", 1.0],
                  ["worker-2", "worker-1", 1.0], ["quiet", "nobody", 0.5]].sort, whom.sort
    press("#whom th:nth-child(1) button")
    assert_equal "ascending", evaluate("document.querySelector('#whom th').getAttribute('aria-sort')")
    assert_equal %w[quiet quiet quiet worker-1 worker-2], whom.map(&:first)
    press("#whom th:nth-child(1) button")
    assert_equal "worker-2", whom.first.first
  end

  # As in the other reports, whose headline may tell of one of them.
  def test_threads_of_one_name_are_told_apart
    page = Report::PageFixture.new
    page.process
    page.thread("pool", [[:running, 1], [:suspended, 1]])
    page.thread("pool", [[:ready, 1], [:running, 1]])
    page.thread("main", [[:suspended, 2]])
    open_page(page)
    assert_equal [["pool (thread 2)", "pool (thread 1)", 1.0]], whom
    assert_equal ["main", "pool (thread 1)", "pool (thread 2)"], rows_of("Threads").map(&:first).sort
    assert_equal ["main", "pool (thread 1)", "pool (thread 2)"], evaluate("[...document.querySelectorAll('#names .thread button')].map((name) => name.textContent)").sort
    hover("pool (thread 2)", 0.5)
    assert_equal [["pool (thread 1)", 1.0]], held_by
  end

  # Those too many to be told apart are one row, which is no time in which the GVL was free.
  def test_says_of_other_threads_that_they_held_it
    page = Report::KnownPage.new
    page.define_singleton_method(:waited_for) { |id| super(id).each { |part| part[:others] = true if part[:thread].nil? } }
    open_page(page)
    assert_equal ["quiet", "other threads", 0.5], whom.last
    assert_equal "other threads", evaluate("[...document.querySelectorAll('#whom tbody tr')].at(-1).children[1].textContent")
  end

  def test_a_wait_with_the_gvl_free_was_behind_nobody
    page = Report::PageFixture.new
    page.process
    page.thread("late", [[:ready, 1], [:running, 1]])
    page.thread("busy", [[:running, 0.2], [:suspended, 1.8]])
    open_page(page)
    assert_equal [[1, "late", 0.0, "nobody"]], rows_of("Longest waits")
    assert_equal "nobody (GVL free), 80 %", text("#longest tbody td:last-child").tr("\u00a0", " ")
  end

  def test_a_wait_behind_many_in_turn_was_not_behind_nobody
    page = Report::PageFixture.new
    page.process
    page.thread("late", [[:ready, 1], [:running, 1]])
    3.times { |index| page.thread("busy #{index}", [[:suspended, index * 0.2], [:running, 0.2], [:suspended, 1.8 - index * 0.2]]) }
    open_page(page)
    assert_equal "3 threads in turn, 60 %", text("#longest tbody td:last-child")
  end

  def test_lists_threads_and_the_longest_waits
    open_page(Report::KnownPage.new)
    rows = rows_of("Threads")
    assert_equal ["quiet", 0.5, 3.5, 6.0, 1], rows.first.first(5)
    assert_equal %w[main quiet worker-1 worker-2], rows.map(&:first).sort
    assert_equal [[3.5, "quiet", 3.0, "worker-2"], [1, "worker-1", 4.0, "worker-2"], [1, "worker-2", 1.0, "worker-1"]],
                 rows_of("Longest waits").sort_by { [-_1[0], _1[1]] }
    press("#longest tbody .link")
    assert_equal ["quiet", "worker-2"], card("thread", "holder")
  end

  def test_lists_work
    work = [{ name: "GET /", count: 900, total_s: 10.0, running_s: 0.5, ready_s: 6.0, computed_s: 0.0, blamed_s: 0.0 },
            { name: "", count: 20, total_s: 18.0, running_s: 6.0, ready_s: 1.0, computed_s: 0.0, blamed_s: 0.9 }]
    open_page(Report::PageFixture.new(work:).tap(&:process).tap { _1.thread("web", [[:ready, 1.0], [:running, 1.0]]) })

    assert_equal [["", 20, 18.0, 6.0, 1.0, 11.0, 0.9], ["GET /", 900, 10.0, 0.5, 6.0, 3.5, 0]], rows_of("Work")
  end

  def test_lists_where_work_was_blocked
    frames = [["Kernel#sleep", "<cfunc>", 0], ["Net::HTTP#get", "/usr/lib/ruby/net/http.rb", 9], ["Shop#price", "/srv/app/shop.rb", 12], ["Pool#take", "/srv/app/pool.rb", 3]]
    blame = { samples: 0, weight_s: 0.0, folded: 0, frames: frames.map { |method, file, line| { method:, file:, line: } }, stacks: [] }
    row = { count: 2, running_s: 1.0, ready_s: 1.0, computed_s: 0.0, blamed_s: 0.0 }
    work = [{ **row, name: "GET /", total_s: 6.0, blocked: [{ frames: [0, 1, 2], s: 2.0 }, { frames: [0, 2], s: 1.0 }, { frames: [3], s: 0.5 }] },
            { **row, name: "", total_s: 3.0, blocked: [{ frames: [0], s: 1.5 }, { frames: [9], s: 1.0 }] }]
    open_page(Report::PageFixture.new(work:, blame:).tap(&:process).tap { _1.thread("web", [[:running, 1.0]]) })

    assert_equal [["GET /", "Shop#price", "/srv/app/shop.rb:12", 3.0, 0.75], ["", "Kernel#sleep", "<cfunc>", 1.5, 1], ["GET /", "Pool#take", "/srv/app/pool.rb:3", 0.5, 0.125]],
                 rows_of("Where work was blocked")
    assert_includes text("[data-table='Where work was blocked']"), "Shop#price at Kernel#sleep"
  end

  def test_lists_where_threads_were_blocked_if_nothing_is_marked
    frames = [["Thread::Mutex#synchronize", "<cfunc>", 0], ["Cache#fetch", "/srv/app/cache.rb", 4], ["Thread#join", "<cfunc>", 0]]
    blame = { samples: 0, weight_s: 0.0, folded: 0, frames: frames.map { |method, file, line| { method:, file:, line: } }, stacks: [] }
    page = Report::PageFixture.new(blame:).tap(&:process)
    page.thread("main", [[:running, 1.0], [:suspended, 4.0]], blocked: [{ frames: [2], s: 4.0 }])
    2.times { page.thread("worker #{_1}", [[:running, 1.0], [:suspended, 4.0]], blocked: [{ frames: [0, 1], s: 1.0 + _1 }, { frames: [2, 1], s: 0.5 }]) }
    open_page(page)

    assert_equal [["main", "Thread#join", "<cfunc>", 4.0, 1], ["2 threads", "Cache#fetch", "/srv/app/cache.rb:4", 4.0, 0.5]],
                 rows_of("Where threads were blocked")
    assert_includes text("[data-table='Where threads were blocked']"), "Cache#fetch mostly at Thread::Mutex#synchronize"
  end

  def test_lists_the_work_that_waited_longest_and_leads_to_its_longest_wait
    page = Report::KnownPage.new
    kind = { count: 2, total_s: 6.0, running_s: 1.0, ready_s: 4.5, computed_s: 0.0, blamed_s: 0.0 }
    behind = [{ frames: [3, 1, 0], s: 2.0 }, { frames: [1], s: 0.8 }, { frames: [2], s: 0.6 }]
    page.data[:work] = [{ **kind, name: "", longest: { thread: 1, start_s: 3.0, total_s: 3.0, running_s: 0.5, ready_s: 1.0, behind: [{ frames: [2], s: 0.2 }] } }, { **kind, name: "GET /none", longest: nil },
                        { **kind, name: "GET /", longest: { thread: 3, start_s: 2.5, total_s: 5.0, running_s: 0.5, ready_s: 3.5, behind: } }]
    open_page(page)

    assert_equal [[3.5, 5.0, "GET /", 2.5, "Report#render"], [1.0, 3.0, "", 3.0, ""]], rows_of("Work that waited longest")
    assert_includes text("[data-table='Work that waited longest']"), "Report#render app/report.rb:42, 80 %"
    press("[data-table='Work that waited longest'] tbody .link")
    assert_equal ["quiet", "worker-2"], card("thread", "holder")
    assert_operator view.first, :<=, 3.0
  end

  def test_lists_the_work_that_was_in_a_line
    frames = [["Array#each", "<cfunc>", 0], ["Report#render", "/srv/app/report.rb", 12], ["Totals.add", "/srv/app/totals.rb", 7]].map { |method, file, line| { method:, file:, line: } }
    stacks = [[[0, 1], 0.9], [[2], 0.5]].map { |stack, weight_s| { thread: 0, frames: stack, weight_s:, samples: 1 } }
    row = { count: 2, total_s: 6.0, running_s: 1.0, ready_s: 1.0, computed_s: 0.0, blamed_s: 0.9 }
    work = [{ **row, name: "GET /report", blamed: [{ frames: [0, 1], s: 0.8 }, { frames: [2], s: 0.1 }] }]
    open_page(Report::PageFixture.new(work:, blame: { samples: 2, weight_s: 1.4, folded: 0, frames:, stacks: }).tap(&:process).tap { _1.thread("web", [[:running, 1.0]]) })

    assert_equal [["Report#render", "/srv/app/report.rb:12", "GET /report", 0.9], ["Totals.add", "/srv/app/totals.rb:7", "", 0.5]],
                 rows_of("Lines that held the GVL").map { _1.first(4) }
  end

  def test_a_wait_in_a_library_for_another_thread_is_told_as_the_library_s
    frames = [["Thread::Mutex#sleep", "<cfunc>", 0], ["Pool::Queue#poll", "/srv/gems/pool-1.0/lib/pool.rb", 9], ["Shop#price", "/srv/app/shop.rb", 12]]
    blame = { samples: 0, weight_s: 0.0, folded: 0, frames: frames.map { |method, file, line| { method:, file:, line: } }, stacks: [] }
    work = [{ name: "GET /", count: 2, total_s: 6.0, running_s: 1.0, ready_s: 1.0, computed_s: 0.0, blamed_s: 0.0, blocked: [{ frames: [0, 1, 2], s: 2.0 }] }]
    open_page(Report::PageFixture.new(work:, blame:).tap(&:process).tap { _1.thread("web", [[:running, 1.0]]) })

    assert_includes text("[data-table='Where work was blocked']"), "Shop#price at Pool::Queue#poll"
  end

  def test_hovering_a_wait_names_who_held_the_gvl_and_for_how_long
    open_page(Report::KnownPage.new)
    hover("quiet", 4.5)
    assert_equal %w[ready quiet worker-2], card("state", "thread", "holder")
    assert_equal [["worker-2", 2.0], ["worker-1", 1.0], ["nobody (the GVL was free)", 0.5]], held_by
    assert_includes text("#card"), "250 ms of it was garbage collection"
    hover("worker-2", 1.5)
    assert_equal [["worker-1", 1.0]], held_by
  end

  def test_hovering_a_hold_names_who_waited_meanwhile
    open_page(Report::KnownPage.new)
    hover("worker-2", 2.5)
    assert_equal %w[running worker-2], card("state", "thread")
    assert_equal [["quiet", 2.0], ["worker-1", 1.0]], held_by
    hover("main", 5)
    assert_equal ["suspended"], card("state")
    browser.mouse("mouseMoved", 5, 5)
    browser.settle
    assert evaluate("document.getElementById('card').hidden")
  end

  def test_marks_and_garbage_collections_can_be_pointed_at
    open_page(Report::KnownPage.new)
    x, = place("quiet", 2.5)
    row = evaluate("(() => { const box = [...document.querySelectorAll('#names li')].find((row) => row.textContent === 'Marks')" \
                   ".getBoundingClientRect(); return box.top + 9 })()")
    browser.mouse("mouseMoved", x, row)
    browser.settle
    assert_equal ["GET /report"], card("mark")
    assert_equal [["GET /report", 1, 2, 2], ["deploy", 1, 0, 0]], rows_of("Marks")
    x, = place("quiet", 4.1)
    browser.mouse("mouseMoved", x, row - 20)
    browser.settle
    assert_in_delta 0.25, card("seconds").first.to_f, 1e-6
  end

  def test_tells_of_what_makes_the_figures_less_than_whole
    page = Report::KnownPage.new(dropped: 25, events: 75, damage: { offset: 1234, what: "cut short, or still being written: no end block" })
    open_page(page)
    said = evaluate("[...document.querySelectorAll('#notices p')].map((notice) => notice.textContent)")
    assert_match(/\AProcess 100: its trace has no end: it was killed, called exit!, became another program or goes on/, said.first)
    assert_match(/\AProcess 100: 25 events were dropped while recording.*guesses\.\z/, said.last)
    refute_match(/damage/i, text("#notices") + text("#processes"))
    assert_equal "cut short, or still being written: no end block, at byte 1 234", text("#processes td:last-child")
  end

  def test_tells_of_damage_and_says_when_there_is_none
    open_page(Report::KnownPage.new(damage: { offset: 1234, what: "a block's checksum is wrong" }))
    assert_includes text("#notices"), "Process 100: the trace is damaged at byte 1234 (a block's checksum is wrong)"
    open_page(Report::KnownPage.new)
    assert_empty text("#notices")
    assert_equal "whole", text("#processes td:last-child")
  end

  def test_blame_can_be_searched_and_zoomed
    open_page(Report::KnownPage.new)
    weights = evaluate("Object.fromEntries([...document.querySelectorAll('#flame [role=treeitem]')].map((box) => [box.textContent, +box.dataset.weight]))")
    assert_equal({ "all blame" => 4, "<main>" => 4, "Report#render" => 3, "Array#map" => 2, "JSON.generate" => 1 }, weights)
    type("#flame-search", "render")
    assert_in_delta 0.75, evaluate("+document.getElementById('flame').dataset.matched"), 1e-9
    assert_equal ["Report#render"], evaluate("[...document.querySelectorAll('#flame .match')].map((box) => box.textContent)")
    press("#flame .match")
    assert_in_delta 1, evaluate("(() => { const box = document.querySelector('#flame .match'); return box.offsetWidth / box.parentElement.offsetWidth })()"), 0.01
    assert_includes text("#flame-detail"), "Report#render app/report.rb:42 – 3.00 s of waiting, 75 %"
    evaluate("document.querySelector('#flame .match').focus()")
    browser.key("Escape")
    browser.key("ArrowDown")
    assert_equal "<main>", evaluate("document.activeElement.textContent")
    assert_equal [["Report#render", "app/report.rb:42", 3, 0.75, 6], ["JSON.generate", "app/json.rb:7", 1, 0.25, 2]],
                 rows_of("Lines that held the GVL")
    assert_equal "Report#render in Array#map", text("#lines tbody td")
  end

  # Ruby's own methods in Ruby have a line, but none that one can change: as to those in C, the line that called them counts.
  def test_blame_is_put_down_to_no_line_of_ruby_itself
    page = Report::KnownPage.new
    page.data[:blame][:frames].last.update(method: "Integer#times", file: "<internal:numeric>", line: 257)
    open_page(page)
    assert_equal [["Report#render", "app/report.rb:42", 3, 0.75, 6], ["JSON.generate", "app/json.rb:7", 1, 0.25, 2]],
                 rows_of("Lines that held the GVL")
    assert_equal "Report#render in Integer#times", text("#lines tbody td")
  end
end
