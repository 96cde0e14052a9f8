/* Native.keep_error { … }: a scheduler's close must not lose what ends its thread.
 *
 * While a thread that an exception ends closes its scheduler, the VM keeps the exception in the one place where every rescue clause
 * that catches something puts its own, and clears it. Then Thread#value returns nil, and Thread#join raises nothing. Elsewhere, in an
 * ensure clause too, there is nothing in that place. */
#include "binding.h"

static VALUE
keep_error(VALUE self)
{
    VALUE error = rb_errinfo();
    VALUE result = rb_yield(Qnil);
    if (rb_obj_is_kind_of(error, rb_eException)) rb_set_errinfo(error); /* else a kill, which the VM also knows from elsewhere */
    return result;
}

void
hw_keep_error_init(VALUE native)
{
    rb_define_singleton_method(native, "keep_error", keep_error, 0);
}
