/* The control socket's methods, and what its server thread and the recorder's writer need Ruby for: that switches of fibers are
 * attended to.
 *
 * on_job: with the GVL, on any thread, POSTPONED_JOB and TRAP masked. It calls no method, so nothing of the program runs and no
 * interrupt is checked. */
#include <ruby.h> /* first: it says what is wanted of the system's headers */

#include "binding.h"
#include "hash.h"

#include <errno.h>
#include <ruby/debug.h>
#include <stdlib.h>
#include <string.h>

struct hw_control hw_control;

static rb_postponed_job_handle_t job;

static void
on_job(void *unused)
{
    int saved_errno = errno;
    if (hw_in_main_ractor()) hw_loops_attend();
    errno = saved_errno;
}

static void
trigger(void)
{
    rb_postponed_job_trigger(job);
}

/* Native.control_open(directory, headway, ruby, command, cpus, quota_path) -> nil, or why it can't */
static VALUE
control_open(VALUE self, VALUE directory, VALUE headway, VALUE ruby, VALUE command, VALUE cpus, VALUE quota_path)
{
    struct hw_control_facts facts;
    hw_copy_text(facts.directory, sizeof(facts.directory), directory);
    hw_copy_text(facts.headway, sizeof(facts.headway), headway);
    hw_copy_text(facts.ruby, sizeof(facts.ruby), ruby);
    hw_copy_text(facts.command, sizeof(facts.command), command);
    facts.cpus = NUM2UINT(cpus);
    hw_copy_text(facts.quota_path, sizeof(facts.quota_path), quota_path);
    if (!hw_control.open) hw_control.facts = facts;
    const char *wrong = hw_control_open(&hw_control);
    return wrong ? rb_utf8_str_new_cstr(wrong) : Qnil;
}

static VALUE
control_close(VALUE self)
{
    hw_control_close(&hw_control);
    return Qnil;
}

/* Native.control_path -> where the socket is, or nil */
static VALUE
control_path(VALUE self)
{
    return hw_control.open ? rb_utf8_str_new_cstr(hw_control.path) : Qnil;
}

/* Native.control_changes -> nil, or [kind, preempt, quantum_ns] when a client has changed them since this was last asked */
static VALUE
control_changes(VALUE self)
{
    pthread_mutex_lock(&hw_control.lock);
    bool changed = hw_control.settings_changed;
    hw_control.settings_changed = false;
    pthread_mutex_unlock(&hw_control.lock);
    if (!changed) return Qnil;
    pthread_mutex_lock(&hw_runtime.lock);
    enum hw_policy_kind kind = hw_runtime.scheduler.policy.kind;
    enum hw_preempt preempt = hw_runtime.preempt;
    uint64_t quantum_ns = hw_runtime.scheduler.policy.quantum_ns;
    pthread_mutex_unlock(&hw_runtime.lock);
    return rb_ary_new_from_args(3, INT2FIX(kind), INT2FIX(preempt), ULL2NUM(quantum_ns));
}

void
hw_control_methods_init(VALUE native)
{
    job = hw_preregister(on_job);
    hw_control_init(&hw_control, &hw_runtime, &hw_strings, &hw_stacks, trigger);
    const char *many_to_many = getenv("RUBY_MN_THREADS");
    hw_control.teller.many_to_many = many_to_many && atoi(many_to_many) > 0; /* as the VM reads it */
    hw_runtime.recorder.teller = &hw_control.teller;
    rb_define_singleton_method(native, "control_open", control_open, 6);
    rb_define_singleton_method(native, "control_close", control_close, 0);
    rb_define_singleton_method(native, "control_path", control_path, 0);
    rb_define_singleton_method(native, "control_changes", control_changes, 0);
}
