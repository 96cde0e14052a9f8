/* A postponed job that notes where and how it ran, and can block inside itself. */

#include "vm_fixture.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

int rb_thread_check_trap_pending(void); /* exported by the VM, in no header */

enum { RUNS_MAX = 1 << 14 };

enum behaviour { NOTE, BLOCK, BLOCK_AFTER_TRIGGER, BLOCK_AFTER_SIGNAL, RAISE };

struct run {
    long thread;
    bool trap_pending; /* at entry */
    bool blocked;      /* rb_nogvl called its function */
    long unblocks;     /* how often the unblock function was called */
    uint64_t duration_ns;
};

static rb_postponed_job_handle_t job = POSTPONED_JOB_HANDLE_INVALID;
static enum behaviour behaviour;
static uint64_t block_ns;
static int block_flags;
static struct run runs[RUNS_MAX];
static atomic_long runs_seen;
static atomic_bool in_block;

struct wait {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    long unblocks;
};

/* Without the GVL. */
static void *
wait_bounded(void *argument)
{
    struct wait *wait = argument;
    struct timespec end; /* by the clock that conditions go by: not every C library has pthread_cond_clockwait */
    clock_gettime(CLOCK_REALTIME, &end);
    const uint64_t end_ns = (uint64_t)end.tv_nsec + block_ns;
    end.tv_sec += (time_t)(end_ns / 1000000000u);
    end.tv_nsec = (long)(end_ns % 1000000000u);

    atomic_store(&in_block, true);
    pthread_mutex_lock(&wait->lock);
    while (!wait->unblocks && pthread_cond_timedwait(&wait->changed, &wait->lock, &end) == 0) continue;
    pthread_mutex_unlock(&wait->lock);
    atomic_store(&in_block, false);
    return wait;
}

/* Whoever interrupts the thread, perhaps without the GVL. */
static void
unblock(void *argument)
{
    struct wait *wait = argument;
    pthread_mutex_lock(&wait->lock);
    wait->unblocks++;
    pthread_cond_signal(&wait->changed);
    pthread_mutex_unlock(&wait->lock);
}

static void
block(struct run *run)
{
    struct wait wait = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};
    run->blocked = rb_nogvl(wait_bounded, &wait, unblock, &wait, block_flags) == &wait;
    run->unblocks = wait.unblocks;
}

static void
await_pending_trap(void)
{
    const uint64_t end = now_ns() + 1000000000u;
    while (!rb_thread_check_trap_pending() && now_ns() < end) continue;
    spin_ns(20000000); /* the VM's timer thread sets the interrupt flag a little later */
}

/* With the GVL, inside an interrupt check of the flagged thread. */
static void
run_job(void *unused)
{
    const long index = atomic_fetch_add(&runs_seen, 1);
    if (index >= RUNS_MAX) return;
    struct run *run = &runs[index];
    const uint64_t start = now_ns();

    *run = (struct run){.thread = thread_number(rb_thread_current()), .trap_pending = rb_thread_check_trap_pending()};
    switch (behaviour) {
      case NOTE: break;
      case BLOCK: block(run); break;
      case BLOCK_AFTER_TRIGGER: trigger_job(); behaviour = NOTE; block(run); break;
      case BLOCK_AFTER_SIGNAL: kill(getpid(), SIGUSR2); await_pending_trap(); block(run); break;
      case RAISE: rb_raise(rb_eRuntimeError, "out of a job");
    }
    run->duration_ns = now_ns() - start;
}

/* Any native thread, hooks and signal handlers included. */
void
trigger_job(void)
{
    if (job != POSTPONED_JOB_HANDLE_INVALID) rb_postponed_job_trigger(job);
}

static enum behaviour
behaviour_named(VALUE name)
{
    const ID id = SYM2ID(name);
    if (id == rb_intern("note")) return NOTE;
    if (id == rb_intern("block")) return BLOCK;
    if (id == rb_intern("block_after_trigger")) return BLOCK_AFTER_TRIGGER;
    if (id == rb_intern("block_after_signal")) return BLOCK_AFTER_SIGNAL;
    if (id == rb_intern("raise")) return RAISE;
    rb_raise(rb_eArgError, "no such behaviour: %+" PRIsVALUE, name);
}

/* What the job does from now on; forgets the runs so far. */
static VALUE
prepare_job(VALUE self, VALUE name, VALUE seconds, VALUE fail_if_interrupted)
{
    if (job == POSTPONED_JOB_HANDLE_INVALID) job = rb_postponed_job_preregister(0, run_job, NULL);
    behaviour = behaviour_named(name);
    block_ns = ns_from_seconds(seconds);
    block_flags = RTEST(fail_if_interrupted) ? RB_NOGVL_INTR_FAIL : 0;
    atomic_store(&runs_seen, 0);
    return Qnil;
}

static VALUE
trigger(VALUE self)
{
    trigger_job();
    return Qnil;
}

static void *
trigger_and_end(void *unused)
{
    trigger_job();
    return NULL;
}

/* Both are pending before the next interrupt check, so one check finds them. */
static VALUE
signal_and_trigger(VALUE self)
{
    kill(getpid(), SIGUSR2);
    await_pending_trap();
    trigger_job();
    return Qnil;
}

/* Leaves the fiber before it can check for interrupts. */
static VALUE
trigger_and_yield_fiber(VALUE self)
{
    trigger_job();
    return rb_fiber_yield(0, NULL);
}

/* From a native thread that Ruby does not know, while the caller holds the GVL. */
static VALUE
trigger_from_outside(VALUE self)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, trigger_and_end, NULL) != 0) rb_sys_fail("pthread_create");
    pthread_join(thread, NULL);
    return Qnil;
}

static VALUE
blocked_in_job_p(VALUE self)
{
    return atomic_load(&in_block) ? Qtrue : Qfalse;
}

/* Returns [[thread number, trap pending at entry, blocked, unblocks, nanoseconds], ...] */
static VALUE
job_runs(VALUE self)
{
    long seen = atomic_load(&runs_seen);
    if (seen > RUNS_MAX) seen = RUNS_MAX;
    const VALUE rows = rb_ary_new_capa(seen);
    for (long i = 0; i < seen; i++) {
        const struct run *r = &runs[i];
        rb_ary_push(rows, rb_ary_new_from_args(5, LONG2NUM(r->thread), r->trap_pending ? Qtrue : Qfalse,
                                               r->blocked ? Qtrue : Qfalse, LONG2NUM(r->unblocks),
                                               ULL2NUM(r->duration_ns)));
    }
    return rows;
}

void
Init_jobs(VALUE module)
{
    rb_define_module_function(module, "prepare_job", prepare_job, 3);
    rb_define_module_function(module, "trigger", trigger, 0);
    rb_define_module_function(module, "signal_and_trigger", signal_and_trigger, 0);
    rb_define_module_function(module, "trigger_and_yield_fiber", trigger_and_yield_fiber, 0);
    rb_define_module_function(module, "trigger_from_outside", trigger_from_outside, 0);
    rb_define_module_function(module, "blocked_in_job?", blocked_in_job_p, 0);
    rb_define_module_function(module, "job_runs", job_runs, 0);
}
