/* fork: the lock is taken across it, so that the child finds the scheduler's data whole. In the child one thread lives.
 *
 * A large process takes milliseconds to fork, in which threads come back from I/O. Whoever then waited for the lock, in its READY hook,
 * would do so with the VM's lock around its list of hooks, which a child of a Ruby with Bug #21959 would find locked for ever. So it
 * leaves word on a list, and goes on to wait for the GVL, which the forking thread has; no other event comes meanwhile. (Who had seen no
 * fork yet and is about to take the lock still waits for it: as with any hook, the danger lasts for less than a microsecond.) */
#include "feed.h"

/* Whoever was about to signal it isn't here. */
static void
renew(struct hw_thread *thread)
{
    hw_cond_init(&thread->parked_cond);
    atomic_store_explicit(&thread->calls_due, 0, memory_order_relaxed);
}

static void
tell_late(struct hw_runtime *rt)
{
    struct hw_thread *next;
    for (struct hw_thread *thread = atomic_exchange(&rt->late, NULL); thread; thread = next) {
        next = thread->late_next;
        atomic_store(&thread->late, false);
        hw_runtime_event(rt, thread, HW_EVENT_READY);
    }
}

/* Of this and the end of the fork one comes later, and tells: whoever has put itself on the list looks once more whether it is over. */
void
hw_runtime_tell_later(struct hw_runtime *rt, struct hw_thread *thread)
{
    if (atomic_exchange(&thread->late, true)) return;
    struct hw_thread *first = atomic_load(&rt->late);
    do thread->late_next = first;
    while (!atomic_compare_exchange_weak(&rt->late, &first, thread));
    if (!atomic_load(&rt->forking)) tell_late(rt);
}

void
hw_runtime_before_fork(struct hw_runtime *rt)
{
    hw_recorder_before_fork(&rt->recorder);
    atomic_store(&rt->forking, true);
    pthread_mutex_lock(&rt->lock);
}

void
hw_runtime_after_fork_parent(struct hw_runtime *rt)
{
    pthread_mutex_unlock(&rt->lock);
    atomic_store(&rt->forking, false);
    tell_late(rt);
    hw_recorder_after_fork_parent(&rt->recorder);
}

/* The forking thread runs, but a missed event may have left its record in another state: it is known by its pthread; and where Ruby
 * threads share these (M:N), as the one that got the GVL there last. */
static struct hw_thread *
forking_thread(const struct hw_runtime *rt)
{
    struct hw_thread *found = NULL;
    for (struct hw_thread *thread = rt->scheduler.threads; thread; thread = thread->next) {
        if (thread->resumes > (found ? found->resumes : 0) && pthread_equal(thread->pthread, pthread_self())) found = thread;
    }
    return found;
}

void
hw_runtime_after_fork_child(struct hw_runtime *rt)
{
    pthread_mutex_init(&rt->lock, NULL);
    atomic_store(&rt->forking, false);
    atomic_store(&rt->late, NULL);
    hw_cond_init(&rt->ticker_cond);
    hw_recorder_after_fork_child(&rt->recorder);
    rt->ticker_runs = rt->ticker_must_end = rt->ticker_called = rt->poll_due = rt->sample_due = false;
    rt->tick_ns = rt->watch_ns = rt->ticker_wake_ns = HW_NEVER;
    rt->bound = NULL;

    uint64_t now = hw_now_ns();
    struct hw_thread *forking = forking_thread(rt), *next;
    for (struct hw_thread *thread = rt->scheduler.threads; thread; thread = next) {
        next = thread->next;
        renew(thread);
        if (thread == forking) {
            thread->main = true;
            thread->native_id = 0;
            hw_scheduler_revive(&rt->scheduler, thread, HW_RUNNING, now);
            continue;
        }
        thread->parked = false;
        struct hw_orders ignored;
        hw_scheduler_remove(&rt->scheduler, thread, now, &ignored);
        hw_record_disown(rt, thread);
        thread->next = rt->spare;
        rt->spare = thread;
    }
    for (struct hw_thread *thread = rt->spare; thread; thread = thread->next) renew(thread);
    if (rt->scheduler.holder) rt->scheduler.holder->asked = false;
    hw_runtime_reset_locked(rt, now);
    hw_feed_known(rt, now);
    atomic_store_explicit(&rt->ready, rt->scheduler.counts[HW_IS_READY], memory_order_relaxed);
}
