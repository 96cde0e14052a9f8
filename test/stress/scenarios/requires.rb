# frozen_string_literal: true

module Stress
  # How often each file was loaded: the files write here.
  LOADS = Hash.new(0)

  module Scenarios
    # The same files required from several threads, in different orders; constants autoloaded by several.
    class Requires < Scenario
      def round
        names = Array.new(rand(2..4)) { |number| write(number) }
        threads = rand(2..4)
        orders = Array.new(threads) { names.shuffle(random: @random) }
        loaded = values_of(orders.map { |order| start_thread { order.select { |name| require(name) } } }).flatten
        check_equal(loaded.uniq, loaded, "requires that were the first")
        check_equal([1] * names.size, names.map { |name| LOADS[name] }, "loads of each file")
        account(:requires, names.size, names.sum { |name| LOADS[name] })
        autoload_constant(threads)
        forget(names)
      end

      private

      def path(number) = File.join(@run.directory, "required_#{@rounds}_#{number}.rb")

      # Each one requires the one before.
      def write(number)
        path = path(number)
        write_file(path, <<~RUBY)
          #{"require #{path(number - 1).inspect}" if number.positive?}
          500.times { |count| count + 1 }
          sleep 0.0005
          Stress::LOADS[#{path.inspect}] += 1
        RUBY
        path
      end

      def autoload_constant(threads)
        constant = :"Loaded#{@rounds}"
        path = path(:auto)
        write_file(path, "class Stress::Scenarios::Requires\n  sleep 0.0005\n  #{constant} = Stress::LOADS[#{path.inspect}] += 1\nend\n")
        self.class.autoload(constant, path)
        values = values_of(Array.new(threads) { start_thread { self.class.const_get(constant) } })
        check_equal([1] * threads, values, "values of an autoloaded constant")
        account(:requires, 1, LOADS[path])
        forget([path])
      end

      def forget(paths)
        File.delete(*paths)
        paths.each { |path| LOADS.delete(path) }
      end
    end
  end
end
