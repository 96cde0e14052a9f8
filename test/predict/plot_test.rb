# frozen_string_literal: true

require_relative "recorded"

# `headway predict --plot`.
class PredictPlotTest < PredictCase
  def plot(*arguments)
    path = File.join(@directory, "drawn.svg")
    status, = run_cli("predict", *arguments, "--plot", path)
    assert_equal 0, status
    File.read(path)
  end

  def test_the_plot_is_a_file_of_its_own
    svg = plot(orders, "--threads", "1,4")

    assert_match(/\A<svg /, svg)
    assert_includes svg, ">0<"
    assert_empty svg.scan(/>\d+\.0</), "no fraction that says nothing"
    assert_equal 4, svg.scan("<path d=\"M").size - 2 # two lines and a key each
    assert_equal %w[1 1 2 2], svg.scan(/font-weight="600">(\d)</).flatten # at the line's end and in the list, for who sees no colours
    refute_match(/NaN|Infinity|https?:(?!\/\/www\.w3\.org\/2000\/svg)/, svg)
  end

  def test_the_plot_draws_what_the_table_tells
    highest = ->(svg) { svg.scan(/text-anchor="middle">([\d.]+)</).flatten.map(&:to_f).max }
    computing = write(one_thread(500) { [1, 1, 0, 1] })
    one, four = %w[1 4].map { |cores| plot(computing, "--processes", "4", "--cores", cores) }
    assert_in_delta 4, highest[four] / highest[one], 0.1
    assert_includes one, "against load: p99,"
    assert_includes plot(orders(100)), "against load: p95," # too few for a p99

    hours = write(one_thread(60) { [1, 7_200_000, 0, 0] })
    assert_includes plot(hours, "--threads", "8"), "no setting could be predicted"
  end

  # A file as long as it may be is what a full disk is.
  def test_a_plot_that_cannot_be_written_leaves_the_one_before
    path = orders
    before = plot(path)
    limit, most = Process.getrlimit(:FSIZE)
    previous = trap("XFSZ", "IGNORE")
    Process.setrlimit(:FSIZE, 64, most)
    status, _, err = run_cli("predict", path, "--plot", File.join(@directory, "drawn.svg"))
    Process.setrlimit(:FSIZE, limit, most)

    assert_equal 2, status
    assert_match(/\Aheadway: cannot write .*drawn\.svg: File too large\n\z/, err)
    assert_equal before, File.read(File.join(@directory, "drawn.svg"))
    assert_equal %w[drawn.svg trace.headway], Dir.children(@directory).sort
  ensure
    Process.setrlimit(:FSIZE, limit, most) if limit
    trap("XFSZ", previous) if previous
  end

  def test_a_plot_does_not_go_over_the_trace
    path = orders
    before = File.binread(path)
    assert_bad_usage(/--plot .* is a trace to be read/, "predict", path, "--plot", File.join(@directory, ".", File.basename(path)))
    assert_equal before, File.binread(path)
  end
end
