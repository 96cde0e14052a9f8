/* Headway::Native.metered: one thread's time, told apart by core/meter, while it runs a block. A hook of its own, so it works whether
 * Headway is started or not, and costs nothing when nobody is metered; but Headway's in a forked child that has it from its parent.
 *
 * on_event runs under the VM's scheduler lock (all but SUSPENDED before an EXITED), perhaps on another thread and without the GVL; it
 * reads clocks and changes the meter. The metered thread reads the meter while it runs, when no event of its own can come. */
#include "binding.h"
#include "clock.h"
#include "hash.h"
#include "meter.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static VALUE metered = Qnil; /* the thread; pinned */
static pthread_t owner;
static int coreless_file = -1; /* where the system tells how long the owner had no core; -1: it doesn't */
static pid_t metered_in;       /* a forked child has no such thread */
static struct hw_meter meter;
static rb_internal_thread_event_hook_t *hook;
static pid_t hooked_in;
static bool lent; /* the hook is Headway's */

/* Linux: "time on a core, time waiting for one, turns", in nanoseconds. */
static bool
read_coreless_ns(uint64_t *coreless_ns)
{
    char text[64];
    ssize_t length = coreless_file < 0 ? -1 : pread(coreless_file, text, sizeof(text) - 1, 0);
    if (length <= 0) return false;
    text[length] = '\0';
    char *second = strchr(text, ' ');
    if (second == NULL) return false;
    *coreless_ns = strtoull(second, NULL, 10);
    return true;
}

static struct hw_meter_reading
reading_now(void)
{
    struct hw_meter_reading reading = { .begin_ns = hw_now_ns(), .own = pthread_equal(owner, pthread_self()) };
    if (reading.own) {
        reading.cpu_ns = hw_cpu_ns();
        read_coreless_ns(&reading.coreless_ns);
    }
    reading.end_ns = hw_now_ns();
    return reading;
}

static void
on_event(rb_event_flag_t event, const rb_internal_thread_event_data_t *data, void *unused)
{
    if (data->thread != metered) return;
    enum hw_state state = HW_RUNNING;
    if (event == RUBY_INTERNAL_THREAD_EVENT_READY) state = HW_READY;
    if (event == RUBY_INTERNAL_THREAD_EVENT_SUSPENDED) {
        struct hw_thread *record = hw_record_of(data->thread);
        bool gives_way = record && atomic_load(&record->yielding); /* to be let in again: it wants the GVL */
        state = gives_way ? HW_READY : HW_SUSPENDED;
    }
    int saved_errno = errno;
    hw_meter_enter(&meter, state, reading_now());
    errno = saved_errno;
}

/* In a forked child hooks may neither be added nor removed while others might be read (Bug #21959); the parent's is there already. */
static VALUE
end_metering(VALUE unused)
{
    metered = Qnil;
    if (coreless_file >= 0) close(coreless_file);
    coreless_file = -1;
    if (lent) {
        lent = !hw_hooks_lend(NULL);
    }
    else if (hooked_in == getpid()) {
        rb_internal_thread_remove_event_hook(hook);
        hook = NULL;
    }
    return Qnil;
}

static VALUE
run_metered(VALUE unused)
{
    uint64_t coreless_ns;
    bool knows_coreless = read_coreless_ns(&coreless_ns);
    hw_meter_start(&meter, reading_now(), knows_coreless);
    rb_yield(Qnil);
    hw_meter_enter(&meter, HW_RUNNING, reading_now());
    return rb_ary_new_from_args(8, hw_seconds(meter.running_ns), hw_seconds(meter.ready_ns), hw_seconds(meter.io_ns),
                                hw_seconds(meter.free_cpu_ns), hw_seconds(meter.wasteful_ns), hw_seconds(meter.coreless_ns),
                                ULL2NUM(meter.releases), ULL2NUM(meter.wasteful));
}

/* Native.metered { } -> [running_s, ready_s, io_s, free_cpu_s, wasteful_s, coreless_s, releases, wasteful releases] of the
 * current thread, or nil, and the block is not run, while another thread is metered. */
static VALUE
metered_block(VALUE self)
{
    pid_t here = getpid();
    if (!NIL_P(metered) && metered_in == here) return Qnil;
    metered_in = here;
    owner = pthread_self();
    coreless_file = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    if (hook == NULL) lent = hw_hooks_lend(on_event);
    if (hook == NULL && !lent) {
        hooked_in = here;
        hook = rb_internal_thread_add_event_hook(on_event, RUBY_INTERNAL_THREAD_EVENT_READY | RUBY_INTERNAL_THREAD_EVENT_RESUMED |
                                                 RUBY_INTERNAL_THREAD_EVENT_SUSPENDED, NULL);
    }
    metered = rb_thread_current();
    return rb_ensure(run_metered, Qnil, end_metering, Qnil);
}

void
hw_metered_init(VALUE native)
{
    rb_gc_register_address(&metered);
    rb_define_singleton_method(native, "metered", metered_block, 0);
}
