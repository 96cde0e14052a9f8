# frozen_string_literal: true

# Which requests or jobs come when; required by load.rb and jobs.rb.

# A mix of paths, by their shares.
class Arrivals
  # @param config [Hash] "paths": path => share; "seed"; for {poisson} "rate", "requests" and "only"
  def initialize(config)
    @config = config
    @paths = config.fetch("paths")
    @random = Random.new(config.fetch("seed"))
    @sent = Hash.new(0)
  end

  # @return [Array<Array(Float, String)>] seconds from the start, path: the same for every arm; with "only", the same again without
  #   the others
  def poisson
    at = 0.0
    all = Array.new(@config.fetch("requests")) { [at -= Math.log(1 - @random.rand) / @config.fetch("rate"), pick] }
    @config["only"] ? all.select { |_, path| @config["only"].include?(path) } : all
  end

  # By chance a minute's requests may have a tenth more heavy ones: too much for a comparison of throughputs.
  #
  # @return [String] path
  def next_in_turn
    total = @sent.values.sum + 1
    path, = @paths.max_by { |each, share| (share * total) - @sent[each] }
    @sent[path] += 1
    path
  end

  private

  def pick
    number = @random.rand
    @paths.find { |_, share| (number -= share) < 0 }&.first || @paths.keys.last
  end
end
