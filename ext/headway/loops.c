/* Event loops that aren't Headway's, such as Async's, while something records: a fiber that keeps its loop for too long is a stall. (Headway's
 * own loop watches itself, recording or not: lib/headway/fiber_scheduler/stalls.rb.)
 *
 * A loop runs in a blocking fiber, as nobody could wait for it otherwise, what it runs in fibers that aren't; so each switch from one kind to
 * the other begins or ends a run of fibers. Nothing is asked of the loop.
 *
 * on_switch: with the GVL, in the main Ractor, in the fiber that goes on, which other threads may strike there as anywhere. It is added where
 * a recording starts (in Ruby, or in the job that the control socket triggers) and takes itself away at the first switch after its end. */
#include "binding.h"

#include <ruby/fiber/scheduler.h>

static VALUE loops;                /* Headway::Recorder::Loops */
static VALUE last_thread, last_scheduler, last_watch; /* mostly there is one loop in a process; nil: none, or not to be watched */
static bool attends;

static VALUE
forget(VALUE unused)
{
    last_thread = last_scheduler = last_watch = Qnil;
    return Qnil;
}

/* While Ruby is asked, others run, who may end this recording and start another: the watch is closed then, and asked for again. (Those
 * closed later are forgotten where they are.) */
static VALUE
watch_of(VALUE thread, VALUE scheduler)
{
    if (thread == last_thread && scheduler == last_scheduler) return last_watch;
    VALUE watch = rb_funcall(loops, rb_intern("watch"), 2, thread, scheduler);
    if (!NIL_P(watch) && !hw_stall_of_loop(watch, scheduler)) return Qnil;
    last_thread = thread;
    last_scheduler = scheduler;
    return last_watch = watch;
}

/* An enumerator's, or after a loop. */
static void
on_switch_without_loop(void)
{
    if (rb_thread_current() != last_thread) return;
    if (!NIL_P(last_watch)) hw_stall_of_loop(last_watch, Qnil);
    forget(Qnil);
}

static void
on_switch(rb_event_flag_t event, VALUE unused_data, VALUE unused_self, ID unused_method, VALUE unused_class)
{
    if (!hw_record_takes()) {
        attends = false;
        rb_remove_event_hook(on_switch);
        rb_funcall(loops, rb_intern("close"), 0);
        return;
    }
    VALUE scheduler = rb_fiber_scheduler_get();
    if (NIL_P(scheduler)) {
        on_switch_without_loop();
        return;
    }
    VALUE watch = watch_of(rb_thread_current(), scheduler);
    if (NIL_P(watch)) return;
    if (!NIL_P(rb_fiber_scheduler_current())) {
        hw_stall_begin(watch);
        return;
    }
    VALUE run = hw_stall_end(watch);
    if (!NIL_P(run)) rb_funcall(loops, rb_intern("stalled"), 2, RARRAY_AREF(run, 0), RARRAY_AREF(run, 1));
}

void
hw_loops_attend(void)
{
    if (attends || NIL_P(loops) || !hw_record_takes()) return;
    attends = true;
    rb_add_event_hook(on_switch, RUBY_EVENT_FIBER_SWITCH, Qnil);
}

/* Native.watch_loops(Headway::Recorder::Loops) */
static VALUE
watch_loops(VALUE self, VALUE module)
{
    return loops = module;
}

void
hw_loops_init(VALUE native)
{
    loops = last_thread = last_scheduler = last_watch = Qnil;
    rb_gc_register_address(&loops);
    rb_gc_register_address(&last_thread);
    rb_gc_register_address(&last_scheduler);
    rb_gc_register_address(&last_watch);
    rb_define_singleton_method(native, "watch_loops", watch_loops, 1);
    rb_define_singleton_method(native, "forget_loops", forget, 0);
}
