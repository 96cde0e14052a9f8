/* Native::InterruptHook: a scheduler's fiber_interrupt, which Ruby 4.0 calls when an IO is closed that somebody reads or writes.
 *
 * It does so for every fiber of a thread that has a scheduler. What the loop can't interrupt, a fiber that blocks in the system call
 * itself, must be declined by Qundef: then the VM raises in the thread, as if there were no scheduler. Anything else counts as done, and
 * who closes waits for good. As in io_hooks.c it must never reach Ruby code, which gets the false that the method above it says. */
#include "binding.h"

static VALUE
fiber_interrupt(VALUE self, VALUE fiber, VALUE exception)
{
    VALUE arguments[] = { fiber, exception };
    VALUE done = rb_call_super(2, arguments);
    return RTEST(done) || !hw_called_by_c(NULL) ? done : Qundef;
}

void
hw_interrupt_hook_init(VALUE native)
{
    rb_define_method(rb_define_module_under(native, "InterruptHook"), "fiber_interrupt", fiber_interrupt, 2);
}
