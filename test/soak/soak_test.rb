# frozen_string_literal: true

require "test_helper"
require "socket"
require "soak/clients"
require "soak/samples"
require "soak/tally"

# That bin/soak, which takes minutes, would see what it is there to see.
class SoakTest < Minitest::Test
  def setup
    super
    @tally = Soak::Tally.new
  end

  def test_a_whole_answer
    assert_equal({ whole: 1 }, asked { |number, size| answer(number, Soak::Answer.of(number, size)) })
  end

  def test_an_answer_of_another_request
    assert_equal({ mixed: 1 }, asked { |number, size| answer(number + 1, Soak::Answer.of(number + 1, size)) })
    assert_equal({ mixed: 1, wrong: 1 }, asked { |number, size| answer(number, Soak::Answer.of(number + 1, size)) })
  end

  def test_an_answer_cut_short_and_none
    assert_equal({ cut: 1 }, asked { |number, size| answer(number, Soak::Answer.of(number, size))[0...-5] })
    assert_equal({ cut: 1, dropped: 1 }, asked { "" })
  end

  def test_an_answer_without_its_first_line
    assert_equal({ nonsense: 1 }, asked { |number, size| answer(number, Soak::Answer.of(number, size)).sub(/\A.*\r\n/, "") })
  end

  def test_what_a_killed_worker_explains
    @tally.killed(12)
    assert_equal({ cut: 1 }, asked { |number, size| answer(number, Soak::Answer.of(number, size))[0...-5] })
    @tally.killed(11)
    assert_equal({ cut: 1, cut_by_kill: 1 }, asked { |number, size| answer(number, Soak::Answer.of(number, size))[0...-5] })
    assert_equal({ cut: 1, cut_by_kill: 1, dropped_by_kill: 1 }, asked { "" })
  end

  def test_a_restart_explains_no_answer_that_began
    @tally.restarting(5)
    assert_equal({ cut: 1 }, asked { |number, size| answer(number, Soak::Answer.of(number, size))[0...-5] })
    assert_equal({ cut: 1, dropped_in_restart: 1 }, asked { "" })
  end

  def test_a_slope
    assert_in_delta 2.0, Soak::Figures.slope([[0, 5], [1, 7], [2, 9], [3, 11]])
    assert_equal 0.0, Soak::Figures.slope([[1, 5], [1, 7], [1, 9]])
  end

  def test_a_process_has_figures
    figures = Soak::Figures.of(Process.pid)
    assert_operator figures[:rss_kb], :>, 1_000
    assert_operator figures[:threads], :>, 0
  end

  private

  # One request, answered by a server with what the block says.
  def asked
    TCPServer.open("127.0.0.1", 0) do |server|
      clients = Soak::Clients.new(server.local_address.ip_port, @tally, 1, left_out: Soak::Application::ROUTES.keys - ["sql"])
      client = Thread.new { clients.send(:once, Random.new(1)) }
      connection = server.accept
      request = connection.gets("\r\n\r\n")
      connection.write(yield(request[/X-Number: (\d+)/, 1].to_i, request[/X-Size: (\d+)/, 1].to_i))
      connection.close
      client.join
    end
    @tally.counts.reject { |_, count| count.zero? }.sort.to_h
  end

  def answer(number, body)
    "HTTP/1.1 200 OK\r\nx-number: #{number}\r\nx-process: 11 1 1 1\r\ncontent-length: #{body.bytesize}\r\n" \
      "connection: close\r\n\r\n#{body}"
  end
end
