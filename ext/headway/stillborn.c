/* Threads whose creation failed. The VM announces a thread (STARTED), then tries to create it, and says nothing when that fails. Its record
 * would stay until the next start: a program that is at its limit of threads, and tries again and again, would run out of memory.
 *
 * Who was announced, was never seen running and isn't in Thread.list is such a one: a thread is in there before it is announced, and leaves
 * it after it has run. (Other Ractors' threads are not in there; they get no record: hooks.c.) No event of it will come, so its record may
 * be another's.
 *
 * Thread.list is looked at when there are twice as many records as were left last time: for threads that live next to never. In a job, with
 * the GVL, as the hook has the VM's lock around its list of hooks: no method may be called there. */
#include "binding.h"

#include <errno.h>
#include <ruby/debug.h>

#define FEW 64

static rb_postponed_job_handle_t job;
static unsigned look_at = FEW; /* records; with the GVL, in the main Ractor */

static unsigned
records(void)
{
    pthread_mutex_lock(&hw_runtime.lock);
    unsigned count = hw_runtime.scheduler.living;
    pthread_mutex_unlock(&hw_runtime.lock);
    return count;
}

static VALUE
sweep(VALUE unused)
{
    VALUE threads = hw_living_threads();
    for (long i = 0; i < RARRAY_LEN(threads); i++) {
        struct hw_thread *record = hw_record_of(RARRAY_AREF(threads, i));
        if (record) record->seen = true;
    }
    hw_runtime_sweep(&hw_runtime, true);
    RB_GC_GUARD(threads);
    return Qnil;
}

static void
on_job(void *unused)
{
    int saved_errno = errno, state = 0;
    if (hw_in_main_ractor() && atomic_load(&hw_runtime.active)) {
        rb_protect(sweep, Qnil, &state);
        if (state) rb_set_errinfo(Qnil);
        unsigned left = records();
        look_at = 2 * left > FEW ? 2 * left : FEW;
    }
    errno = saved_errno;
}

void
hw_stillborn_look(void)
{
    if (records() >= look_at) rb_postponed_job_trigger(job);
}

void
hw_stillborn_init(void)
{
    job = hw_preregister(on_job);
}
