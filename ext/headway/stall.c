/* Headway::Native::LoopWatch: how long the turns of an event loop are, and which Ruby stack held one that was too long.
 *
 * The watcher (core/loop_watch.h) triggers a postponed job, which runs on whichever Ruby thread runs next: the loop's own when it
 * computes or comes back from a system call (its frames are the same then), another one while the loop is away without the GVL.
 * There the backtrace of the loop's thread is taken, which may allocate but runs no code of the program's. Another Ractor's thread that
 * has a job to run, as a collection there brings it, takes this one along: it runs beside the loop, and leaves it alone. The watcher asks
 * again.
 *
 * The watches are in a WeakMap, which gives living ones only: with the GVL, in the main Ractor. One that is garbage may have a thread that
 * was freed before it, and is itself freed on whichever Ractor's thread, beside the loops: no list of ours could tell. Ruby 4.0.0's gives
 * dead ones, too, until 4.0.1: there it is a Hash, and one that nobody closes stays. */
#include "binding.h"
#include "hash.h"
#include "loop_watch.h"

#include <errno.h>
#include <ruby/debug.h>
#include <ruby/version.h>
#include <string.h>

struct stall {
    struct hw_loop_watch watch;
    VALUE thread, scheduler, stack;
    bool open;
};

static VALUE watches, keys_method, backtrace_method;
static rb_postponed_job_handle_t job;

static void
ask(void)
{
    rb_postponed_job_trigger(job);
}

static void
close_stall(struct stall *stall)
{
    stall->open = false;
    hw_loop_watch_end(&stall->watch);
}

static void
mark_stall(void *data)
{
    const struct stall *stall = data;
    rb_gc_mark(stall->thread);
    rb_gc_mark(stall->scheduler);
    rb_gc_mark(stall->stack);
}

static void
free_stall(void *data)
{
    close_stall(data);
    xfree(data);
}

static const rb_data_type_t stall_type = {
    .wrap_struct_name = "Headway::Native::LoopWatch",
    .function = { .dmark = mark_stall, .dfree = free_stall },
};

static VALUE
allocate(VALUE class)
{
    struct stall *stall;
    VALUE self = TypedData_Make_Struct(class, struct stall, &stall_type, stall);
    stall->thread = stall->scheduler = stall->stack = Qnil;
    return self;
}

static struct stall *
stall_of(VALUE self)
{
    return rb_check_typeddata(self, &stall_type);
}

/* Without the frame of this very call. */
static VALUE
backtrace_of(VALUE thread)
{
    VALUE own_frames = INT2FIX(thread == rb_thread_current() ? 1 : 0);
    return rb_method_call(1, &own_frames, rb_funcall(backtrace_method, rb_intern("bind"), 1, thread));
}

static VALUE
living_watches(VALUE unused)
{
    return rb_funcall(keys_method, rb_intern("bind_call"), 1, watches);
}

static void
look_at_loops(void)
{
    int failed = 0;
    VALUE living = rb_protect(living_watches, Qnil, &failed);
    for (long i = 0; !failed && i < RARRAY_LEN(living); i++) {
        struct stall *stall = stall_of(RARRAY_AREF(living, i));
        if (!stall->open || !hw_loop_watch_answer(&stall->watch, hw_now_ns())) continue;
        int state = 0;
        VALUE stack = rb_protect(backtrace_of, stall->thread, &state);
        if (state) rb_set_errinfo(Qnil);
        stall->stack = state ? Qnil : stack;
    }
    if (failed) rb_set_errinfo(Qnil);
    RB_GC_GUARD(living);
}

static void
on_job(void *unused)
{
    int saved_errno = errno;
    if (hw_in_main_ractor()) look_at_loops();
    errno = saved_errno;
}

/* LoopWatch.new(thread, threshold_ns) */
static VALUE
initialize(VALUE self, VALUE thread, VALUE threshold_ns)
{
    struct stall *stall = stall_of(self);
    uint64_t threshold = NUM2ULL(threshold_ns);
    if (stall->open) rb_raise(rb_eRuntimeError, "already watches");
    stall->thread = thread;
    if (!hw_loop_watch_start(&stall->watch, threshold, ask)) rb_raise(rb_eThreadError, "no thread to watch the loop with");
    stall->open = true;
    rb_funcall(watches, rb_intern("[]="), 2, self, Qtrue);
    return self;
}

/* -> nil, or of a turn that was too long [seconds, backtrace or nil] */
static VALUE
judge(struct stall *stall, uint64_t length_ns)
{
    if (length_ns < stall->watch.threshold_ns) return Qnil;
    VALUE stack = stall->stack;
    stall->stack = Qnil;
    return rb_assoc_new(hw_seconds(length_ns), stack);
}

/* A turn begins, and one that was under way ends. */
static VALUE
turn(VALUE self)
{
    struct stall *stall = stall_of(self);
    return stall->open ? judge(stall, hw_loop_watch_turn(&stall->watch, hw_now_ns())) : Qnil;
}

/* The loop waits. */
VALUE
hw_stall_end(VALUE self)
{
    struct stall *stall = stall_of(self);
    return stall->open ? judge(stall, hw_loop_watch_idle(&stall->watch, hw_now_ns())) : Qnil;
}

/* A turn begins, unless one is under way. */
void
hw_stall_begin(VALUE self)
{
    struct stall *stall = stall_of(self);
    if (stall->open && !hw_loop_watch_turns(&stall->watch)) hw_loop_watch_turn(&stall->watch, hw_now_ns());
}

/* A turn that another loop left under way, which ran in a fiber that isn't blocking, never ends. */
bool
hw_stall_of_loop(VALUE self, VALUE scheduler)
{
    struct stall *stall = stall_of(self);
    if (stall->scheduler != scheduler) {
        hw_stall_end(self);
        stall->scheduler = scheduler;
        stall->stack = Qnil;
    }
    return stall->open;
}

static VALUE
close_watch(VALUE self)
{
    close_stall(stall_of(self));
    rb_funcall(watches, rb_intern("delete"), 1, self);
    return Qnil;
}

void
hw_stall_init(VALUE native)
{
    job = hw_preregister(on_job);
    VALUE map = strcmp(ruby_version, "4.0.0") == 0 ? rb_cHash : rb_path2class("ObjectSpace::WeakMap");
    watches = rb_class_new_instance(0, NULL, map);
    rb_gc_register_mark_object(watches);
    keys_method = hw_own_method(map, "keys");
    backtrace_method = hw_own_method(rb_cThread, "backtrace");
    VALUE watch = rb_define_class_under(native, "LoopWatch", rb_cObject);
    rb_define_alloc_func(watch, allocate);
    rb_define_method(watch, "initialize", initialize, 2);
    rb_define_method(watch, "turn", turn, 0);
    rb_define_method(watch, "idle", hw_stall_end, 0);
    rb_define_method(watch, "close", close_watch, 0);
}
