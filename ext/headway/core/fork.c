/* fork: the lock is taken across it, so that the child finds the scheduler's data whole. In the child one thread lives. */
#include "feed.h"

/* Whoever was about to signal it isn't here. */
static void
renew(struct hw_thread *thread)
{
    hw_cond_init(&thread->parked_cond);
    atomic_store_explicit(&thread->calls_due, 0, memory_order_relaxed);
}

void
hw_runtime_before_fork(struct hw_runtime *rt)
{
    hw_recorder_before_fork(&rt->recorder);
    pthread_mutex_lock(&rt->lock);
}

void
hw_runtime_after_fork_parent(struct hw_runtime *rt)
{
    pthread_mutex_unlock(&rt->lock);
    hw_recorder_after_fork_parent(&rt->recorder);
}

void
hw_runtime_after_fork_child(struct hw_runtime *rt)
{
    pthread_mutex_init(&rt->lock, NULL);
    hw_cond_init(&rt->ticker_cond);
    hw_recorder_after_fork_child(&rt->recorder);
    rt->ticker_runs = rt->ticker_must_end = rt->ticker_called = rt->poll_due = rt->sample_due = false;
    rt->tick_ns = rt->watch_ns = rt->ticker_wake_ns = HW_NEVER;
    rt->bound = NULL;

    /* The forking thread runs, but a missed event may have left its record in another state: know it by its pthread. */
    uint64_t now = hw_now_ns();
    struct hw_thread *next;
    for (struct hw_thread *thread = rt->scheduler.threads; thread; thread = next) {
        next = thread->next;
        renew(thread);
        if (thread->resumes > 0 && pthread_equal(thread->pthread, pthread_self())) {
            thread->main = true;
            thread->native_id = 0;
            hw_scheduler_revive(&rt->scheduler, thread, HW_RUNNING, now);
            continue;
        }
        thread->parked = false;
        struct hw_orders ignored;
        hw_scheduler_remove(&rt->scheduler, thread, now, &ignored);
        thread->next = rt->spare;
        rt->spare = thread;
    }
    for (struct hw_thread *thread = rt->spare; thread; thread = thread->next) renew(thread);
    if (rt->scheduler.holder) rt->scheduler.holder->asked = false;
    hw_runtime_reset_locked(rt, now);
    hw_feed_known(rt, now);
    atomic_store_explicit(&rt->ready, rt->scheduler.counts[HW_IS_READY], memory_order_relaxed);
}
