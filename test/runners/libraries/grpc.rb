# frozen_string_literal: true

ENV["GRPC_ENABLE_FORK_SUPPORT"] = "1"
require_relative "checks"
require "grpc"
require "google/protobuf/wrappers_pb"
require "timeout"

Text = Google::Protobuf::StringValue

# Answers after it has computed or waited as it is asked to.
class Echo
  include GRPC::GenericService

  self.marshal_class_method = :encode
  self.unmarshal_class_method = :decode
  self.service_name = "smoke.Echo"
  rpc :Say, Text, Text
  rpc :Count, Text, stream(Text)
  rpc :Talk, stream(Text), stream(Text)
end

class Echoes < Echo
  def say(text, _call)
    what, seconds = text.value.split
    seconds = seconds.to_f
    what == "wait" ? sleep(seconds) : compute_for(seconds)
    text
  end

  def count(text, _call)
    Enumerator.new { |yielder| text.value.to_i.times { |number| compute(200) && yielder << Text.new(value: number.to_s) } }
  end

  def talk(texts) = Enumerator.new { |yielder| texts.each { |text| yielder << Text.new(value: text.value.upcase) } }
end

def server
  server = GRPC::RpcServer.new(pool_size: 60, max_waiting_requests: 200)
  port = server.add_http2_port("127.0.0.1:0", :this_port_is_insecure)
  server.handle(Echoes)
  thread = Thread.new { server.run }
  server.wait_till_running(20)
  [port, server, thread]
end

def stub(port) = Echo.rpc_stub_class.new("127.0.0.1:#{port}", :this_channel_is_insecure)

def say(stub, text, seconds = 50) = outcome { stub.say(Text.new(value: text), deadline: Time.now + seconds).value }

def ask(port, where)
  stub = stub(port)
  check("in time, #{where}", { "compute 0.002" => 100, "wait 0.002" => 100 }) do
    tally(8) { |thread| Array.new(25) { say(stub, "#{thread.even? ? "compute" : "wait"} 0.002") } }
  end
  check("late, #{where}", { "GRPC::DeadlineExceeded" => 24 }) { tally(8) { Array.new(3) { say(stub, "wait 0.6", 0.1) } } }
  check("late by Timeout, #{where}", { "Timeout::Error" => 8 }) do
    tally(8) { [outcome { Timeout.timeout(0.2) { stub.say(Text.new(value: "wait 1.0"), deadline: Time.now + 50) } }] }
  end
  check("streams, #{where}", [[*0...50]] * 8) do
    in_threads(8) { stub.count(Text.new(value: "50"), deadline: Time.now + 50).map { |text| text.value.to_i } }
  end
  check("streams both ways, #{where}", [%w[A B C] * 10] * 6) do
    in_threads(6) { stub.talk((%w[a b c] * 10).map { compute(50) && Text.new(value: _1) }, deadline: Time.now + 50).map(&:value) }
  end
end

# A server in a process of its own: forked before gRPC is used, as its fork support asks.
reader, writer = IO.pipe
server_process = fork do
  reader.close
  port, server, thread = server()
  Thread.new { loop { compute } }
  trap("TERM") { Thread.new { server.stop } }
  writer.puts(port)
  thread.join
end
writer.close

checks do
  port, server, thread = server()
  ask(port, "one process")
  check("the server's end", [true, "GRPC::Unavailable"]) do
    server.stop
    [!thread.join(30).nil?, say(stub(port), "wait 0.0", 20)]
  end
  ask(reader.gets.to_i, "two processes")
  check("the other server's end", 0) { Process.kill(:TERM, server_process) && Process.wait2(server_process).last.exitstatus }
end
