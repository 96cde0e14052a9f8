# frozen_string_literal: true

require "test_helper"
require "io/console"
require "json"
require "pty"
require "report/forms"
require "report/made_trace"

# The forms that are text: summary, Markdown, collapsed stacks, JSON.
class TextTest < Minitest::Test
  include ReportForms

  def test_summary
    text = report(:text, MadeTraces.stalled)

    assert_match(/\AHeadway 0\.1\.0: process 4242, ruby app\.rb, Ruby 3\.4\.1, policy observe, quantum 100 ms, preempt signal$/, text)
    assert_match(/2\.50 s recorded; over all threads: running 2\.50 s, ready 1\.70 s, suspended 2\.90 s; GVL free 0$/, text)
    assert_match(/GC: 2, 30\.0 ms in all, max 20\.0 ms$/, text)
    assert_match(/^  worker-3 +100 ms +1\.10 s +900 ms +2 /, text)
    assert_match(/^  1\.00 s   91 %  worker-3 waited for crunch$/, text)
    assert_match(%r{^  900 ms  90 %  Report#render app/report\.rb:12 \(in Array#each\)$}, text)
    assert_equal "worker-3 spent 52 % of its time waiting; 82 % of that behind `Report#render` (app/report.rb:12). With policy fair it would go first: `headway run --policy fair -- ruby app.rb`.", text.lines.last.chomp
  end

  def test_summary_in_a_terminal
    wide, narrow = [[24, 200], [24, 60]].map do |size|
      PTY.open do |terminal, device|
        device.winsize = size
        Headway::Report.text(MadeTraces.stalled, device)
        device.flush
        terminal.readpartial(4000).lines.map(&:chomp).find { |line| line.start_with?("  thread") }
      end
    end
    assert_operator wide.length, :>, 80
    assert_operator narrow.length, :<=, 60
  end

  def test_what_holders_were_on_no_processor
    assert_match(/ running 2\.50 s \(1\.00 s of that on no processor\), ready /, report(:text, MadeTraces.stalled(off_cpu_s: 1.0)))
  end

  def test_summary_of_nothing
    assert_match(/\AHeadway .*\n.*\nThe trace is empty: .*\n\z/m, report(:text, MadeTraces.empty))
    refute_match(/Who waited/, report(:text, MadeTraces.idle))
  end

  def test_a_crowd
    threads = (0...30).map { |index| { name: "w", segments: [[:ready, index / 100.0], [:running, 0.1]] } }
    text = report(:text, MadeTrace.new(threads: threads))

    assert_match(/w \(thread 30\)/, text)
    assert_includes text, "and 10 more that waited less"
  end

  def test_threads_are_told_apart_where_their_names_are_cut
    names = ["import of the catalogue of last year, page 1", "import of the catalogue of last year, page 2", "", ""]
    trace = MadeTrace.new(threads: names.map { |name| { name: name, site: "", segments: [[:ready, 1.0], [:running, 0.1]] } })
    labels = ["import of the catalogue of last year, p… (thread 1)", "import of the catalogue of last year, p… (thread 2)", "thread 3", "thread 4"]

    labels.each do |label|
      assert_match(/^  #{Regexp.escape(label)}  +100 ms/, report(:text, trace))
      assert_includes report(:markdown, trace), "\n| #{label} |"
    end
  end

  # As of a line that calls hundreds of methods for some milliseconds each.
  def test_a_line_is_one_whatever_it_was_calling
    frames = [["Report#render", "app/report.rb", 12], ["Array#each", "", 0], ["String#encode", "", 0], ["Report#draw", "app/report.rb", 30]]
             .map { |method, file, line| { method: method, file: file, line: line } }
    said = { [[1, 0.6], [2, 0.4]] => " (mostly in Array#each)", [[1, 0.4], [2, 0.3], [nil, 0.3]] => " (in Array#each and 2 more)",
             [[nil, 0.6], [2, 0.4]] => "", [[2, 0.6]] => " (in String#encode)" }
    said.each do |leaves, rest|
      stacks = leaves.map { |leaf, weight_s| { thread: 1, frames: [*leaf, 0], weight_s: weight_s, samples: 1 } }
      text = report(:text, MadeTraces.stalled(frames: frames, stacks: [*stacks, { thread: 1, frames: [3], weight_s: 0.1, samples: 1 }]))

      assert_equal ["Report#render app/report.rb:12#{rest}", "Report#draw app/report.rb:30"], text.lines.grep(/%  Report#/).map { |line| line[/Report#.*/] }
    end
  end

  # The line and the call are what is looked for.
  def test_of_a_long_path_the_end_is_told
    label = Headway::Report::Labels
    shown = ->(file, room) { label.frame({ method: "Shop#price", file: file, line: 12 }, room: room) }
    assert_equal "Shop#price /srv/releases/42/app/shop.rb:12", shown["/srv/releases/42/app/shop.rb", 42]
    assert_equal "Shop#price …/releases/42/app/shop.rb:12", shown["/srv/releases/42/app/shop.rb", 41]
    ["/srv/releases/42/app/shop.rb", "app/shop.rb", "shop.rb"].each { |file| assert_equal "#{"…/" if file[0] == "/"}#{file.split("/").last(2).join("/")}:12", shown[file, 1].split.last }

    file = "/srv#{"/releases" * 20}/app/shop.rb"
    frames = [["Kernel#sleep", "<cfunc>", 0], ["Shop#price", file, 12]].map { |method, path, line| { method: method, file: path, line: line } }
    stack = { frames: [0, 1], s: 1.0 }
    trace = MadeTraces.stalled(frames: frames, stacks: [{ thread: 1, frames: [0, 1], weight_s: 1.0, samples: 1 }],
                               work: [{ **WORK.first, ready_s: 0.1, blocked: [stack], longest: { thread: 2, start_s: 1.0, total_s: 4.0, running_s: 0.1, ready_s: 1.0, behind: [stack] } }])
    [report(:text, trace), report(:markdown, trace)].each do |text|
      assert_equal 2, text.scan(%r{Shop#price …/releases/.*/releases/app/shop\.rb:12 \(in Kernel#sleep\)}).size, text # blame and blocked
      assert_equal 1, text.scan(%r{behind.*Shop#price …/releases/.*/releases/app/shop\.rb:12(?: \(100|` \|)}m).size, text
    end
  end

  def test_a_line_is_told_with_the_work_that_was_in_it
    stacks = MadeTraces.stalled.to_h[:blame][:stacks].map { |stack| { frames: stack[:frames], s: stack[:weight_s] } }
    trace = MadeTraces.stalled(work: [WORK[0], { **WORK[1], blamed: [stacks[0], { **stacks[1], s: 0.04 }] }])

    assert_match(/ 900 ms  90 %  Report#render app\/report\.rb:12 \(in Array#each\), at GET \/report\|<b>$/, report(:text, trace))
    assert_match(/ 100 ms  10 %  Totals\.add app\/totals\.rb:7$/, report(:text, trace))
    assert_includes report(:markdown, trace), "(in Array#each)`, at `GET /report\\|<b>` | 900 ms | 90 % |\n"
  end

  WORK = [{ name: "GET /", count: 900, total_s: 10.0, running_s: 0.5, ready_s: 6.0, computed_s: 0.0, blamed_s: 0.1 },
          { name: "GET /report|<b>", count: 20, total_s: 8.0, running_s: 6.0, ready_s: 1.0, computed_s: 0.0, blamed_s: 0.9 }].freeze

  def test_what_work_did
    text = report(:text, MadeTraces.stalled(work: WORK))

    assert_match(/^  work +count +took +running +ready +suspended +others waited$/, text)
    assert_match(/^  GET \/ +900 +10\.0 s +500 ms +6\.00 s +3\.50 s +100 ms$/, text)
    assert_includes report(:markdown, MadeTraces.stalled(work: WORK)), "| `GET /report\\|<b>` | 20 | 8.00 s | 6.00 s | 1.00 s | 1.00 s | 900 ms |\n"
    refute_match(/^  work /, report(:text, MadeTraces.stalled))
  end

  def test_the_work_that_took_longest_comes_first
    work = (1..30).map { |i| { **WORK.first, name: i == 3 ? "" : "GET /#{i}", total_s: i.to_f, ready_s: 0.0 } }
    [report(:text, MadeTraces.stalled(work: work)), report(:markdown, MadeTraces.stalled(work: work))].each do |text|
      assert_operator text.index("GET /30"), :<, text.index("GET /11")
      refute_includes text, "GET /10"
      assert_includes text, "and 10 more that took less"
    end
    assert_match(/^  \(no name\) /, report(:text, MadeTraces.stalled(work: [{ **WORK.first, name: "" }])))
  end

  # Of what waited for less than a millisecond nobody wants to know.
  def test_the_work_that_waited_longest
    one = { thread: 2, start_s: 1.25, total_s: 0.4, running_s: 0.01, ready_s: 0.3 }
    behind = [{ frames: [3, 0, 1], s: 0.1 }, { frames: [4], s: 0.12 }, { frames: [0], s: 0.05 }]
    kinds = { "" => { **one, ready_s: 0.2, behind: [{ frames: [4], s: 0.049 }] }, # which explains little of it
               "GET /" => { **one, behind: }, "GET /quick" => { **one, ready_s: 0.0009, behind: [] }, "GET /never" => nil }
    trace = MadeTraces.stalled(work: kinds.map { |name, longest| { **WORK.first, name:, longest: } })
    text = report(:text, trace)

    assert_includes text, "  Of each kind the one that waited longest for the GVL, and what that was mostly behind\n" \
                          "  300 ms  of 400 ms  GET /, at 1.250 s in worker-3, behind Report#render app/report.rb:12 (50 %)\n" \
                          "  200 ms  of 400 ms  work without a name, at 1.250 s in worker-3\n\n"
    assert_includes report(:markdown, trace), "| `GET /` | worker-3 | `Report#render app/report.rb:12` | 1.250 s | 300 ms | 400 ms | 50 % |\n" \
                                              "| `work without a name` | worker-3 | - | 1.250 s | 200 ms | 400 ms | - |\n\n"
    many = (1..9).map { |i| { **WORK.first, name: "GET /#{i}", longest: { **one, behind: [] } } }
    assert_equal 5, report(:text, MadeTraces.stalled(work: many)).scan(/GET \/\d, at/).size
    refute_includes report(:text, MadeTraces.stalled(work: WORK)), "waited longest"
  end

  def test_markdown
    text = report(:markdown, MadeTraces.stalled)

    assert_match(/\A\*\*worker-3 spent .* behind `Report#render` \(app\/report\.rb:12\)\. With policy fair it would go first: `headway run --policy fair -- ruby app\.rb`\.\*\*$/, text)
    assert_includes text, "| worker-3 | crunch | 1.00 s | 91 % |\n"
    assert_includes text, "| `Report#render app/report.rb:12 (in Array#each)` | 900 ms | 90 % |\n"
    tables = text.split("\n\n").select { |part| part.start_with?("|") }
    assert_equal 4, tables.size
    tables.each { |table| assert_equal 1, table.lines.map { |line| line.count("|") }.uniq.size, table }
  end

  # Who waited, at what; on no processor; stalls; collections.
  def test_markdown_has_all_of_a_long_headline
    frames = MadeTraces::FRAMES.map { |frame| frame.merge(method: "Report#render#{"Again" * 9}") }
    trace = MadeTraces.stalled(off_cpu_s: 1.0, gc: [[0, 0.6, 1.2]], frames: frames)
    headline = Headway::Report::Document.new(trace).to_h[:headline]

    assert_operator headline.size, :>, 400
    assert_includes report(:markdown, trace), "**#{headline}**"
  end

  def test_markdown_takes_no_markup_from_names
    text = report(:markdown, MadeTrace.new(threads: [{ name: "a|b<img src=x>*c*\n# d", segments: [[:ready, 1.0]] }],
                                           frames: [{ method: "x|`y", file: "a.rb", line: 1 }],
                                           stacks: [{ thread: 0, frames: [0], weight_s: 1.0, samples: 1 }]))

    assert_includes text, 'a\|b\<img src=x\>\*c\*?# d'
    assert_includes text, "`x\\|'y a.rb:1`"
  end

  def test_losses_are_told
    trace = MadeTraces.stalled(marks_folded: 7)
    process = trace.to_h[:processes].first.merge(dropped: 5, folded: 2, damage: { offset: 99, what: "checksum" })
    text = report(:markdown, MadeTraces.stalled(processes: [process], marks_folded: 7))

    assert_includes text, "> process 4242: the trace is damaged at byte 99 (checksum)"
    assert_includes text, "> process 4242: 5 events were dropped"
    assert_includes text, "> process 4242: 2 blame samples were folded"
    assert_includes text, "> 7 marks are left out."
  end

  def test_collapsed_stacks
    assert_equal ["crunch;<main> app.rb:3;Totals.add app/totals.rb:7 100000\n",
                  "crunch;<main> app.rb:3;block in Report#page app/report.rb:40;Report#render app/report.rb:12;" \
                  "Array#each <internal:array>:42 900000\n"], report(:collapsed, MadeTraces.stalled).lines
    assert_empty report(:collapsed, MadeTraces.idle)
  end

  def test_collapsed_stacks_are_one_line_each_whatever_the_names
    text = report(:collapsed, MadeTrace.new(threads: [{ name: "a;b\nc", segments: [] }], frames: [{ method: "x;\ny 7\xff", file: "", line: 0 }],
                                            stacks: [{ thread: 0, frames: [0], weight_s: 1e-9, samples: 1 },
                                                     { thread: 0, frames: [0], weight_s: 0.0, samples: 1 }]))

    assert_equal "a_b?c;x_?y 7? 1\n", text
  end

  def test_json
    trace = MadeTraces.stalled
    data = JSON.parse(report(:json, trace), symbolize_names: true)

    assert_equal trace.to_h.merge(headline: "worker-3 spent 52 % of its time waiting; 82 % of that behind `Report#render` (app/report.rb:12). With policy fair it would go first: `headway run --policy fair -- ruby app.rb`.", notes: []), data
  end

  # A trace comes from anywhere, and what its header says is shown.
  def test_no_name_of_the_trace_steers_the_terminal_or_is_markup
    odd = "<b>\e[2J\n"
    trace = MadeTrace.new(threads: [{ name: "", site: "\0", segments: [[:running, 1.0]] }], frames: [{ method: "", file: "\0", line: 0 }],
                          stacks: [{ thread: 0, frames: [0], weight_s: 1.0, samples: 1 }],
                          processes: [{ ruby: odd, policy: odd, preempt: odd, command: odd }], headway: odd)
    blame = MadeTraces.stalled.to_h[:blame]
    behind = MadeTraces.stalled(blame: blame.merge(frames: blame[:frames].map { |frame| frame.merge(method: odd, file: odd) }))
    [trace, behind].each { |one| refute_match(/[^\n[:^cntrl:]]/, report(:text, one)) }
    refute_match(/[^\n[:^cntrl:]]|(?<![`\\])<b>/, report(:markdown, trace))
  end

  # Every key of the object is described.
  def test_json_is_documented
    page = File.read(File.expand_path("../../docs/report-json.md", __dir__))

    keys_of(Headway::Report::Document.new(MadeTraces.stalled).to_h).each { |key| assert_includes page, "`#{key}`" }
  end

  def test_the_analysis_is_made_once
    trace = MadeTraces.stalled
    document = Headway::Report::Document.new(trace)
    %i[text markdown json collapsed perfetto firefox].each { |form| report(form, document) }

    assert_equal 1, trace.analyses
  end
  def test_a_server_whose_requests_are_not_marked
    pool = [{ name: "puma srv tp 001", segments: [[:running, 0.1], [:suspended, 0.9]] }]
    jobs = [{ name: "sidekiq.default/processor", segments: [[:running, 0.1], [:suspended, 0.9]] }]
    idle = [{ name: "puma srv tp 001", segments: [[:running, 0.01], [:suspended, 0.9]] }, { name: "puma reactor", segments: [[:running, 0.1], [:suspended, 0.9]] }]
    notes = ->(threads, work = []) { Headway::Report::Notes.of(MadeTrace.new(threads: threads, work: work).to_h) }
    work = [{ name: "GET /", count: 1, total_s: 0.5, running_s: 0.1, ready_s: 0.0, computed_s: 0.0, blamed_s: 0.0 }]

    [pool, jobs].each do |threads|
      assert_equal ["no requests or jobs are marked, without which nobody can tell what they waited for: `use Headway::Rack` first in config.ru, or " \
                    "Headway::Sidekiq.install, marks them; in Rails gem \"headway\" is enough"], notes[threads]
      assert_empty notes[threads, work]
    end
    assert_empty notes[idle]
  end

end
