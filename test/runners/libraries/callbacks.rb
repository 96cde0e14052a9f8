# frozen_string_literal: true

require_relative "checks"
require "eventmachine"
require "ffi"
require "socket"

# Functions that call Ruby back: on the thread that called them, with the GVL or without, and from native threads of their own. An exception
# that comes while they do is lost on stock Ruby, too: ffi rescues whatever a callback raises.
module LibC
  extend FFI::Library

  ffi_lib FFI::Library::LIBC
  callback :compare, %i[pointer pointer], :int
  callback :body, [:pointer], :pointer
  attach_function :qsort, %i[pointer size_t size_t compare], :void
  attach_function :qsort_without_gvl, :qsort, %i[pointer size_t size_t compare], :void, blocking: true
  attach_function :usleep, [:uint], :int, blocking: true
  attach_function :pthread_create, %i[pointer pointer body pointer], :int
  attach_function :pthread_join, %i[pointer pointer], :int, blocking: true
end

NUMBERS = Array.new(200) { |number| number * 7919 % 1009 }.freeze
COMPARE = ->(one, other) { one.read_int <=> other.read_int }

def sorted(function, count)
  numbers = NUMBERS.first(count)
  memory = FFI::MemoryPointer.new(:int, count).write_array_of_int(numbers)
  LibC.public_send(function, memory, count, 4, COMPARE)
  memory.read_array_of_int(count) == numbers.sort
end

def in_native_thread(&block)
  id = FFI::MemoryPointer.new(:pointer)
  result = nil
  body = FFI::Function.new(:pointer, [:pointer]) { (result = block.call) && nil }
  LibC.pthread_create(id, nil, body, nil).zero? or raise "no native thread"
  LibC.pthread_join(id.read_pointer, nil)
  result
end

# Answers from its pool of threads.
module Echo
  def receive_data(data) = EM.defer(-> { compute(200) && data.upcase }, ->(answer) { send_data(answer) })
end

def in_reactor
  reactor = Thread.new { EM.run }
  eventually { EM.reactor_running? } or raise "no reactor"
  yield
ensure
  EM.stop
  reactor.join(20) or raise "the reactor goes on"
end

def echoed(port, count)
  TCPSocket.open("127.0.0.1", port) do |socket|
    Array.new(count) { |number| socket.write("echo #{number}") && socket.readpartial(100) == "ECHO #{number}" }
  end
end

def ticked(count)
  ticks = Queue.new
  count.times { |number| EM.next_tick { ticks << number } }
  Array.new(count) { ticks.pop(timeout: 20) }
end

checks do
  check("ffi: a callback with the GVL", { true => 80 }) { tally(8) { Array.new(10) { sorted(:qsort, 200) } } }
  # Each of which waits for the GVL.
  check("ffi: a callback from without it", { true => 8 }) { tally(4) { Array.new(2) { sorted(:qsort_without_gvl, 12) } } }
  check("ffi: callbacks from native threads", { 200 => 80 }) { tally(8) { Array.new(10) { in_native_thread { compute(200) && sleep(0.001) && 200 } } } }
  check("ffi: a function that waits beside others", { 0 => 80 }) { tally(8) { Array.new(10) { LibC.usleep(2_000) } } }
  in_reactor do
    port = Queue.new.tap { |found| EM.next_tick { found << Socket.unpack_sockaddr_in(EM.get_sockname(EM.start_server("127.0.0.1", 0, Echo))).first } }.pop
    check("eventmachine: echoed by its pool", { true => 160 }) { tally(8) { echoed(port, 20) } }
    check("eventmachine: next ticks in order", { [*0...50] => 8 }) { in_threads(8) { ticked(50) }.tally }
    check("eventmachine: timers", { true => 40 }) do
      tally(8) { Array.new(5) { Queue.new.tap { |done| EM.schedule { EM.add_timer(0.005) { done << true } } }.pop(timeout: 20) } }
    end
  end
  check("in forked children", [0] * 3) { forked(3) { in_threads(4) { sorted(:qsort_without_gvl, 12) && in_native_thread { 1 } }.uniq == [1] } }
end
