/* Headway::Native: the methods lib/headway/face.rb builds its face on, fork, and the end of the process.
 *
 * Suggested reading order: core/policy.h (who must give way and when), core/scheduler.h (states and invariants), core/runtime.h
 * (locks, who calls what), hooks.c, yield.c; for the control socket core/control.h, control_methods.c.
 *
 * Every method here runs with the GVL and, but for pass, keeps it, so none can interleave with another. */
#include "binding.h"
#include "trace.h"

#include <pthread.h>
#include <ruby/version.h>
#include <stdlib.h>

struct hw_runtime hw_runtime;

static uint64_t vm_slice_ns;

/* What the VM made of RUBY_THREAD_TIMESLICE when it started. */
static uint64_t
find_vm_slice_ns(void)
{
    uint64_t slice_ms = 100;
#if RUBY_API_VERSION_CODE >= 30400
    const char *text = getenv("RUBY_THREAD_TIMESLICE");
    if (text) {
        long given_ms = strtol(text, NULL, 0);
        if (given_ms > 0 && given_ms <= UINT32_MAX) slice_ms = (uint64_t)given_ms;
    }
#endif
    return slice_ms * HW_NS_PER_MS;
}

static struct hw_policy
policy_of(VALUE kind, VALUE quantum_ns)
{
    struct hw_policy policy = hw_policy_default;
    policy.kind = (enum hw_policy_kind)NUM2INT(kind);
    policy.quantum_ns = NUM2ULL(quantum_ns);
    policy.vm_slice_ns = vm_slice_ns;
    return policy;
}

/* Native.start(kind, preempt, quantum_ns, whether to pull) -> nil, or the reason it can't */
static VALUE
start(VALUE self, VALUE kind, VALUE preempt, VALUE quantum_ns, VALUE pulls)
{
    struct hw_policy policy = policy_of(kind, quantum_ns);
    enum hw_preempt mode = (enum hw_preempt)NUM2INT(preempt);
    if (atomic_load(&hw_runtime.active)) {
        pthread_mutex_lock(&hw_control.lock);
        hw_runtime_configure(&hw_runtime, &policy, mode);
        hw_control.settings_changed = false;
        pthread_mutex_unlock(&hw_control.lock);
        return Qnil;
    }
    const char *reason = hw_hooks_add();
    if (reason) return rb_utf8_str_new_cstr(reason);
    hw_runtime_reset(&hw_runtime);
    hw_blame_prepare(); /* short of memory: no blame */
    if (!hw_runtime_start(&hw_runtime, &policy, mode, RTEST(pulls))) {
        hw_hooks_remove();
        return rb_utf8_str_new_cstr("the handler for SIGURG could not be installed");
    }
    hw_collections_attend();
    return Qnil;
}

static VALUE
stop(VALUE self)
{
    if (!atomic_load(&hw_runtime.active)) return Qfalse;
    hw_control_close(&hw_control);
    hw_runtime_stop(&hw_runtime);
    hw_hooks_remove();
    hw_collections_attend();
    return Qtrue;
}

static VALUE
started_p(VALUE self)
{
    return atomic_load(&hw_runtime.active) ? Qtrue : Qfalse;
}

static struct hw_thread *
record_or_raise(VALUE thread)
{
    if (!rb_obj_is_kind_of(thread, rb_cThread)) rb_raise(rb_eTypeError, "not a Thread: %"PRIsVALUE, rb_obj_class(thread));
    /* Only a living, initialised thread of this Ractor has storage for its record. (A subclass may say that it equals any other.) */
    VALUE living = hw_living_threads();
    long i = RARRAY_LEN(living) - 1;
    while (i >= 0 && RARRAY_AREF(living, i) != thread) i--;
    return i >= 0 ? hw_record_of(thread) : NULL;
}

static VALUE
threads(VALUE self)
{
    return hw_living_threads();
}

static VALUE
batch_p(VALUE self, VALUE thread)
{
    struct hw_thread *record = record_or_raise(thread);
    if (record == NULL) return Qfalse;
    pthread_mutex_lock(&hw_runtime.lock);
    bool batch = hw_scheduler_is_batch(&hw_runtime.scheduler, record, hw_now_ns());
    pthread_mutex_unlock(&hw_runtime.lock);
    return batch ? Qtrue : Qfalse;
}

/* Native.batch_ready -> how many batch threads wait for the GVL; 0 while Headway is stopped */
static VALUE
batch_ready(VALUE self)
{
    if (!atomic_load(&hw_runtime.active)) return INT2FIX(0);
    pthread_mutex_lock(&hw_runtime.lock);
    unsigned count = hw_scheduler_batch_ready(&hw_runtime.scheduler);
    pthread_mutex_unlock(&hw_runtime.lock);
    return UINT2NUM(count);
}

static VALUE
thread_quantum_ns(VALUE self, VALUE thread)
{
    struct hw_thread *record = record_or_raise(thread);
    return ULL2NUM(record ? record->quantum_ns : 0);
}

/* Native.set_thread_quantum_ns(thread, ns) -> whether the thread is tracked; 0: the process's */
static VALUE
set_thread_quantum_ns(VALUE self, VALUE thread, VALUE ns)
{
    uint64_t quantum_ns = NUM2ULL(ns);
    struct hw_thread *record = record_or_raise(thread);
    if (record == NULL) return Qfalse;
    pthread_mutex_lock(&hw_runtime.lock);
    record->quantum_ns = quantum_ns;
    hw_ticker_at(&hw_runtime, hw_now_ns());
    hw_runtime_unlock(&hw_runtime);
    return Qtrue;
}

/* Native.thread_name(thread) -> its name, else "main", else where it was created */
static VALUE
thread_name(VALUE self, VALUE thread)
{
    if (!rb_obj_is_kind_of(thread, rb_cThread)) rb_raise(rb_eTypeError, "not a Thread: %"PRIsVALUE, rb_obj_class(thread));
    return hw_thread_name(thread);
}

/* Whether preemption fell back to polling because the signal's handler was replaced. */
static VALUE
signal_lost_p(VALUE self)
{
    return hw_runtime.signal_lost ? Qtrue : Qfalse;
}

/* -- fork and exit ------------------------------------------------------------------------------------------------------ */

unsigned long hw_forks;

static void
before_fork(void)
{
    hw_control_before_fork(&hw_control);
    hw_runtime_before_fork(&hw_runtime);
}

static void
after_fork_parent(void)
{
    hw_runtime_after_fork_parent(&hw_runtime);
    hw_control_after_fork_parent(&hw_control);
}

static void
after_fork_child(void)
{
    hw_forks++;
    hw_stacks_reset(&hw_stacks);
    hw_runtime_after_fork_child(&hw_runtime);
    hw_class_blocks_after_fork_child();
    hw_control_after_fork_child(&hw_control);
}

/* Native.forks -> a number that is another one in each forked child */
static VALUE
get_forks(VALUE self)
{
    return ULONG2NUM(hw_forks);
}

/* Native.forget_fork: the process goes on with all it had, as a daemon */
static VALUE
forget_fork(VALUE self)
{
    hw_forks--;
    return Qnil;
}

/* Freed when the VM finalises its objects: after every at_exit block and the last thread, before the VM itself is gone. A
 * trigger after that would crash. An at_exit block would be too early: test runners do all their work in one. */
static void
on_vm_end(void *unused)
{
    hw_control_close(&hw_control);
    hw_record_finish();
    if (atomic_load(&hw_runtime.active)) hw_runtime_stop(&hw_runtime);
}

static const rb_data_type_t sentinel_type = { .wrap_struct_name = "Headway::Native/sentinel", .function = { .dfree = on_vm_end } };

static VALUE
symbols(const char *const *labels, int count)
{
    VALUE array = rb_ary_new();
    for (int i = 0; i < count; i++) rb_ary_push(array, ID2SYM(rb_intern(labels[i])));
    return rb_ary_freeze(array);
}

RUBY_FUNC_EXPORTED void
Init_headway(void)
{
    VALUE headway = rb_define_module("Headway");
    VALUE native = rb_define_module_under(headway, "Native");

    vm_slice_ns = find_vm_slice_ns();
    hw_yield_init();
    if (!hw_runtime_init(&hw_runtime, hw_trigger)) rb_memerror();
    hw_hooks_init();
    hw_control_methods_init(native); /* before fork can be */
    pthread_atfork(before_fork, after_fork_parent, after_fork_child);
    rb_gc_register_mark_object(rb_data_typed_object_wrap(rb_cObject, &hw_runtime, &sentinel_type));

    rb_define_const(native, "POLICIES", symbols(hw_policy_labels, HW_POLICY_COUNT));
    rb_define_const(native, "PREEMPTS", symbols(hw_preempt_labels, HW_PREEMPT_COUNT));

    rb_define_singleton_method(native, "start", start, 4);
    rb_define_singleton_method(native, "stop", stop, 0);
    rb_define_singleton_method(native, "started?", started_p, 0);
    rb_define_singleton_method(native, "threads", threads, 0);
    rb_define_singleton_method(native, "batch?", batch_p, 1);
    rb_define_singleton_method(native, "batch_ready", batch_ready, 0);
    rb_define_singleton_method(native, "thread_quantum_ns", thread_quantum_ns, 1);
    rb_define_singleton_method(native, "set_thread_quantum_ns", set_thread_quantum_ns, 2);
    rb_define_singleton_method(native, "thread_name", thread_name, 1);
    rb_define_singleton_method(native, "forks", get_forks, 0);
    rb_define_singleton_method(native, "forget_fork", forget_fork, 0);
    rb_define_singleton_method(native, "signal_lost?", signal_lost_p, 0);
    rb_ext_ractor_safe(true); /* another Ractor's thread has no record */
    rb_define_singleton_method(native, "pass", hw_pass, 0);
    rb_ext_ractor_safe(false);
    hw_class_blocks_init(native);
    hw_stats_init(native);
    hw_work_init(native);
    hw_work_sums_init(native);
    hw_metered_init(native);
    hw_metrics_init(native);
    hw_blame_init(native);
    hw_record_init(headway, native);
    hw_trace_init(native);
    hw_stall_init(native);
    hw_loops_init(native);
    hw_poll_set_init(native);
    hw_keep_error_init(native);
    hw_io_hooks_init(native);
    hw_address_hook_init(native);
    hw_interrupt_hook_init(native);
    hw_offload_init(native);
    hw_operation_init(native);
}
