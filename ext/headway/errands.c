/* The control socket's methods, and its errands: what core/control.h's server thread needs Ruby for.
 *
 * The job must not call Ruby methods itself: they check interrupts when they return, and what is raised in a job is swallowed. It
 * starts a Ruby thread for it, without calling a method; the thread lives until no errand is left, and belongs to nobody's figures.
 *
 * The VM looks for a deadlock when a thread goes to sleep, and a thread that still lives then hides it for ever: that it ends later
 * doesn't make the VM look again. So the thread that ran the job waits for the errand's end, outside the GVL, before it goes on: as
 * long as the errand's thread lives there is another one that is awake. (The way to wait is that of yield.c, and so is the reason why
 * it must not take longer than PATIENCE_NS; nor has it to, a few dozen microseconds are the rule.)
 *
 * on_job: with the GVL, on any thread, POSTPONED_JOB and TRAP masked; also in a forked child, to open a socket of its own. */
#include "binding.h"

#include <errno.h>
#include <ruby/debug.h>
#include <string.h>

#define PATIENCE_NS (5 * HW_NS_PER_MS)

struct hw_control hw_control;

static rb_postponed_job_handle_t job;
static bool ending; /* the process's at_exit blocks are done, or nearly: no thread should be started any more */

/* -- waiting for the thread ----------------------------------------------------------------------------------------------- */

static struct {
    pthread_mutex_t lock; /* a leaf */
    pthread_cond_t cond;
    bool over, interrupted;
} wait;

void
hw_errands_after_fork(void)
{
    pthread_mutex_init(&wait.lock, NULL);
    hw_cond_init(&wait.cond);
}

static void
set_flag(void *flag)
{
    pthread_mutex_lock(&wait.lock);
    *(bool *)flag = true;
    pthread_cond_broadcast(&wait.cond);
    pthread_mutex_unlock(&wait.lock);
}

static void *
wait_for_end(void *unused)
{
    uint64_t until_ns = hw_now_ns() + PATIENCE_NS;
    pthread_mutex_lock(&wait.lock);
    while (!wait.over && !wait.interrupted && hw_cond_wait_until(&wait.cond, &wait.lock, until_ns)) continue;
    pthread_mutex_unlock(&wait.lock);
    return NULL;
}

static void
let_it_run(void)
{
    struct hw_thread *record = hw_record_of(rb_thread_current());
    wait.interrupted = false;
    if (record) record->yielding = true;
    rb_nogvl(wait_for_end, NULL, set_flag, &wait.interrupted, RB_NOGVL_INTR_FAIL);
    if (record) record->yielding = false;
}

/* -- the thread ----------------------------------------------------------------------------------------------------------- */

static VALUE
errands_module(void)
{
    return rb_path2class("Headway::Control::Errands");
}

static VALUE
run_errands(VALUE unused)
{
    char path[sizeof(hw_control.dump_path)];
    for (;;) {
        switch (hw_control_next_errand(&hw_control, path, sizeof(path))) {
          case HW_ERRAND_NAMES: {
            VALUE aside = rb_funcall(errands_module(), rb_intern("names"), 0);
            StringValue(aside);
            hw_control_names_done(&hw_control, RSTRING_PTR(aside), (size_t)RSTRING_LEN(aside));
            RB_GC_GUARD(aside);
            break;
          }
          case HW_ERRAND_DUMP: {
            VALUE answer = rb_funcall(errands_module(), rb_intern("dump"), 1, rb_utf8_str_new_cstr(path));
            Check_Type(answer, T_ARRAY);
            VALUE text = rb_ary_entry(answer, 1);
            StringValue(text);
            hw_control_dump_done(&hw_control, RSTRING_PTR(text), (size_t)RSTRING_LEN(text), !RTEST(rb_ary_entry(answer, 0)));
            RB_GC_GUARD(text);
            break;
          }
          default:
            return Qnil;
        }
    }
}

/* Whatever happens in it ends here: the program must not hear of it, nor a kill of the thread leave the server waiting. */
static VALUE
errand_thread(void *unused)
{
    int state = 0;
    rb_protect(run_errands, Qnil, &state);
    if (state) rb_set_errinfo(Qnil);
    hw_control_errands_end(&hw_control);
    hw_hooks_forget(rb_thread_current());
    set_flag(&wait.over); /* it keeps the GVL until it is off the VM's list */
    return Qnil;
}

static VALUE
create_thread(VALUE unused)
{
    hw_runtime.hides_next = true; /* its STARTED comes on this thread, in here */
    rb_thread_create(errand_thread, NULL);
    return Qnil;
}

static void
on_job(void *unused)
{
    int saved_errno = errno, state = 0;
    if (hw_control.reopen) hw_control_open(&hw_control);
    if (!ending && hw_in_main_ractor() && hw_control_errands_due(&hw_control)) {
        wait.over = false;
        rb_protect(create_thread, Qnil, &state);
        hw_runtime.hides_next = false;
        if (state) {
            rb_set_errinfo(Qnil);
            hw_control_errands_end(&hw_control);
        }
        else {
            let_it_run();
        }
    }
    errno = saved_errno;
}

static void
trigger(void)
{
    rb_postponed_job_trigger(job);
}

static void
on_end(VALUE unused)
{
    ending = true;
}

/* -- methods -------------------------------------------------------------------------------------------------------------- */

static void
copy(char *to, size_t capacity, VALUE string)
{
    StringValue(string);
    size_t length = (size_t)RSTRING_LEN(string) < capacity - 1 ? (size_t)RSTRING_LEN(string) : capacity - 1;
    memcpy(to, RSTRING_PTR(string), length);
    to[length] = '\0';
}

/* Native.control_open(directory, headway, ruby, command, only_observes) -> nil, or why it can't */
static VALUE
control_open(VALUE self, VALUE directory, VALUE headway, VALUE ruby, VALUE command, VALUE only_observes)
{
    struct hw_control_facts facts;
    copy(facts.directory, sizeof(facts.directory), directory);
    copy(facts.headway, sizeof(facts.headway), headway);
    copy(facts.ruby, sizeof(facts.ruby), ruby);
    copy(facts.command, sizeof(facts.command), command);
    facts.only_observes = RTEST(only_observes);
    if (!hw_control.open) hw_control.facts = facts;
    const char *wrong = hw_control_open(&hw_control);
    return wrong ? rb_utf8_str_new_cstr(wrong) : Qnil;
}

/* Native.control_path -> where the socket is, or nil */
static VALUE
control_path(VALUE self)
{
    return hw_control.open ? rb_utf8_str_new_cstr(hw_control.path) : Qnil;
}

/* Native.control_name(thread, name) */
static VALUE
control_name(VALUE self, VALUE thread, VALUE name)
{
    StringValue(name);
    struct hw_thread *record = rb_obj_is_kind_of(thread, rb_cThread) ? hw_record_of(thread) : NULL;
    if (record) hw_control_set_name(&hw_control, record, RSTRING_PTR(name), (size_t)RSTRING_LEN(name));
    return Qnil;
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
hw_errands_init(VALUE native)
{
    job = rb_postponed_job_preregister(0, on_job, NULL);
    if (job == POSTPONED_JOB_HANDLE_INVALID) rb_raise(rb_eRuntimeError, "the VM's table of postponed jobs is full");
    hw_errands_after_fork();
    hw_control_init(&hw_control, &hw_runtime, trigger);
    rb_set_end_proc(on_end, Qnil);
    rb_define_singleton_method(native, "control_open", control_open, 5);
    rb_define_singleton_method(native, "control_path", control_path, 0);
    rb_define_singleton_method(native, "control_name", control_name, 2);
    rb_define_singleton_method(native, "control_changes", control_changes, 0);
}
