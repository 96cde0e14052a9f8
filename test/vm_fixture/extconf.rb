# frozen_string_literal: true

# A test-only extension: ways to hold, release and contend for the GVL, and
# probes into the VM. Built by test/harness/vm_fixture.rb, never shipped.

require "mkmf"

append_cflags("-Wall")
have_func("mallinfo2", "malloc.h")
create_makefile("vm_fixture")
