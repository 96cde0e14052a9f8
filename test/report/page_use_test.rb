# frozen_string_literal: true

require "test_helper"
require "report/known_page"

# Moving about in the page: zoom, pan, search, keyboard, touch.
class PageUseTest < Minitest::Test
  include Report::InBrowser

  def test_buttons_zoom
    open_page(Report::KnownPage.new)
    assert_equal [0, 10], view
    press("#zoom-in")
    assert_equal [2.5, 7.5], view
    press("#zoom-in")
    press("#zoom-out")
    assert_equal [2.5, 7.5], view
    refute evaluate("document.getElementById('zoom-reset').disabled")
    press("#zoom-reset")
    assert_equal [0, 10], view
    assert evaluate("document.getElementById('zoom-reset').disabled")
  end

  def test_a_wheel_zooms_around_the_pointer_with_control_or_with_the_focus
    open_page(Report::KnownPage.new)
    x, y = place("quiet", 4)
    browser.wheel(x, y, -100)
    assert_equal [0, 10], view, "a plain wheel scrolls the page"
    place("quiet", 4).then { |at| browser.wheel(*at, -100, control: true) }
    from, to = view
    assert_operator to - from, :<, 6
    assert_in_delta 0.4, (4 - from) / (to - from), 0.01
    click("quiet", 4)
    place("quiet", 4).then { |at| browser.wheel(*at, 200) }
    assert_operator view.last - view.first, :>, to - from
  end

  def test_dragging_pans_and_stops_at_the_ends
    open_page(Report::KnownPage.new)
    press("#zoom-in")
    drag(place("main", 5), place("main", 4))
    assert_in_delta 3.5, view.first, 0.05
    drag(place("main", 4), place("main", 8.4))
    assert_equal [0, 5], view.map { _1.round(6) }
  end

  def test_two_fingers_pinch
    open_page(Report::KnownPage.new, width: 400, height: 800, touch: true)
    left, right = place("main", 4), place("main", 6)
    browser.touch("touchStart", left, right)
    5.times { |step| browser.touch("touchMove", [left[0] - step * 8, left[1]], [right[0] + step * 8, right[1]]) }
    browser.touch("touchEnd")
    browser.settle
    assert_operator view.last - view.first, :<, 6
    assert_in_delta 5, view.sum / 2, 0.7
  end

  def test_the_overview_moves_the_view
    open_page(Report::KnownPage.new)
    left, top, width = evaluate("(({ left, top, width }) => [left, top + 20, width])(document.getElementById('overview').getBoundingClientRect())")
    drag([left + width * 0.2, top], [left + width * 0.4, top])
    assert_in_delta 2, view.first, 0.05
    assert_in_delta 4, view.last, 0.05
    drag([left + width * 0.3, top], [left + width * 0.6, top])
    assert_in_delta 5, view.first, 0.05
  end

  def test_search_filters_threads_and_goes_to_the_first
    open_page(Report::KnownPage.new)
    type("#lane-search", "WORKER")
    assert_equal %w[worker-1 worker-2], names
    assert_equal "2 of 4 threads", text("#lane-count")
    browser.key("Enter")
    assert_equal %w[ready worker-1 worker-2], card("state", "thread", "holder")
    assert_equal "canvas", evaluate("document.activeElement.id")
    type("#lane-search", "no such thread")
    assert_empty names
    type("#lane-search", "")
    assert_equal %w[quiet worker-1 worker-2 main], names
  end

  def test_the_order_of_the_lanes_can_be_chosen
    open_page(Report::KnownPage.new)
    evaluate("(() => { const order = document.getElementById('lane-order'); order.value = 'created'; order.dispatchEvent(new Event('change')) })()")
    assert_equal %w[main worker-1 worker-2 quiet], names
  end

  def test_everything_goes_by_keyboard
    open_page(Report::KnownPage.new)
    evaluate("document.getElementById('canvas').focus()")
    browser.key("ArrowDown")
    assert_equal ["quiet"], card("thread")
    browser.key("ArrowDown")
    assert_equal %w[ready worker-1 worker-2], card("state", "thread", "holder")
    assert_match(/\Aworker-1 waited 1.00 s at 4.*held by. worker-2 1.00 s, 100 %. 250 ms/, text("#said"))
    browser.key("+")
    assert_in_delta 6, view.last - view.first, 1e-6
    from = view.first
    browser.key("ArrowRight")
    assert_operator view.first, :>, from
    browser.key("0")
    assert_equal [0, 10], view
    browser.key("Escape")
    assert evaluate("document.getElementById('card').hidden")
    browser.key("ArrowDown")
    browser.key("p")
    assert_equal %w[worker-2 worker-1], card("thread", "holder")
  end

  def test_names_of_threads_are_not_in_the_way_of_the_keyboard
    open_page(Report::KnownPage.new)
    evaluate("document.getElementById('zoom-in').focus()")
    browser.key("Tab")
    assert_equal "canvas", evaluate("document.activeElement.id")
    press("#names button")
    assert_equal ["quiet"], card("thread")
  end

  # The lane's room is for its end, which the path in front of it would take.
  def test_a_thread_without_a_name_is_called_by_its_file_and_line
    page = Report::PageFixture.new
    page.process
    site = "/srv/apps/shop/releases/20261126133000/app/models/report.rb:33"
    page.thread(site, [[:running, 2], [:suspended, 1]], site:)
    open_page(page)

    assert_equal %w[models/report.rb:33], names
    assert_includes evaluate("document.querySelector('#names button').title"), site
  end

  def test_what_a_trace_contains_stays_text
    nasty = %(</script><img src=x onerror="window.pwned=1"><!--<script>'&quot;`)
    page = Report::PageFixture.new(headline: nasty)
    page.process(command: nasty, damage: { offset: 1, what: nasty })
    page.thread(nasty, [[:suspended, 1], [:ready, 1], [:running, 1]], site: nasty)
    page.thread("b", [[:running, 2], [:suspended, 1]])
    page.data[:marks] = [{ thread: 0, name: nasty, start_s: 0.5, end_s: 1.5 }]
    page.data[:blame] = { samples: 1, weight_s: 1.0, folded: 0, frames: [{ method: nasty, file: nasty, line: 1 }],
                          stacks: [{ thread: 1, frames: [0], weight_s: 1.0, samples: 1 }] }
    open_page(page)
    assert_equal nasty, text("#names button")
    assert_equal nasty.delete("`"), text("#headline")
    hover(nasty, 1.5)
    assert_includes text("#card"), nasty
    assert_equal nasty, rows_of("Marks").first.first
    assert_equal 0, evaluate("document.querySelectorAll('img').length")
    assert_nil evaluate("window.pwned")
  end

  private

  def names = evaluate("[...document.querySelectorAll('#names button')].map((button) => button.textContent)")

  def click(thread, time)
    x, y = place(thread, time)
    browser.mouse("mousePressed", x, y, button: "left", clickCount: 1)
    browser.mouse("mouseReleased", x, y, button: "left", clickCount: 1)
    browser.settle
  end

  def drag(from, to)
    browser.mouse("mouseMoved", *from)
    browser.mouse("mousePressed", *from, button: "left", buttons: 1, clickCount: 1)
    [0.5, 1].each { |share| browser.mouse("mouseMoved", from[0] + (to[0] - from[0]) * share, from[1], button: "left", buttons: 1) }
    browser.mouse("mouseReleased", *to, button: "left", clickCount: 1)
    browser.settle
  end
end
