/* Headway::Native.metered: one thread's time, told apart by core/meter, while it runs a block. A hook of its own, so it works whether
 * Headway is started or not, and costs nothing when nobody is metered.
 *
 * on_event runs under the VM's scheduler lock (all but SUSPENDED before an EXITED), perhaps on another thread and without the GVL; it
 * reads clocks and changes the meter. The metered thread reads the meter while it runs, when no event of its own can come. */
#include "binding.h"
#include "meter.h"

#include <pthread.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static VALUE metered = Qnil; /* the thread; pinned */
static pthread_t owner;
static pid_t metered_in;     /* a forked child has no such thread */
static struct hw_meter meter;
static rb_internal_thread_event_hook_t *hook;
static pid_t hooked_in;

static uint64_t
own_cpu_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (uint64_t)ts.tv_sec * HW_NS_PER_S + (uint64_t)ts.tv_nsec;
}

static uint64_t
own_blocks(void)
{
#ifdef RUSAGE_THREAD
    struct rusage usage;
    if (getrusage(RUSAGE_THREAD, &usage) == 0) return (uint64_t)usage.ru_nvcsw;
#endif
    return 0;
}

static struct hw_meter_reading
reading_at(uint64_t now_ns)
{
    if (!pthread_equal(owner, pthread_self())) return (struct hw_meter_reading){ .now_ns = now_ns };
    return (struct hw_meter_reading){ .now_ns = now_ns, .cpu_ns = own_cpu_ns(), .blocks = own_blocks(), .own = true };
}

/* The time this takes counts as running, before a release, and as ready, after it: never as part of the release. */
static void
suspended(VALUE thread)
{
    struct hw_thread *record = hw_record_of(thread);
    bool gives_way = record && atomic_load(&record->yielding); /* to be let in again: it wants the GVL */
    struct hw_meter_reading reading = reading_at(0);
    reading.now_ns = hw_now_ns();
    hw_meter_enter(&meter, gives_way ? HW_READY : HW_SUSPENDED, reading);
}

static void
on_event(rb_event_flag_t event, const rb_internal_thread_event_data_t *data, void *unused)
{
    if (data->thread != metered) return;
    switch (event) {
      case RUBY_INTERNAL_THREAD_EVENT_SUSPENDED:
        suspended(data->thread);
        break;
      case RUBY_INTERNAL_THREAD_EVENT_READY:
        hw_meter_enter(&meter, HW_READY, reading_at(hw_now_ns()));
        break;
      case RUBY_INTERNAL_THREAD_EVENT_RESUMED:
        hw_meter_enter(&meter, HW_RUNNING, reading_at(hw_now_ns()));
        break;
    }
}

/* In a forked child hooks may neither be added nor removed while others might be read (Bug #21959); the parent's is there already. */
static VALUE
end_metering(VALUE unused)
{
    metered = Qnil;
    if (hooked_in == getpid()) {
        rb_internal_thread_remove_event_hook(hook);
        hook = NULL;
    }
    return Qnil;
}

static VALUE
seconds(uint64_t ns)
{
    return DBL2NUM((double)ns / 1e9);
}

static VALUE
run_metered(VALUE unused)
{
    hw_meter_start(&meter, reading_at(hw_now_ns()));
    rb_yield(Qnil);
    hw_meter_enter(&meter, HW_RUNNING, reading_at(hw_now_ns()));
    return rb_ary_new_from_args(7, seconds(meter.running_ns), seconds(meter.ready_ns), seconds(meter.io_ns),
                                seconds(meter.free_cpu_ns), seconds(meter.wasteful_ns), ULL2NUM(meter.releases),
                                ULL2NUM(meter.wasteful));
}

/* Native.metered { } -> [running_s, ready_s, io_s, free_cpu_s, wasteful_s, releases, wasteful releases] of the current thread, or
 * nil, and the block is not run, while another thread is metered. */
static VALUE
metered_block(VALUE self)
{
    pid_t here = getpid();
    if (!NIL_P(metered) && metered_in == here) return Qnil;
    metered_in = here;
    owner = pthread_self();
    if (hook == NULL) {
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
