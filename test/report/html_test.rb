# frozen_string_literal: true

require "test_helper"
require "stringio"
require "tmpdir"
require "json"
require "headway/report"
require "headway/report/html"
require "report/made_trace"
require "report/browser"
require "harness/default_encoding"

# The file; how the page behaves is page_test's.
class HtmlTest < Minitest::Test
  include Harness::DefaultEncoding

  STUB = File.join(__dir__, "stub.html")

  def test_the_analysis_and_the_lanes_are_in_the_page
    trace = MadeTraces.stalled
    data, lanes = parts(html(trace))

    assert_equal JSON.parse(JSON.generate(trace.to_h)), data.except("lanes", "gc_lanes", "headline", "notes")
    assert_match(/\Aworker-3 spent 52 % /, data["headline"])
    assert_equal trace.lanes.map { |lane| [lane[:thread], lane[:segments], lane[:bytes]] },
                 data["lanes"].map { |lane| [lane["thread"], lane["segments"], lanes.byteslice(lane["offset"], lane["length"])] }
    assert_equal trace.gc_lanes.map { |lane| [lane[:process], lane[:bytes]] },
                 data["gc_lanes"].map { |lane| [lane["process"], lanes.byteslice(lane["offset"], lane["length"])] }
    assert_equal lanes.bytesize, [*data["lanes"], *data["gc_lanes"]].sum { |lane| lane["length"] }
  end

  # In a directory that others may write to, too.
  def test_no_link_that_lies_beside_its_file_is_written_through
    Dir.mktmpdir do |directory|
      page, other = %w[page.html other].map { |name| File.join(directory, name) }
      File.write(other, "another's")
      File.symlink(other, "#{page}.#{Process.pid}.part")
      Headway::Report.html(MadeTraces.stalled, page)

      assert_equal "another's", File.read(other, 20)
      assert File.lstat(page).file?
    end
  end

  def test_no_name_gets_out_of_the_data
    name = "</script><!--<script>\u2028\u2029\\0 \\1 __HEADWAY_LANES__ \"__HEADWAY_DATA__\""
    text = html(MadeTrace.new(threads: [{ name: name, segments: [[:running, 1.0]] }]))

    assert_equal 2, text.scan("</script").size
    refute_match(/[\u2028\u2029]/, text)
    assert_equal name, parts(text).first.dig("threads", 0, "name")
    assert_includes text, '<p>\0 \\\\1 after</p>'
  end

  # The page's own text has characters that this encoding has not.
  def test_a_program_whose_own_text_is_in_another_encoding
    trace = MadeTraces.stalled
    page = Headway::Report::Html::PAGE
    refute File.read(page, encoding: "UTF-8").ascii_only?
    assert_equal html(trace, page: page), with_encoding(:default_internal, Encoding::ISO_8859_1) { html(trace, page: page) }
  end

  def test_names_that_are_no_utf8
    text = html(MadeTrace.new(threads: [{ name: "a\xff", segments: [[:running, 1.0]] }]))

    assert_equal "a?", parts(text).first.dig("threads", 0, "name")
  end

  def test_an_empty_trace
    data, lanes = parts(html(MadeTraces.empty))

    assert_empty data["lanes"]
    assert_empty lanes
  end

  def test_a_page_of_another_version_or_none
    assert_match(/is no page of this version/, assert_raises(Headway::Report::Error) { html(MadeTraces.empty, page: File::NULL) }.message)
    assert_match(/cannot be read/, assert_raises(Headway::Report::Error) { html(MadeTraces.empty, page: "/nonexistent") }.message)
  end

  # What ships has both places, once each.
  def test_the_page_that_ships
    page = Headway::Report::Html::PAGE
    text = File.read(page, encoding: "UTF-8")
    assert_equal 1, text.scan('"__HEADWAY_DATA__"').size
    assert_equal 1, text.scan("__HEADWAY_LANES__").size
    assert_operator text.index("__HEADWAY_DATA__"), :<, text.index("__HEADWAY_LANES__")
    assert_equal 3, parts(html(MadeTraces.stalled, page: page)).first["threads"].size
  end

  def test_a_browser_shows_it
    skip "there is no Chromium" unless Report::Browser.program

    in_a_browser(MadeTraces.stalled) do |browser|
      assert_equal "worker-3 spent 52 % of its time waiting; 82 % of that behind `Report#render` (app/report.rb:12). With policy fair it would go first: `headway run --policy fair -- ruby app.rb`.".delete("`"),
                   browser.evaluate("document.getElementById('headline').textContent").delete("`")
      assert_empty browser.complaints
    end
  end

  private

  def in_a_browser(trace)
    Dir.mktmpdir do |directory|
      Headway::Report.html(trace, path = File.join(directory, "out.html"))
      browser = Report::Browser.new(Report::Browser.program)
      browser.open(path)
      browser.settle
      yield browser
    ensure
      browser&.close
    end
  end

  def html(trace, page: STUB)
    output = StringIO.new(String.new(encoding: "UTF-8"))
    Headway::Report::Html.new(Headway::Report::Document.new(trace), page: page).write(output)
    output.string
  end

  def parts(text)
    data = text[%r{id="headway-data">(.*?)</script}m, 1]
    lanes = text[%r{id="headway-lanes">(.*?)</script}m, 1]
    [JSON.parse(data), lanes.strip.unpack1("m0")]
  end
end
