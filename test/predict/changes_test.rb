# frozen_string_literal: true

require_relative "recorded"
require "headway/advise"
require "harness/default_encoding"
require "shellwords"

# What `headway advise` says is to be changed, and where.
class AdviseChangesTest < PredictCase
  include Harness::DefaultEncoding

  def test_the_diff_is_for_the_servers_own_file
    path = mixed(command: "puma 8.0.2 (tcp://0.0.0.0:9292) [app]", cpus: 2)
    Dir.mkdir(File.join(@directory, "config"))
    File.write(File.join(@directory, "config/puma.rb"), "port 3000\n  threads 1, 1\npreload_app!\n")
    diff = Dir.chdir(@directory) { json_of("advise", path) }["diff"]

    recommended = json_of("advise", path)["recommended"]
    assert_match(/\A--- config\/puma\.rb\n\+\+\+ config\/puma\.rb\n@@ -1,3 \+1,4 @@\n port 3000\n-  threads 1, 1\n\+  threads (\d+), \1\n preload_app!\n\+workers 2\n/, diff)
    assert_includes diff, "threads #{recommended["threads"]}, #{recommended["threads"]}"
    File.write(File.join(@directory, "advice.diff"), diff)
    Dir.chdir(@directory) { assert system("patch", "-p0", "-s", "-i", "advice.diff") } if system("command -v patch >/dev/null")
  end

  def test_without_a_file_the_diff_makes_one
    sidekiq = changes_of("sidekiq 8.0 app [0 of 5 busy]", setting(5), setting(12)).diff
    puma = changes_of("puma 8.0.2 (tcp://0.0.0.0:9292) [app]", setting(5), setting(3).with(processes: 2)).diff

    assert_equal "--- /dev/null\n+++ config/sidekiq.yml\n@@ -0,0 +1,1 @@\n+:concurrency: 12\n", sidekiq
    assert_equal "--- /dev/null\n+++ config/puma.rb\n@@ -0,0 +1,2 @@\n+threads 3, 3\n+workers 2\n", puma
  end

  def test_the_only_count_of_sidekiqs_file_is_changed_wherever_it_is
    changes = sidekiq_changes("production:\n  :concurrency: 5\n  :queues: [low]\n")
    assert_includes changes.diff, " production:\n-  :concurrency: 5\n+  :concurrency: 12\n"
    assert_equal 1, changes.words.size
  end

  def test_what_the_command_line_says_is_changed_there
    File.write(File.join(@directory, "mine.rb"), "workers 0\n")
    sidekiq = changes_of("sidekiq -r ./w.rb -c 5", setting(5), setting(3))
    puma = changes_of("puma -C mine.rb -t 5:5", setting(5), setting(3).with(processes: 2))

    assert_equal ["", ["start it as sidekiq -r ./w.rb -c 3"]], [sidekiq.diff, sidekiq.words]
    assert_equal "headway run -x -- sidekiq -r ./w.rb -c 3", sidekiq.run("-x")
    assert_equal "--- mine.rb\n+++ mine.rb\n@@ -1,1 +1,1 @@\n-workers 0\n+workers 2\n", puma.diff
    assert_equal ["start it as puma -C mine.rb -t 3:3"], puma.words
    assert_equal "headway run -x -- puma --threads=1:1 -w 0", changes_of("puma --threads=4 -w 2", setting(4), setting(1)).run("-x")
  end

  def test_a_server_of_one_thread_a_process_has_its_number_of_processes_in_its_own_file
    File.write(File.join(@directory, "mine.rb"), "worker_processes 2\ntimeout 30\n")
    to = setting(1).with(processes: 4)
    { "unicorn master -c mine.rb config.ru" => "mine.rb", "/srv/bin/pitchfork" => "config/pitchfork.rb" }.each do |command, file|
      changes = changes_of(command, setting(1).with(processes: 2), to)
      assert_match(/\A--- .*\n\+\+\+ #{file}\n(?:.*\n)*\+worker_processes 4\n/, changes.diff)
      assert_empty changes.words
    end
    resque = changes_of("rake resque:work", setting(1), to)
    assert_equal ["", ["start 4 processes instead of 1"]], [resque.diff, resque.words]
  end

  # Whoever wrote the trace may have named anything.
  def test_of_what_the_command_line_names_a_file_alone_is_read
    File.mkfifo(File.join(@directory, "pipe"))
    File.write(File.join(@directory, "large.rb"), "workers 0\n")
    File.truncate(File.join(@directory, "large.rb"), 1 << 30)
    ["pipe", "large.rb", "/dev/zero", ".", "~nobody-here/puma.rb"].each do |name|
      diff = changes_of("puma -C #{name} -t 5:5", setting(5), setting(5).with(processes: 2)).diff
      assert_equal "--- /dev/null\n+++ #{name}\n@@ -0,0 +1,1 @@\n+workers 2\n", diff, name
    end
  end

  def test_nothing_of_a_command_ends_it_in_a_shell
    run = changes_of("puma -t 5:5; touch $(x) it's", setting(5), setting(5)).run("-x")
    assert_equal "headway run -x -- puma -t '5:5;' touch '$(x)' 'it'\\''s'", run
    assert_equal %w[puma -t 5:5; touch $(x) it's], Shellwords.split(run).drop(4)
  end

  def test_of_several_counts_in_sidekiqs_file_none_is_guessed
    [":concurrency: 5\nproduction:\n  concurrency: 9\n", ":capsules:\n  unsafe:\n    :concurrency: 1\n"].each do |text|
      changes = sidekiq_changes(text)
      assert_empty changes.diff
      assert_equal "see that config/sidekiq.yml makes 12 threads of 5: it has several counts", changes.words.first
    end
  end

  def test_one_of_a_kind_is_called_so
    one = setting(1)
    assert_equal ["start 1 process instead of 2", "use 1 thread instead of 5"], changes_of("ruby app.rb", setting(5).with(processes: 2), one).words
    File.write(File.join(@directory, "mine.yml"), ":concurrency: 5\nproduction:\n  :concurrency: 9\n")
    assert_includes changes_of("sidekiq -C mine.yml", setting(5), one).words, "see that mine.yml makes 1 thread of 5: it has several counts"
  end

  # What Bundler found, it has to find again; the application's own bin/puma does so itself.
  def test_the_command_to_verify_with_runs
    changes = ->(command) { changes_of(command, setting(5), setting(3)).run("-x") }
    assert_equal "headway run -x -- bundle exec puma -p 3000", changes["/app/vendor/bundle/ruby/3.4.0/bin/puma -p 3000"]
    assert_equal "headway run -x -- bundle exec rackup -p 3000", changes["/usr/local/bundle/bin/rackup -p 3000"]
    assert_equal "headway run -x -- rackup -p 3000", changes["/var/lib/gems/3.4.0/gems/rackup-2.2.1/exe/rackup -p 3000"]
    assert_equal "headway run -x -- /usr/local/bin/puma -p 3000", changes["/usr/local/bin/puma -p 3000"]
    assert_equal "headway run -x -- bundle exec puma -t 3:3", changes["/app/vendor/bundle/ruby/3.4.0/gems/puma-8.0.2/bin/puma-wild -t 5:5"]
    assert_equal "headway run -x -- /srv/gems/app.rb", changes["/srv/gems/app.rb"]
    File.write(File.join(@directory, "Gemfile.lock"), "GEM\n  specs:\n    puma (8.0.2)\n")
    assert_equal "headway run -x -- bundle exec puma -p 3000", changes["/usr/local/bin/puma -p 3000"]
    assert_equal "headway run -x -- #{@directory}/bin/puma", changes["#{@directory}/bin/puma"]
    assert_equal "headway run -x -- /usr/bin/bundle exec puma", changes["/usr/bin/bundle exec puma"]
    assert_equal "headway run -x -- /usr/bin/rake", changes["/usr/bin/rake"]
    File.write(File.join(@directory, "Gemfile.lock"), "GEM\n  specs:\n    good_job (4.23.1)\n    rake (13.3.0)\n")
    assert_equal "headway run -x -- bundle exec rake jobs", changes["/usr/bin/rake jobs"]
    assert_equal "headway run -x -- bundle exec good_job start", changes["/usr/local/bin/good_job start"]
    assert_equal "headway run -x -- #{@directory}/bin/good_job start", changes["#{@directory}/bin/good_job start"]
    File.write(File.join(@directory, "Gemfile.lock"), "GEM\n  specs:\n    headway (0.1.0)\n    puma (8.0.2)\n")
    assert_equal "bundle exec headway run -x -- bundle exec sidekiq", changes["sidekiq 8.0 app [0 of 5 busy]"]
  end

  def test_all_commands_to_verify_with_are_the_bundles
    path = mixed(cpus: 1)
    File.write(File.join(@directory, "Gemfile.lock"), "GEM\n  specs:\n    headway (0.1.0)\n")
    lines = Dir.chdir(@directory) { json_of("advise", path) }["verify"]
    assert_equal 3, lines.grep(/(?:\A|  )bundle exec headway (?:run|predict|advise) /).size, lines
  end

  # Of a file's name each process but one would make another.
  def test_several_processes_are_verified_with_a_directory
    several, one = [4, 1].map { |cpus| mixed(cpus: cpus).then { |path| Dir.chdir(@directory) { json_of("advise", path) } } }
    assert_operator several.dig("recommended", "processes"), :>, 1
    assert_match(/\Amkdir after\b/, several["verify"].first)
    assert_match(/ --record after -- /, several["verify"][1])
    assert_match(/\Aheadway predict after /, several["verify"][2])
    assert_match(/ --record after\.headway -- /, one["verify"].first)
  end

  def test_headway_is_to_be_started_only_where_it_is_not
    start = ->(command) { changes_of(command, setting(5), setting(5, policy: :fair)).words.grep(/Headway/) }
    assert_equal ["see that the server starts Headway: gem \"headway\" in the Gemfile, and in config/puma.rb plugin :headway " \
                  "(headway run does it for you)"], start["bundle exec puma"]
    FileUtils.mkdir_p(File.join(@directory, "config"))
    File.write(File.join(@directory, "config/puma.rb"), "# plugin :headway\nthreads 5, 5\n")
    assert_equal 1, start["bundle exec puma"].size
    File.write(File.join(@directory, "config/puma.rb"), "threads 5, 5\nplugin :headway\n")
    assert_empty start["bundle exec puma"]
    File.write(File.join(@directory, "Gemfile.lock"), "GEM\n  specs:\n    headway (0.1.0)\n    railties (8.1.0)\n")
    assert_empty start["bin/rails server"]
  end

  # Nothing else marks a job of Sidekiq's, and it starts Headway.
  def test_in_sidekiq_marked_jobs_tell_that_headway_is_there
    to_headway = [setting(5), setting(5, policy: :fair)]
    assert_empty changes_of("sidekiq 8.0 app [0 of 5 busy]", *to_headway, span: :job).words.grep(/Headway/)
    unmarked = TraceEncoder.new(policy: "observe", command: "sidekiq 8.0 app [0 of 5 busy]")
    path = write(unmarked.events([ns(0), 1, :known, 2], [ns(1), 1, :suspended], [ns(2), 1, :ready], [ns(2), 1, :resumed], [ns(3), 1, :suspended]).dropped(0, 0).end)
    changes = Headway::Advise::Changes.new(Headway::Workload.open(path), *to_headway, directory: @directory)
    assert_match(/Headway::Sidekiq\.install /, changes.words.grep(/Headway/).first)
  end

  def test_variables_that_are_no_longer_wanted
    changes = Headway::Advise::Changes.new(Headway::Workload.open(mixed), setting(5, quantum_ms: 10), setting(5, policy: :fair))
    assert_equal ["set in the environment: HEADWAY_POLICY=fair", "unset in the environment: RUBY_THREAD_TIMESLICE"],
                 changes.words.first(2)
  end

  def test_rails_server_is_puma
    changes = ->(command) { Headway::Advise::Changes.new(Headway::Workload.open(mixed(command:)), setting(5), setting(3), directory: @directory) }
    assert_includes changes["/app/bin/rails server -p 3000"].diff, "+threads 3, 3\n"
    assert_equal "headway run --summary -- bin/rails s", changes["bin/rails s"].run("--summary")
    assert_empty changes["bin/rails runner server"].diff
  end

  def test_a_diff_can_be_applied_whatever_the_files_last_line
    skip "no patch" unless system("command -v patch >/dev/null")
    { "threads 5, 5\nworkers 1" => "threads 5, 5\nworkers 2", "threads 5, 5" => "threads 5, 5\nworkers 2\n", "# none\n" * 9 => "#{"# none\n" * 9}workers 2\n",
      "workers 1\r\nthreads 5, 5\r\n" => "workers 2\r\nthreads 5, 5\r\n" }.each do |before, after|
      workload = Headway::Workload.open(mixed(command: "puma: cluster worker 0: 17 [shop]"))
      FileUtils.mkdir_p(File.join(@directory, "config"))
      path = File.join(@directory, "config/puma.rb")
      File.binwrite(path, before)
      changes = Headway::Advise::Changes.new(workload, setting(5), setting(5).with(processes: 2), directory: @directory)
      IO.popen(%w[patch --binary -s -p0 -d] << @directory, "w") { |patch| patch.write(changes.diff) }
      assert_equal after, File.binread(path)
      assert_equal "headway run --summary -- bundle exec puma", changes.run("--summary")
    end
  end

  def test_a_file_in_another_encoding_is_taken_as_it_is
    Dir.mktmpdir do |directory|
      Dir.mkdir("#{directory}/config")
      File.binwrite("#{directory}/config/sidekiq.yml", "# gr\xFC\xDFe\n:concurrency: 5\n")
      workload = Headway::Workload.open(mixed(command: "sidekiq 8.0 app [0 of 5 busy]"))
      [nil, Encoding::ISO_8859_1].each do |internal|
        diff = with_encoding(:default_internal, internal) { Headway::Advise::Changes.new(workload, setting(5), setting(12), directory:).diff }
        assert_match(/^-:concurrency: 5\n\+:concurrency: 12$/, diff)
      end
    end
  end

  def test_slices_of_the_vm_are_set_where_it_has_them
    workload = Headway::Workload.open(orders)
    changes = ->(**to) { Headway::Advise::Changes.new(workload, setting(5), setting(5, **to)).environment }

    assert_equal({ "RUBY_THREAD_TIMESLICE" => "10" }, changes[policy: :stock, quantum_ms: 10])
    assert_equal({ "HEADWAY_POLICY" => "quantum", "RUBY_THREAD_DEFAULT_QUANTUM_MS" => "10" }, changes[policy: :quantum, quantum_ms: 10])
    assert_empty changes[policy: :stock]
    old = Headway::Workload.open(write(one_thread(50, ruby: "3.3.8") { [1, 1, 4, 1] }, "old.headway"))
    settings = Headway::Advise::Candidates.new(old, rate: nil).settings
    refute(settings.any? { |candidate| candidate.policy == :stock && candidate.quantum_ms == 10 })
  end

  def test_where_threads_share_native_threads_no_policy_is_a_candidate
    settings = Headway::Advise::Candidates.new(Headway::Workload.open(orders(preempt: "none")), rate: nil).settings
    assert_equal [:stock], settings.map(&:policy).uniq
  end

  private

  def changes_of(command, from, to, **recorded)
    Headway::Advise::Changes.new(Headway::Workload.open(mixed(command:, **recorded)), from, to, directory: @directory)
  end

  def sidekiq_changes(file)
    FileUtils.mkdir_p(File.join(@directory, "config"))
    File.write(File.join(@directory, "config/sidekiq.yml"), file)
    Headway::Advise::Changes.new(Headway::Workload.open(mixed(command: "sidekiq 8.0 app [0 of 5 busy]")), setting(5), setting(12), directory: @directory)
  end

  def setting(threads, policy: :stock, quantum_ms: 100.0) = Headway::Predict::Setting.new(processes: 1, threads:, policy:, quantum_ms:, rate: nil)
end
