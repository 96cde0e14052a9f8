# frozen_string_literal: true

require "harness/isolated_test"
require "headway"
require "metrics/promtool"
require "tmpdir"

# Families of the program's own, whatever bytes they have: nobody else's are missing for it. Each test in a process of its own.
class MetricsOwnFamiliesTest < Harness::IsolatedTest
  include Metrics::Promtool

  LATIN = "caf\u00e9".encode(Encoding::ISO_8859_1).freeze

  def register(*families) = Headway::Metrics.register(Struct.new(:families).new(families))

  def family(name: "shop_total", help: "Shop.", label: :a, text: "b")
    Headway::Metrics::Family.new(name, :counter, help, { { label => text } => 7 })
  end

  def scrape(endpoint = Headway::Metrics::Endpoint.new)
    status, _, body = endpoint.call("REQUEST_METHOD" => "GET")
    assert_equal 200, status, body
    body.join.tap { |text| assert_valid_metrics(text) }
  end

  def test_help_and_labels_of_any_bytes_are_served_in_utf8
    register(family(name: "a_total", help: "A\xff."), family(name: "b_total", help: LATIN), family(name: "c_total", text: "c\xff"),
             family(name: "d_total", text: LATIN), family(name: "e_total", text: "e".encode(Encoding::UTF_16LE)),
             family(name: "f_total", text: "caf\u00e9".b), family(name: :g_total, text: 5))
    text = scrape
    ["# HELP a_total A\ufffd.", "# HELP b_total caf\u00e9", "c_total{a=\"c\ufffd\"} 7", "d_total{a=\"caf\u00e9\"} 7", "e_total{a=\"e\"} 7",
     "f_total{a=\"caf\ufffd\ufffd\"} 7", "g_total{a=\"5\"} 7"].each { |line| assert_includes text.lines(chomp: true), line }
    assert_empty Headway.notices
  end

  # As code that is reloaded registers anew.
  def test_of_two_sources_with_one_name_the_last_one_counts
    old, new = Array.new(2) { Headway::Metrics::Counter.new("x_total", help: "X.", labels: [:a], most: 5) }
    register(family(name: "y_total"), family(name: "z_total"))
    [old, new].each { |source| Headway::Metrics.register(source) }
    register(family(name: "z_total", text: "c"))
    old.add("k", by: 10)
    new.add("k", by: 2)
    deltas = Headway::Metrics::Deltas.new
    told = Array.new(3) { deltas.of(Headway::Metrics.collect).select { |change| change.name == "x_total" }.map(&:number) }
    assert_equal [[2], [0], [0]], told
    lines = scrape.lines(chomp: true)
    ['x_total{a="k"} 2', 'y_total{a="b"} 7', 'z_total{a="c"} 7'].each { |line| assert_includes lines, line }
    refute_includes lines, 'z_total{a="b"} 7'
  end

  # Prometheus takes nothing of a text with one such name in it.
  def test_a_name_that_prometheus_cannot_read_is_left_out_with_one_notice
    register(family(name: "a\xff_total"), family(name: "b total"), family(name: "c_total", label: LATIN.to_sym), family(name: "d_total"),
             family(name: "e_total", label: :"e:e"))
    text = nil
    _, err = capture_io { text = Array.new(2) { scrape }.first }
    assert_equal ["d_total"], text.scan(/^\S+_total/).grep_v(/\Aruby_gvl/).uniq
    left_out = err.lines.map { |line| line[/\Aheadway: the metrics (.+) are left out: /, 1] }
    assert_equal ["a\ufffd_total", "b total", "c_total", "e_total"], left_out
    assert_includes err, "caf\u00e9"
  end

  def test_what_has_no_value_now_is_left_out
    register(family(name: "a_total").tap { |one| one.series[{ a: "gone" }] = nil })
    deltas = Headway::Metrics::Deltas.new
    told = lambda do
      deltas.of(Headway::Metrics.collect).select { |change| change.name == "a_total" }.map { |change| [change.labels[:a], change.number] }
    end
    assert_equal ["a_total{a=\"b\"} 7"], scrape.lines(chomp: true).grep(/\Aa_total/)
    assert_equal [["b", 7]], told.call
    assert_equal [["b", 0]], told.call
    assert_empty Headway.notices
  end

  # Prometheus takes nothing of a text with one 1/3 in it.
  def test_numbers_of_any_kind_are_written_as_every_system_reads_them
    register(Headway::Metrics::Family.new("a", :gauge, "A.", { { a: "third" } => 1 / 3r, { a: "many" } => 10**20, { a: "none" } => Complex(1, 2) }))
    assert_equal ["a{a=\"third\"} 0.3333333333333333", "a{a=\"many\"} 100000000000000000000"], scrape.lines(chomp: true).grep(/\Aa\{/)
    assert_empty Headway.notices
  end

  # Prometheus takes nothing of a text with one type in it that it doesn't know.
  def test_what_is_of_no_known_type_is_left_out_with_one_notice
    kinds = { "a" => nil, "b" => :timer, "c" => "gauge", "d" => :gauge }
    register(*kinds.map { |name, type| Headway::Metrics::Family.new(name, type, "X.", { {} => 7 }) })
    text = nil
    _, err = capture_io { text = Array.new(2) { scrape }.first }
    assert_equal ["# TYPE c gauge", "# TYPE d gauge"], text.lines(chomp: true).grep(/\A# TYPE [a-d] /)
    assert_equal ["a are left out: :\"\" is", "b are left out: :timer is"], err.scan(/the metrics (.+?) no type/).flatten.map(&:rstrip)
    assert_equal(%w[c d], Headway::Metrics.collect.map(&:name) & kinds.keys)
  end

  # A source's own class, or a module that is one, is loaded anew, and registers once more.
  def test_of_a_source_whose_code_is_reloaded_the_new_one_counts
    asked = []
    load_it = lambda do |number, kind|
      Object.send(:remove_const, :ShopFigures) if Object.const_defined?(:ShopFigures)
      Object.const_set(:ShopFigures, kind.new { define_method(:families) { asked << number and [] } })
    end
    2.times { |number| Headway::Metrics.register(load_it.call(number, Class).new) }
    3.times { |number| Headway::Metrics.register(load_it.call(2 + number, Module).tap { |it| it.extend(it) }) }
    2.times { Headway::Metrics.register(load_it.call(5, Class).new) }
    Headway::Metrics.collect
    assert_equal [5], asked
    Headway::Metrics.register(ShopFigures.new)
    Headway::Metrics.collect
    assert_equal [5, 5, 5], asked, "two of one class are two"
  end

  def test_what_is_no_family_is_named_and_keeps_nothing_back
    register(nil)
    register(family)
    text = nil
    _, err = capture_io { text = Array.new(2) { scrape }.first }
    assert_includes text, "shop_total{a=\"b\"} 7\n"
    assert_match(/\Aheadway: the metrics of .+ are missing: .+\n\z/, err)
  end

  def test_what_a_source_raises_may_have_any_message
    register(family)
    Headway::Metrics.register(Object.new.tap { |one| one.define_singleton_method(:families) { raise "caf\u00e9".encode(Encoding::UTF_16LE) } })
    text = nil
    _, err = capture_io { text = scrape }
    assert_includes text, "shop_total{a=\"b\"} 7\n"
    assert_equal "headway: the metrics of Object are missing: caf\u00e9\n", err
  end

  def test_siblings_are_told_too
    Dir.mktmpdir("headway-own") do |directory|
      Headway::Metrics.worker = 1
      register(family(text: LATIN), family(name: "b_total", help: "B\xff."))
      assert_includes scrape(Headway::Metrics::Endpoint.new(directory: directory)), "shop_total{worker=\"1\",a=\"caf\u00e9\"} 7\n"
      assert_includes File.read(File.join(directory, "headway-#{Process.pid}.json"), encoding: Encoding::UTF_8), "caf\u00e9"
    ensure
      Headway::Metrics::Siblings.at(directory).stop
    end
  end
end
