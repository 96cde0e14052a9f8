/* Parking: how a thread that gives way waits at the gate, without the GVL. */
#include "runtime.h"

#include <sched.h>

/* How often a parked thread looks for itself whether a wake-up went missing. */
#define PARK_CHECK_NS (50 * HW_NS_PER_MS)
/* Who was called so long before its timed wait ran out, and waited on: the wake-up was lost. */
#define WAKE_UP_NS (20 * HW_NS_PER_MS)

static inline void
relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static bool
called_back(struct hw_thread *thread)
{
    return atomic_load_explicit(&thread->open, memory_order_acquire) ||
           atomic_load_explicit(&thread->interrupted, memory_order_acquire);
}

void
hw_park_call(struct hw_thread *thread)
{
    pthread_cond_signal(&thread->parked_cond);
    atomic_store_explicit(&thread->called_ns, hw_now_ns(), memory_order_relaxed);
}

/* Whether the gate was opened for it, and not so long before the end of its wait that it should have woken. Who opens it may be
 * switched away by the system before its call, even with the lock: then that came when the wait was over. */
static bool
woken_in_time(struct hw_thread *thread, uint64_t wake_ns)
{
    if (!atomic_load_explicit(&thread->open, memory_order_relaxed)) return false;
    return atomic_load_explicit(&thread->calls_due, memory_order_acquire) > 0 || wake_ns < thread->opened_ns + WAKE_UP_NS ||
        wake_ns < atomic_load_explicit(&thread->called_ns, memory_order_relaxed) + WAKE_UP_NS;
}

static void
spin(struct hw_thread *thread, uint64_t end_ns, bool yields)
{
    do {
        for (int i = 0; i < 20; i++) {
            if (called_back(thread)) return;
            relax();
        }
        if (yields) sched_yield();
    } while (hw_now_ns() < end_ns);
}

void
hw_runtime_park(struct hw_runtime *rt, struct hw_thread *thread)
{
    pthread_mutex_lock(&rt->lock);
    if (rt->scheduler.policy.kind != HW_FAIR) { /* no gate: it goes to the end of the VM's ready queue */
        pthread_mutex_unlock(&rt->lock);
        return;
    }
    thread->parked = true;
    atomic_store_explicit(&thread->open, false, memory_order_relaxed);
    rt->parks++;

    /* Only the admitted thread spins: its turn comes as soon as the interactive ones have had theirs. */
    bool spins = rt->spin_ns > 0 && rt->scheduler.admitted == thread;
    bool timed_out = false;
    uint64_t wake_ns = 0;
    for (;;) {
        uint64_t now = hw_now_ns();
        if (!atomic_load_explicit(&rt->active, memory_order_relaxed) ||
            atomic_load_explicit(&thread->interrupted, memory_order_acquire) || thread->state != HW_READY) break;
        if (hw_scheduler_gate_open(&rt->scheduler, thread, now)) {
            bool starved = now >= hw_scheduler_starves_at_ns(&rt->scheduler, thread);
            if (timed_out && !starved && !woken_in_time(thread, wake_ns)) rt->park_timeouts++;
            break;
        }
        if (timed_out && hw_scheduler_repair(&rt->scheduler, thread, now)) {
            rt->park_timeouts++;
            continue;
        }
        if (timed_out && !rt->ticker_runs) {
            hw_ticker_stand_in(rt);
            timed_out = false;
            continue;
        }
        /* The gate may have closed again between the wake-up and now. */
        atomic_store_explicit(&thread->open, false, memory_order_relaxed);
        uint64_t lingers_until_ns = hw_scheduler_lingers_until_ns(&rt->scheduler, thread);
        bool lingers = lingers_until_ns != HW_NEVER;
        if (spins || lingers) {
            pthread_mutex_unlock(&rt->lock);
            /* Who was pulled here, or is expected right back, may need this very processor. */
            bool yields = rt->pulls && (thread->gave_processor || lingers);
            spin(thread, lingers ? lingers_until_ns : now + rt->spin_ns, yields);
            pthread_mutex_lock(&rt->lock);
            spins = timed_out = false;
        }
        else {
            wake_ns = hw_earlier_ns(now + PARK_CHECK_NS, hw_scheduler_starves_at_ns(&rt->scheduler, thread));
            thread->sleeps = true;
            timed_out = !hw_cond_wait_until(&thread->parked_cond, &rt->lock, wake_ns);
            thread->sleeps = false;
        }
    }
    hw_pull_ends(thread); /* under the lock: a stop does the same for those that are not parked */
    thread->parked = false;
    pthread_mutex_unlock(&rt->lock);
}

void
hw_runtime_await_switch(struct hw_runtime *rt, struct hw_thread *thread)
{
    uint64_t end_ns = hw_now_ns() + HW_NS_PER_MS;
    for (;;) {
        pthread_mutex_lock(&rt->lock);
        bool others_wait = rt->scheduler.counts[HW_IS_READY] > 1;
        bool switched = rt->scheduler.resumes != thread->resumes;
        pthread_mutex_unlock(&rt->lock);
        if (switched || !others_wait || called_back(thread) || hw_now_ns() >= end_ns) return;
        struct timespec pause = { .tv_nsec = 10 * (long)HW_NS_PER_US };
        nanosleep(&pause, NULL);
    }
}

void
hw_runtime_unpark(struct hw_runtime *rt, struct hw_thread *thread)
{
    struct hw_orders orders = { .tick_ns = HW_NEVER };
    pthread_mutex_lock(&rt->lock);
    uint64_t now = hw_now_ns();
    atomic_store_explicit(&thread->interrupted, true, memory_order_release);
    pthread_cond_signal(&thread->parked_cond);
    if (thread->link && atomic_load_explicit(&rt->active, memory_order_relaxed)) {
        hw_scheduler_called_back(&rt->scheduler, thread, now, &orders);
        hw_runtime_carry_out(rt, &orders, now);
    }
    hw_runtime_finish(rt, &orders);
}

static void
let_go(struct hw_thread *thread, uint64_t now)
{
    if (!thread->parked) return;
    thread->opened_ns = now;
    atomic_store_explicit(&thread->open, true, memory_order_release);
    hw_park_call(thread);
}

void
hw_park_look(struct hw_runtime *rt, struct hw_thread *thread, uint64_t now)
{
    if (hw_scheduler_gate_open(&rt->scheduler, thread, now)) let_go(thread, now);
}

void
hw_park_end_all(struct hw_runtime *rt)
{
    uint64_t now = hw_now_ns();
    for (struct hw_thread *thread = rt->scheduler.threads; thread; thread = thread->next) let_go(thread, now);
}
