# frozen_string_literal: true

module Stress
  # What a process tells its parent: a file of marshalled rows, each appended in one write, so that no row of a forked
  # child, a finalizer or an at_exit block is lost or torn.
  class Report
    def self.read(path)
      rows = []
      File.open(path, "rb") { |file| rows << Marshal.load(file) until file.eof? }
      rows
    rescue Errno::ENOENT
      []
    rescue TypeError, ArgumentError, EOFError
      rows << [:failure, "the report is torn"]
    end

    def initialize(path)
      @file = File.open(path, File::WRONLY | File::CREAT | File::APPEND | File::BINARY)
    end

    def <<(row)
      @file.syswrite(Marshal.dump(row))
      self
    end
  end
end
