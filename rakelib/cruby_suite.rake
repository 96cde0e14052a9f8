# frozen_string_literal: true

# CRuby's own tests as judge: what passes without Headway must pass with it.
namespace :cruby_suite do
  load_suite = lambda do
    require_relative "cruby_suite/suite"
  end

  desc "Run CRuby's thread tests without Headway and under every policy, and compare (ARMS=fair_signal,… to choose)"
  task threads: :compile do
    load_suite.call
    exit 1 unless CRubySuite::Suite.new(:threads).run
  end

  desc "The same with process, signal, io, fiber, compaction, socket and net/http tests"
  task wide: :compile do
    load_suite.call
    exit 1 unless CRubySuite::Suite.new(:wide).run
  end

  desc "Run CRuby's tests of fiber schedulers with Headway::FiberScheduler"
  task fiber: :compile do
    load_suite.call
    require_relative "cruby_suite/fiber_suite"
    exit 1 unless CRubySuite::FiberSuite.new.run
  end

  desc "Download and extract CRuby's tests only"
  task :source do
    load_suite.call
    puts CRubySuite::Source.new.directory
  end
end

task cruby_suite: "cruby_suite:threads"
