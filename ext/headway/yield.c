/* The job: how the holder gives way.
 *
 * A preemption makes the holder run on_job at its next interrupt check. There, with the GVL, the VM must not be asked to check
 * interrupts or to schedule: a jump out of a job is swallowed, and exceptions and kills with it. The one call that loses nothing
 * is rb_nogvl with RB_NOGVL_INTR_FAIL and an unblock function: it releases the GVL, the thread waits at the gate in native code,
 * and comes back through the VM's ready queue; with an interrupt pending it declines to run, and the job just returns.
 *
 * What the VM consumed. It takes all interrupt bits into a local before it runs jobs, so an exception or a trap that arrived
 * together with the job is invisible to it until the job returns. Hence nothing is given away at first: the job triggers itself
 * and returns, the VM serves what it took, and in the same check the job runs once more: a clean entry, at which nothing but a trap
 * can be outstanding (other threads need the GVL to raise or kill; traps are looked for explicitly). A park may last as long as it
 * takes.
 *
 * What unwinds. From when the VM takes an exception out of a thread's queue until it is rescued, there are interrupt checks: when
 * its `exception` is called, at each frame that it leaves, in an ensure clause. Another one raised into the thread by then takes its
 * place, and nobody sees the first. So it is on any Ruby whose timer strikes there, but we strike a hundred times as often. Hence:
 * who gets the GVL with an interrupt pending, which nobody else can make later in a hold, is left alone for a while (the policy's
 * alone_ns). For what the thread itself lets in, with Thread.handle_interrupt or in a trap, an entry counts as clean only from where
 * the job triggered itself, by the address of its frame: had there been an exception, the next check would be in a deeper one. (A
 * kill let in so and an ensure clause of the same method are not told apart.)
 *
 * Where a switch would be fatal. While the VM wakes fibers that wait for one thing, one after the other, nobody else may run
 * (hw_amid_wakeups): the holder is left alone until it is through, which the ticker asks every alone_ns.
 *
 * on_job: with the GVL, on the holder, POSTPONED_JOB and TRAP masked. Doesn't raise or call a Ruby method; makes objects for names alone.
 * park:   without the GVL. unpark: any thread, under the VM's interrupt lock of the parked thread. */
#include "binding.h"

#include <errno.h>
#include <ruby/debug.h>
#include <ruby/version.h>

/* From 4.0.6 on a thread that has just left a short blocking region may take the GVL back before the one it was meant for: then
 * an empty round gives nothing away, and we wait until somebody else really runs. */
#ifndef HW_HANDSHAKE
#define HW_HANDSHAKE (RUBY_API_VERSION_MAJOR >= 4)
#endif

#ifdef HAVE_RB_THREAD_CHECK_TRAP_PENDING
int rb_thread_check_trap_pending(void);
#else
#define rb_thread_check_trap_pending() false /* then a trap may wait for a park to end */
#endif

/* With the address sanitizer variables are not on the stack. */
#ifdef __GNUC__
#define FRAME(variable) ((uintptr_t)__builtin_frame_address(0))
#else
#define FRAME(variable) ((uintptr_t)&(variable))
#endif

static rb_postponed_job_handle_t job;

static bool
trap_pending(const struct hw_thread *record)
{
    return record->main && rb_thread_check_trap_pending();
}

static void *
park(void *record)
{
    if (trap_pending(record)) return record;
    hw_runtime_park(&hw_runtime, record);
    if (HW_HANDSHAKE) hw_runtime_await_switch(&hw_runtime, record);
    return record;
}

static void
unpark(void *record)
{
    hw_runtime_unpark(&hw_runtime, record);
}

/* One round without the GVL. False when the VM declined, with any interrupt pending, or wants the thread's attention. */
static bool
give_way(struct hw_thread *record)
{
    hw_runtime_pull_next(&hw_runtime, record);
    atomic_store(&record->interrupted, false);
    record->yielding = true;
    bool ran = rb_nogvl(park, record, unpark, record, RB_NOGVL_INTR_FAIL) != NULL;
    record->yielding = false;
    if (!ran) hw_runtime_pull_nobody(&hw_runtime);
    return ran && !atomic_load(&record->interrupted);
}

static bool
must_yield(struct hw_thread *record)
{
    if (!atomic_load(&hw_runtime.active)) return false;
    pthread_mutex_lock(&hw_runtime.lock);
    bool must = hw_scheduler_must_yield(&hw_runtime.scheduler, record, hw_now_ns());
    pthread_mutex_unlock(&hw_runtime.lock);
    return must;
}

/* The same on the job's first entry, where the holder is also blamed: it must give way, or somebody has waited for long. */
static bool
blame_and_must_yield(struct hw_thread *record)
{
    if (!atomic_load(&hw_runtime.active)) return false;
    pthread_mutex_lock(&hw_runtime.lock);
    uint64_t now = hw_now_ns();
    bool must = hw_scheduler_must_yield(&hw_runtime.scheduler, record, now);
    bool look = must || hw_runtime.sample_due;
    hw_runtime.sample_due = false;
    uint64_t weight_ns = look ? hw_scheduler_sample(&hw_runtime.scheduler, now) : 0;
    pthread_mutex_unlock(&hw_runtime.lock);
    hw_blame_sample(record, weight_ns, now);
    return must;
}

/* The system had no thread for it when it was to start. */
static void
find_ticker(void)
{
    if (!hw_runtime.ticker_runs && atomic_load(&hw_runtime.active)) hw_ticker_ensure(&hw_runtime);
}

static void
on_clean_entry(struct hw_thread *record, VALUE thread)
{
    find_ticker();
    do {
        if (!give_way(record) || rb_thread_interrupted(thread) || trap_pending(record)) {
            hw_runtime_leave_alone(&hw_runtime, record);
            return;
        }
    } while (must_yield(record));
}

static void
on_job(void *unused)
{
    int saved_errno = errno;
    VALUE thread = rb_thread_current();
    struct hw_thread *record = hw_record_of(thread);

    if (record && record->ractor_known && !record->yielding) {
        hw_blame_block(record);
        bool again = record->job_resume == record->resumes;
        record->job_resume = 0;
        if ((again ? must_yield(record) : blame_and_must_yield(record)) && !trap_pending(record)) {
            if (!again && hw_amid_wakeups()) {
                hw_runtime_leave_alone(&hw_runtime, record);
            }
            else if (!again) {
                record->job_resume = record->resumes;
                record->job_frame = FRAME(saved_errno);
                rb_postponed_job_trigger(job);
            }
            else if (record->job_frame == FRAME(saved_errno)) {
                on_clean_entry(record, thread);
            }
            else {
                hw_runtime_leave_alone(&hw_runtime, record);
            }
        }
    }
    errno = saved_errno;
}

void
hw_trigger(void)
{
    rb_postponed_job_trigger(job);
}

/* Headway.pass: called as a method, where interrupts may be checked, so the VM's own way is safe. */
VALUE
hw_pass(VALUE self)
{
    if (atomic_load_explicit(&hw_runtime.ready, memory_order_relaxed) == 0) return Qfalse;
    struct hw_thread *record = hw_record_of(rb_thread_current());
    uint64_t hold = record ? record->resumes : 0;
    rb_thread_schedule();
    return record && record->resumes != hold ? Qtrue : Qfalse;
}

rb_postponed_job_handle_t
hw_preregister(void (*function)(void *))
{
    rb_postponed_job_handle_t handle = rb_postponed_job_preregister(0, function, NULL);
    if (handle == POSTPONED_JOB_HANDLE_INVALID) rb_raise(rb_eRuntimeError, "the VM's table of postponed jobs is full");
    return handle;
}

void
hw_yield_init(void)
{
    job = hw_preregister(on_job);
}
