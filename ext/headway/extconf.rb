# frozen_string_literal: true

require "mkmf"

# Where Headway can do nothing the gem installs all the same; lib/headway/platform.rb says at run time why it does nothing.
supported = RUBY_ENGINE == "ruby" && Gem::Version.new(RUBY_VERSION) >= Gem::Version.new("3.3") && !Gem.win_platform? &&
  have_header("ruby/thread.h") && have_func("rb_internal_thread_specific_key_create", "ruby/thread.h") &&
  have_func("rb_postponed_job_preregister", "ruby/debug.h") && have_func("rb_internal_thread_add_event_hook", "ruby/thread.h") &&
  checking_for("64-bit atomics without locks") { try_compile("#include <stdatomic.h>\n#if ATOMIC_LLONG_LOCK_FREE != 2\n#error\n#endif") }

unless supported
  warn "headway: this platform is not supported; the gem is installed without its native part"
  File.write("Makefile", dummy_makefile($srcdir).join)
  exit
end

have_func("pthread_condattr_setclock", "pthread.h")
have_func("rb_thread_check_trap_pending")
have_func("preadv2", "sys/uio.h")
have_header("sys/epoll.h")

$srcs = Dir[File.join($srcdir, "{,core/}*.c")].map { |path| File.basename(path) }.sort
$VPATH << "$(srcdir)/core"
$INCFLAGS << " -I$(srcdir)/core"
$CFLAGS << " -std=gnu11 -fvisibility=hidden -Wall -Wextra -Wno-unused-parameter"
$CFLAGS << " -Werror" if ENV["HEADWAY_WERROR"]
# What an event does is spread over a dozen small files, and is a fifth fewer instructions where calls across them are inlined.
fast = ["-O3 -flto=auto", "-O3"].find { |flags| checking_for(flags) { try_link(MAIN_DOES_NOTHING, flags) } }
if fast && !ENV["HEADWAY_SANITIZE"]
  $CFLAGS << " #{fast}"
  $DLDFLAGS << " #{fast}"
end
# For sanitizer builds: HEADWAY_SANITIZE=address,undefined
if (sanitize = ENV["HEADWAY_SANITIZE"])
  $CFLAGS << " -g -O1 -fsanitize=#{sanitize}"
  $LDFLAGS << " -fsanitize=#{sanitize}"
end

create_makefile "headway/headway"
