/* Known ways to hold and to release the GVL. */

#include "vm_fixture.h"

#include <errno.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static int
sleep_once(uint64_t duration_ns)
{
    const struct timespec t = {
        .tv_sec = (time_t)(duration_ns / 1000000000u),
        .tv_nsec = (long)(duration_ns % 1000000000u),
    };
    return nanosleep(&t, NULL);
}

static VALUE
busy(VALUE self, VALUE seconds)
{
    spin_ns(ns_from_seconds(seconds));
    return Qnil;
}

/* Tells whoever reads at the other end, and is busy until somebody has put something into the log, so many seconds at most, looking for
 * interrupts now and then. */
static VALUE
busy_interruptibly(VALUE self, VALUE descriptor, VALUE log, VALUE seconds)
{
    const uint64_t end = now_ns() + ns_from_seconds(seconds);
    if (write(NUM2INT(descriptor), ".", 1) != 1) rb_sys_fail("write");
    while (RARRAY_LEN(log) == 0 && now_ns() < end) {
        spin_ns(1000000);
        rb_thread_check_ints();
    }
    return Qnil;
}

/* Gives an object a method of that name, in C, which does so. */
static VALUE
make_busy(VALUE self, VALUE object, VALUE name)
{
    rb_define_singleton_method(object, StringValueCStr(name), busy_interruptibly, 3);
    return object;
}

/* Returns how many times the sleep was cut short by a signal. */
static VALUE
sleep_holding_gvl(VALUE self, VALUE seconds)
{
    const uint64_t end = now_ns() + ns_from_seconds(seconds);
    long interruptions = 0;
    for (uint64_t now; (now = now_ns()) < end;) interruptions += sleep_once(end - now) != 0;
    return LONG2NUM(interruptions);
}

/* A blocking call of a C library that cannot cope with EINTR itself: how
 * often it was interrupted is what its caller would have seen as an error. */
struct blocking_call {
    uint64_t end_ns;
    VALUE thread;
    long interruptions;
};

static void *
blocking_call(void *argument)
{
    struct blocking_call *call = argument;
    for (uint64_t now; (now = now_ns()) < call->end_ns;) {
        if (sleep_once(call->end_ns - now) == 0) continue;
        if (call->thread && rb_thread_interrupted(call->thread)) break;
        call->interruptions++;
    }
    return call;
}

/* Returns how many times the sleep was cut short by a signal that was not meant for Ruby. */
static VALUE
sleep_without_gvl(VALUE self, VALUE seconds)
{
    struct blocking_call call = {now_ns() + ns_from_seconds(seconds), rb_thread_current(), 0};
    rb_thread_call_without_gvl(blocking_call, &call, RUBY_UBF_IO, NULL);
    return LONG2NUM(call.interruptions);
}

/* As above for a library that gives Ruby no way to interrupt it. */
static VALUE
sleep_uninterruptibly(VALUE self, VALUE seconds)
{
    struct blocking_call call = {now_ns() + ns_from_seconds(seconds), Qfalse, 0};
    rb_thread_call_without_gvl(blocking_call, &call, NULL, NULL);
    return LONG2NUM(call.interruptions);
}

static void *
nothing(void *argument)
{
    return argument;
}

static VALUE
release_gvl(VALUE self, VALUE times)
{
    for (long left = NUM2LONG(times); left > 0; left--) {
        rb_thread_call_without_gvl(nothing, NULL, NULL, NULL);
    }
    return Qnil;
}

static VALUE
yield_nothing(VALUE unused)
{
    return rb_yield(Qnil);
}

static void *
call_back(void *state)
{
    rb_protect(yield_nothing, Qnil, state);
    return NULL;
}

static void *
sleep_and_call_back(void *duration_ns)
{
    int state = 0;
    sleep_once(*(uint64_t *)duration_ns);
    rb_thread_call_with_gvl(call_back, &state);
    return (void *)(intptr_t)state;
}

/* A native call that waits for something and then hands it to the block, as FFI's callbacks do: between the two nobody checks interrupts. */
static VALUE
wait_and_call_back(VALUE self, VALUE seconds)
{
    uint64_t duration_ns = ns_from_seconds(seconds);
    int state = (int)(intptr_t)rb_thread_call_without_gvl(sleep_and_call_back, &duration_ns, NULL, NULL);
    if (state) rb_jump_tag(state);
    return Qnil;
}

/* The same once it has the GVL back, without a look at interrupts. */
static VALUE
wait_and_yield(VALUE self, VALUE seconds)
{
    struct blocking_call call = {now_ns() + ns_from_seconds(seconds), Qfalse, 0};
    rb_nogvl(blocking_call, &call, NULL, NULL, RB_NOGVL_INTR_FAIL);
    return rb_yield(Qnil);
}

/* Keeps the GVL and what is in memory around the object from everybody, as a compaction of the heap does. */
static VALUE
keep_from_all(VALUE self, VALUE object, VALUE seconds)
{
    long size = sysconf(_SC_PAGESIZE);
    void *page = (void *)((uintptr_t)object & ~(uintptr_t)(size - 1));
    uint64_t duration_ns = (uint64_t)(NUM2DBL(seconds) * 1e9);
    if (mprotect(page, (size_t)size, PROT_NONE) != 0) rb_sys_fail("mprotect");
    sleep_once(duration_ns);
    if (mprotect(page, (size_t)size, PROT_READ | PROT_WRITE) != 0) rb_sys_fail("mprotect");
    return Qnil;
}

void
Init_gvl(VALUE module)
{
    rb_define_module_function(module, "busy", busy, 1);
    rb_define_module_function(module, "make_busy", make_busy, 2);
    rb_define_module_function(module, "sleep_holding_gvl", sleep_holding_gvl, 1);
    rb_define_module_function(module, "sleep_without_gvl", sleep_without_gvl, 1);
    rb_define_module_function(module, "sleep_uninterruptibly", sleep_uninterruptibly, 1);
    rb_define_module_function(module, "release_gvl", release_gvl, 1);
    rb_define_module_function(module, "wait_and_call_back", wait_and_call_back, 1);
    rb_define_module_function(module, "wait_and_yield", wait_and_yield, 1);
    rb_define_module_function(module, "keep_from_all", keep_from_all, 2);
}
