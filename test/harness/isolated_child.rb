# frozen_string_literal: true

# One test method in a process of its own: the child's side.
# Arguments: test file, class, method, descriptor the result goes to.

file, class_name, method_name, descriptor = ARGV
report = IO.for_fd(Integer(descriptor), "wb")
report.close_on_exec = true

require "test_helper"
require file

result = Minitest.run_one_method(Object.const_get(class_name), method_name)
report.write(Marshal.dump(result))
report.close

# Under M:N scheduling Ruby 3.4 crashes when it ends right after one of its threads did, once in some hundred times on a busy machine:
# the VM is torn down while a native thread still switches away from that thread (ruby_vm_destruct beside coroutine_transfer).
exit!(true) if ENV["RUBY_MN_THREADS"] == "1"
