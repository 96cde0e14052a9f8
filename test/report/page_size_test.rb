# frozen_string_literal: true

require "test_helper"
require "report/known_page"

# Traces that are empty, tiny, large or made of several processes; narrow windows; both colour schemes.
class PageSizeTest < Minitest::Test
  include Report::InBrowser

  # Far above what it takes (see the issue), for machines that are slow and busy; a page that drew every segment, or looked
  # at every segment for each pixel, would not make it.
  FIRST_DRAW_MS = 8_000 * Harness::TimeLimit.seconds_scale
  FRAME_MS = 400 * Harness::TimeLimit.seconds_scale

  def test_an_empty_trace
    open_page(Report::PageFixture.new)
    assert_includes text("#notices"), "No thread was recorded"
    assert_includes text("#histogram"), "Nobody waited"
    assert_includes text("#blame"), "No stack was taken"
    press("#zoom-in")
  end

  def test_a_page_without_data_says_so
    browser.open(Report::PageFixture::TEMPLATE)
    assert_includes text("#report"), "holds no trace yet"
  end

  def test_a_trace_of_one_segment
    page = Report::PageFixture.new
    page.process(end_s: 0.000_001)
    page.thread(nil, [[:running, 0.000_001]], site: nil)
    page.thread("gone", [])
    open_page(page)
    20.times { browser.evaluate("document.getElementById('zoom-in').click()") }
    hover("thread 1", 0.000_000_5)
    assert_equal "running", card("state").first
    evaluate("document.getElementById('canvas').focus()")
    %w[ArrowDown ArrowDown ArrowDown n p].each { browser.key(_1) }
  end

  def test_a_damaged_lane_is_as_long_as_it_is
    page = Report::KnownPage.new
    page.data[:lanes].last.update(segments: 1_000, length: 5_000)
    open_page(page)
    hover("quiet", 4)
    assert_equal "worker-2", card("holder").first
  end

  def test_holders_are_of_the_same_process
    page = Report::PageFixture.new
    2.times { page.process }
    page.thread("a", [[:ready, 1], [:running, 1]])
    page.thread("b", [[:running, 1], [:suspended, 1]])
    page.thread("c", [[:running, 0.5], [:suspended, 0.5]], process: 1, start_s: 0.5)
    open_page(page)
    assert_equal ["process 100", "process 101"], evaluate("[...document.querySelectorAll('#names .process')].map((row) => row.textContent)")
    hover("a", 0.7)
    assert_equal [["b (process 100)", 1]], held_by
    hover("c", 0.7)
    assert_equal [1.0], page.data[:threads].first[:waited_for].map { |part| part[:s] }
    assert_equal ["running"], card("state")
  end

  def test_processes_of_one_number_are_told_apart_by_their_files
    page = Report::PageFixture.new
    %w[one two].each { |host| page.process(pid: 1, file: "#{host}/puma.headway") }
    page.thread("a", [[:running, 1]], process: 1)
    open_page(page)
    assert_equal ["process 1 of one/puma.headway", "process 1 of two/puma.headway"],
                 evaluate("[...document.querySelectorAll('#names .process')].map((row) => row.textContent)")
    assert_equal "a (process 1 of two/puma.headway)", evaluate("document.querySelector('#names .thread button').title").lines.first.chomp
  end

  # Against the slow, obvious arithmetic of the fixture: single waits, and pixels that stand for several segments.
  def test_shares_and_holders_are_what_adding_up_says
    random = Random.new(7)
    page = Report::PageFixture.new
    page.process
    4.times { |id| page.thread("t#{id}", Array.new(4_000) { [%i[running ready suspended absent].sample(random:), random.rand(1..50) * 1e-4] }) }
    open_page(page)
    length = page.data[:wall_s]
    20.times { compare_pixel(page, random.rand(4), random.rand(length * 0.9)) }
    press("#names button")
    row = Integer(card("thread").first.delete_prefix("t"))
    5.times { compare_wait(page, row) && browser.key("n") }
  end

  def test_a_million_segments
    page = Report::PageFixture.new
    page.process
    random = Random.new(5)
    block = Array.new(1_000) { |index| Report::PageFixture.segment([0, 2, 1][index % 3], random.rand(20..420)) }.join
    20.times { |index| page.raw_thread("worker-#{index}", block * 50, 50_000) }
    open_page(page)
    assert_equal "1000000", evaluate("document.documentElement.dataset.segments")
    assert_operator timing("firstDrawMs"), :<, FIRST_DRAW_MS
    frames = Array.new(12) do
      press("#zoom-in")
      timing("frameMs")
    end
    assert_operator frames.sort[6], :<, FRAME_MS
    press("#zoom-reset")
    hover("worker-7", 0.5)
    assert_match(/running \d+ %, waiting \d+ %/, text("#card"))
  end

  def test_two_hundred_threads_scroll
    page = Report::PageFixture.new
    page.process
    200.times { |index| page.thread(format("worker %03d", index), [[:suspended, index / 100.0], [:ready, 1], [:running, 0.01], [:suspended, 2.99 - index / 100.0]]) }
    open_page(page)
    assert_equal 200, evaluate("document.querySelectorAll('#names button').length")
    seen = "[...document.querySelectorAll('#names button')].filter((name) => name.checkVisibility({ contentVisibilityAuto: true })).length"
    assert_includes 20..150, evaluate(seen), "names out of sight are not laid out"
    evaluate("document.getElementById('lanes').scrollTop = 3000")
    browser.settle
    name, y = evaluate("(() => { const rows = [...document.querySelectorAll('#names li')]; const row = rows[130];" \
                       "return [row.querySelector('button').textContent, row.offsetTop] })()")
    assert_operator y, :>, 3000
    hover(name, Integer(name[/\d+/], 10) / 100.0 + 0.5)
    assert_equal ["ready", name], card("state", "thread")
    assert_operator evaluate("document.getElementById('canvas').clientHeight"), :<, 800
  end

  def test_a_narrow_window_does_not_scroll_sideways
    page = Report::KnownPage.new(command: "x" * 300, damage: { offset: 5, what: "y" * 200 })
    page.thread("a-thread-with-a-very-long-name-#{"z" * 200}", [[:ready, 1], [:suspended, 9]], site: "/#{"d" * 200}.rb:1")
    [false, true].each do |dark|
      open_page(page, width: 400, height: 800, dark:)
      assert_equal 400, evaluate("document.documentElement.scrollWidth")
      hover("quiet", 4)
      assert_equal 400, evaluate("document.documentElement.scrollWidth")
    end
    open_page(page, width: 1280)
    assert_equal 1280, evaluate("document.documentElement.scrollWidth")
  end

  def test_a_command_in_a_narrow_headline_breaks_between_words_only
    command = "headway run --policy fair -- puma -p 9391 -t 5:5 config.ru"
    page = Report::KnownPage.new
    page.data[:headline] = "`GET /light` waited. With policy fair it would go first: `#{command}`. That is all."
    (300..460).step(20) do |width|
      open_page(page, width:, height: 800)
      assert_equal command, text("#headline .code-end code")
      broken = evaluate(<<~JS)
        [...document.querySelectorAll('#headline .code-end code .nowrap')].filter((word) => word.getClientRects().length > 1).length
      JS
      assert_equal 0, broken, width
      assert evaluate("document.querySelector('#headline .code-end code .nowrap') !== null")
      lines = evaluate(<<~JS)
        (() => {
          const code = document.querySelector('#headline .code-end code')
          const range = document.createRange()
          range.setStart(code.nextSibling, 0)
          range.setEnd(code.nextSibling, 1)
          return [range.getBoundingClientRect().bottom, [...code.getClientRects()].at(-1).bottom]
        })()
      JS
      assert_in_delta(*lines, 12, "the full stop is in a line of its own at #{width}")
    end
  end

  def test_both_colour_schemes_tell_the_states_apart
    open_page(Report::KnownPage.new)
    light = colours
    browser.scheme(true)
    browser.settle
    dark = colours
    refute_equal light, dark
    [light, dark].each do |seen|
      page, running, ready = seen.values_at("page", "running", "ready").map { |colour| luminance(colour) }
      [[page, running], [running, ready]].each { |pair| assert_operator contrast(*pair), :>, 1.7, seen.inspect }
      assert_operator contrast(luminance(seen["text"]), page), :>, 7
    end
    assert_operator luminance(light["page"]), :>, 0.8
    assert_operator luminance(dark["page"]), :<, 0.05
  end

  private

  def timing(name) = evaluate("+document.getElementById('timeline').dataset.#{name}")

  def compare_pixel(page, id, time)
    hover("t#{id}", time)
    from, to, shares = card("from", "to", "shares")
    return unless shares # wide enough to be shown by itself

    from, to = [from, to].map(&:to_f)
    %i[running ready suspended].zip(shares.split.map(&:to_f)) do |state, share|
      assert_in_delta page.seconds(id, state, from, to) / (to - from), share, 1e-3, "t#{id} #{state} at #{time}"
    end
  end

  def compare_wait(page, id)
    seconds = card("seconds").first.to_f
    spoken = text("#said")
    from = evaluate("+document.getElementById('card').dataset.from")
    wait = page.waits(id).min_by { |start, _| (start - from).abs }
    assert_in_delta wait[1] - wait[0], seconds, 1e-6, spoken
    expected = page.holders(id, *wait).to_h { |other, s| ["t#{other}", s] }
    seen = held_by.reject { |name, _| name.start_with?("nobody") }.to_h
    assert_equal expected.keys.sort, seen.keys.sort
    expected.each { |name, s| assert_in_delta s, seen[name], 1e-6, spoken }
  end

  # What is really on the screen: the colour most pixels of a lane have.
  def colours
    evaluate(<<~SCRIPT)
      (() => {
        const style = getComputedStyle(document.documentElement)
        const copy = Object.assign(document.createElement("canvas"), { width: 1280, height: 400 })
        const canvas = copy.getContext("2d", { willReadFrequently: true })
        canvas.drawImage(document.getElementById("canvas"), 0, 0)
        const box = document.getElementById("canvas").getBoundingClientRect()
        const row = [...document.querySelectorAll("#names li.thread")].find((item) => item.textContent.startsWith("worker-2")).getBoundingClientRect()
        const at = (time) => [...canvas.getImageData(box.width * time / 10, row.top - box.top + 12, 1, 1).data].slice(0, 3)
        const rgb = (element, what) => getComputedStyle(element)[what].match(/\\d+/g).slice(0, 3).map(Number)
        const stripes = Array.from({ length: 12 }, (_, x) => [...canvas.getImageData(box.width * 0.15 + x, row.top - box.top + 12, 1, 1).data].slice(0, 3))
        return { page: rgb(document.getElementById("timeline"), "backgroundColor"), text: rgb(document.body, "color"), running: at(3),
          ready: stripes.sort((a, b) => b[0] + b[1] - a[0] - a[1])[0], stripes: new Set(stripes.map(String)).size }
      })()
    SCRIPT
      .tap { |seen| assert_equal 2, seen["stripes"], "waiting is striped" }
  end

  def luminance(colour)
    red, green, blue = colour.map { |part| (part / 255.0) <= 0.04045 ? part / 255.0 / 12.92 : (((part / 255.0) + 0.055) / 1.055)**2.4 }
    0.2126 * red + 0.7152 * green + 0.0722 * blue
  end

  def contrast(one, other) = ([one, other].max + 0.05) / ([one, other].min + 0.05)
end
