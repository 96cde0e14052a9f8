# frozen_string_literal: true

require "test_helper"
require "headway"
require "headway/control/client"
require "harness/timing"
require "report/known_page"
require "servers/server_process"

# The live page in a real browser, served by a real Puma, the same one for all tests.
class WebPageTest < Minitest::Test
  include Harness::Timing
  include Report::InBrowser

  APP = <<~RUBY
    require "headway"
    Headway.start
    Headway::Recorder.start(mode: :flight, events: 20_000)
    names = ["<img src=/x>", "<b>\\u00e9&amp;"]
    names.each { |name| Thread.new { Thread.current.name = name; loop { 200_000.times { } if File.exist?("working"); sleep 0.02 } } }
    Thread.new { loop { work = Headway::Work.start(:job); sleep 0.02; work.finish; sleep 0.1 } }
    sleep 0.05
    Headway.stats
    map("/headway") do
      run Headway::Web.new(directory: "captures", controls: ->(_) { File.exist?("controls") }) { !File.exist?("locked") }
    end
    run ->(_) { [200, {}, []] } # a browser looks for an icon
  RUBY

  class << self
    attr_reader :folder, :url

    def start
      @start ||= begin
        @folder = File.realpath(Dir.mktmpdir("headway-web-page"))
        port = Harness::ServerProcess.free_port
        File.write(File.join(@folder, "config.ru"), APP)
        server = Harness::ServerProcess.new(Gem.bin_path("puma", "puma"), "-e", "production", "-t", "2:2", "-b", "tcp://127.0.0.1:#{port}",
                                            directory: @folder, env: { "HEADWAY_CONTROL_DIR" => File.join(@folder, "sockets") })
        Minitest.after_run { server.stop(:KILL); FileUtils.rm_rf(@folder) }
        server.await_output(/Use Ctrl-C to stop/)
        @url = "http://127.0.0.1:#{port}/headway"
        server
      end
    end
  end

  def setup
    super
    @server = self.class.start
    %w[controls locked].each { |name| FileUtils.rm_f(File.join(self.class.folder, name)) }
    allow("working")
  end

  # The server stays until the last test of all classes has run: it is to do nothing meanwhile.
  def teardown
    FileUtils.rm_f(File.join(self.class.folder, "working")) if @server
    super
  end

  def test_it_tells_of_requests_and_jobs
    visit
    await("jobs") { text("#headline").match?(/; \d[\d.]* jobs a second wait for it for \d[\d.]*.% of their time\z/) }
  end

  def test_it_draws_what_threads_do_and_goes_on
    visit
    assert_match(/\A1 process, \d+ threads: /, text("#headline"))
    assert_equal %w[processes ready running suspended wait-p50 wait-p99 switches preempted], evaluate("[...document.querySelectorAll('[data-total]')].map((tile) => tile.dataset.total)")
    assert_operator evaluate("+document.querySelector('[data-total=running]').dataset.value"), :>, 0
    assert_includes text("#lanes tbody .process"), "Process #{@server.pid}: puma"
    await("the lane") { painted("<img src=/x>") > 50 }
    await("the histogram") { evaluate("document.querySelectorAll('#histogram .bucket').length") > 1 }
    assert_match(/max\d.*s/, text("#histogram .percentiles"))
    before = evaluate("document.querySelector('#histogram svg').getAttribute('aria-label')")
    await("more waits") { evaluate("document.querySelector('#histogram svg').getAttribute('aria-label')") != before }
    await("blame") { evaluate("document.querySelector('[data-table=blame] tbody')?.textContent ?? ''").include?("config.ru:") }
    assert_names_are_text
  end

  def test_a_capture_and_its_report
    visit
    press("#capture")
    await("the capture") { evaluate("document.querySelectorAll('#capture-list tbody tr').length") > 0 }
    await("the word") { text("#captured") == "Captured." }
    link = evaluate("document.querySelector('#capture-list a').href")
    bytes = evaluate("fetch(document.querySelector('#capture-list a[download]').href).then((file) => file.arrayBuffer()).then((bytes) => bytes.byteLength)")
    assert_operator bytes, :>, 1000
    browser.open(link)
    await("the report") { evaluate("+document.documentElement.dataset.segments") > 10 }
    assert_includes text("#names"), "<b>é&amp;"
    assert_equal "null", evaluate("self.origin"), "the report is in a sandbox"
  end

  def test_the_flight_recorder_is_started_and_stopped
    visit
    assert evaluate("document.getElementById('recorder').hidden")
    allow("controls")
    visit
    [["Stopped.", "No flight recorder runs.", "Start recorder"], ["Started.", "The flight recorder runs.", "Stop recorder"]].each do |word, now, label|
      press("#recorder")
      await(word) { %w[#captured #recorder-now #recorder].map { |id| text(id) } == [word, now, label] }
    end
    # As much as the other tests find.
    client = Headway::Control::Client.new(@server.pid, File.join(self.class.folder, "sockets", "#{@server.pid}.sock"))
    await("events") { client.recorder[:events] > 1000 }
  end

  def test_settings_are_off_until_they_are_allowed
    visit
    assert_equal [true, false], evaluate("['settings-form', 'settings-off'].map((id) => document.getElementById(id).hidden)")
    allow("controls")
    visit
    assert_equal [false, true], evaluate("['settings-form', 'settings-off'].map((id) => document.getElementById(id).hidden)")
    evaluate("(() => { const field = document.getElementById('quantum'); field.value = 42; field.dispatchEvent(new Event('input', { bubbles: true })) })()")
    evaluate("document.getElementById('apply').focus()")
    browser.key(" ")
    await("the word") { text("#applied") == "Changed." }
    await("the quantum") { text("#settings-now").include?("quantum 42 ms") }
  end

  def test_nothing_else_runs_or_changes
    visit
    evaluate("document.body.append(Object.assign(document.createElement('script'), { textContent: 'window.ran = 1' }))")
    evaluate("document.body.setAttribute('style', 'color: red')")
    evaluate("document.body.insertAdjacentHTML('beforeend', '<img src=data:, onerror=\"window.ran = 2\">')")
    browser.settle
    assert_nil evaluate("window.ran ?? null")
    refute_equal "rgb(255, 0, 0)", evaluate("getComputedStyle(document.body).color")
    assert_equal 403, evaluate("fetch('/headway/captures', { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' }).then((answer) => answer.status)")
    assert_equal 403, evaluate("fetch('/headway/settings', { method: 'POST', body: '{}', headers: { 'content-type': 'application/json', " \
                               "'x-headway-token': document.body.dataset.token } }).then((answer) => answer.status)")
    assert_equal 4, browser.complaints.grep(/Content Security Policy/).size, browser.complaints
    browser.complaints.clear
  end

  # Chromium takes another port for the same site, not for the same origin.
  def test_a_page_of_another_origin_changes_nothing
    visit
    token = evaluate("document.body.dataset.token")
    path = File.join(@folder, "evil.html")
    File.write(path, "<form method=post action='#{self.class.url}/captures' enctype='text/plain'><input name='{\"pid\":#{@server.pid}, \"a\":\"' value='\"}'></form>")
    browser.open(path)
    assert_equal "refused", evaluate("fetch('#{self.class.url}/captures', { method: 'POST', credentials: 'include', headers: { 'content-type': 'application/json', " \
                                     "'x-headway-token': '#{token}' }, body: '{\"pid\":#{@server.pid}}' }).then(() => 'sent', () => 'refused')")
    browser.submit
    await("the answer") { evaluate("document.body.innerText").include?("not from Headway's own page") }
    browser.complaints.clear
  end

  def test_who_is_shut_out_is_told
    visit
    allow("locked")
    await("the notice") { text("#trouble").include?("you may not see this page any more") }
    FileUtils.rm_f(File.join(self.class.folder, "locked"))
    2.times { press("#pause") } # asks at once
    await("the end of it") { text("#trouble").empty? }
    browser.complaints.clear
  end

  def test_the_keyboard_reaches_everything
    allow("controls")
    visit
    reached = Array.new(14) { browser.key("Tab"); evaluate("document.activeElement.id || document.activeElement.className || document.activeElement.tagName") }
    assert_empty %w[skip process pause capture recorder policy quantum apply] - reached
    evaluate("document.getElementById('pause').focus()")
    browser.key(" ")
    assert_equal "Go on", text("#pause")
    shown = -> { evaluate("+document.documentElement.dataset.shown") }
    before = shown.call
    sleep 1.2
    after = shown.call
    assert_operator after - before, :<=, 1, "one may have been under way"
    press("#pause")
    await("more") { shown.call > after }
  end

  # What the code waited for cost is beyond a phone's edge, and the table is drawn anew every second.
  def test_the_table_of_blame_stays_where_it_was_scrolled_to
    visit(width: 400)
    lines = -> { evaluate("document.querySelector('[data-table=blame] tbody')?.textContent") }
    await("blame") { lines.call }
    before = evaluate("(() => { const scroll = document.querySelector('[data-table=blame]').parentElement; scroll.scrollLeft = 50; " \
                      "scroll.focus(); return document.querySelector('[data-table=blame] tbody').textContent })()")
    await("more of it") { lines.call != before }
    assert_equal [50, "Blame"], evaluate("[document.querySelector('[data-table=blame]').parentElement.scrollLeft, document.activeElement.ariaLabel]")
  end

  def test_a_fault_names_its_process_once
    visit
    said = evaluate(<<~SCRIPT)
      import(document.querySelector("script").src.replace("app.js", "lanes.js")).then(({ Lanes }) => {
        const lanes = new Lanes(document.createElement("div"))
        return ["process 7 doesn't answer: is it stopped?", "no room"].map((error) => {
          lanes.show([{ pid: 7, error }], null)
          return lanes.place.textContent
        })
      })
    SCRIPT
    assert_match(/WaitingProcess 7 doesn't answer: is it stopped\?\z/, said.first)
    assert_match(/WaitingProcess 7: no room\z/, said.last)
  end

  def test_a_narrow_window_and_the_dark
    visit(width: 400, dark: true)
    assert_operator evaluate("document.documentElement.scrollWidth"), :<=, 400
    assert_equal "rgb(17, 21, 27)", evaluate("getComputedStyle(document.body).backgroundColor")
    await("the lane") { painted("<img src=/x>") > 10 }
    browser.scheme(false)
    assert_equal "rgb(246, 247, 249)", evaluate("getComputedStyle(document.body).backgroundColor")
    assert_equal "#1f6fc4", evaluate("import(document.querySelector('script').src.replace('app.js', 'timeline/palette.js')).then((module) => module.readPalette().text.running)")
  end

  private

  def assert_names_are_text
    assert_equal ["<b>é&amp;", "<img src=/x>"], evaluate("[...document.querySelectorAll('#lanes tbody .thread-name')].map((cell) => cell.textContent)").grep(/</).sort
    assert_equal 0, evaluate("document.querySelectorAll('#report img, #report b').length")
  end

  def visit(**options)
    browser.open(self.class.url, **options)
    await("the first answer") { evaluate("+(document.documentElement?.dataset.shown ?? 0)") > 0 }
  end

  def allow(what) = FileUtils.touch(File.join(self.class.folder, what))

  # Pixels of a thread's lane that are not empty.
  def painted(thread)
    evaluate(<<~SCRIPT)
      (() => {
        const row = [...document.querySelectorAll("#lanes tr")].find((row) => row.cells[0].textContent === #{thread.to_json})
        const canvas = row.querySelector("canvas")
        const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true })
        copy.drawImage(canvas, 0, 0)
        return copy.getImageData(0, 0, canvas.width, canvas.height).data.filter((value, index) => index % 4 === 3 && value > 0).length
      })()
    SCRIPT
  end

  def await(what) = super(what, limit: 60, pause: 0.05, details: -> { browser.complaints })
end
