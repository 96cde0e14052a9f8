#include "allowed.h"
#include "feed.h"
#include "names.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

const char *const hw_preempt_labels[] = {
#define EACH(name, label) [HW_##name] = label,
    HW_PREEMPTS(EACH)
#undef EACH
};

/* An interactive thread's turn is often over in less time than it takes to sleep and be woken. */
#define SPIN_NS (25 * HW_NS_PER_US)

/* -- orders ------------------------------------------------------------------------------------------------------------- */

/* One signal in a hold: it cuts short what native code that keeps the GVL sleeps (SQLite, while its database is locked), and what the first
 * one couldn't do, the second can't either. The ticker triggers the same job without one. */
void
hw_runtime_preempt(struct hw_runtime *rt, const struct hw_orders *orders)
{
    if (rt->preempt == HW_SIGNAL && !rt->signal_lost && !orders->again) {
        if (hw_signal_installed()) {
            pthread_kill(orders->preempt->pthread, hw_signal_number());
            return;
        }
        rt->signal_lost = true;
    }
    hw_ticker_poll(rt);
}

void
hw_runtime_carry_out(struct hw_runtime *rt, struct hw_orders *orders, uint64_t now)
{
    atomic_store_explicit(&rt->ready, rt->scheduler.counts[HW_IS_READY], memory_order_relaxed);
    if (hw_scheduler_contended(&rt->scheduler)) {
        rt->contended_ns = now;
        hw_ticker_awake_by(rt, now + HW_SAMPLE_NS);
    }
    if (orders->preempt && !orders->self) hw_runtime_preempt(rt, orders);
    if (orders->tick_ns < rt->tick_ns) hw_ticker_at(rt, orders->tick_ns);
#ifdef HW_TEST
    if (orders->wake && rt->drop_wakes > 0) {
        rt->drop_wakes--;
        orders->wake = NULL;
    }
#endif
    if (orders->wake) atomic_fetch_add_explicit(&orders->wake->calls_due, 1, memory_order_relaxed);
}

/* Whoever is woken takes the lock. Woken while it is held, perhaps in place of its holder, it waits for it, and is woken a second time:
 * by then the system may prefer others on that processor, for milliseconds. */
void
hw_runtime_unlock(struct hw_runtime *rt)
{
    bool called = rt->ticker_called;
    rt->ticker_called = false;
    pthread_mutex_unlock(&rt->lock);
    if (called) pthread_cond_signal(&rt->ticker_cond);
}

static bool
pull(struct hw_runtime *rt, struct hw_thread *sleeper)
{
    bool pulled = hw_pull(sleeper);
    if (pulled) atomic_fetch_add_explicit(&rt->pulled, 1, memory_order_relaxed);
    return pulled;
}

/* Of those that wait for the GVL, which the caller has, only this one stays bound; NULL: nobody. The runtime's lock isn't held: who
 * hasn't quite gone to sleep yet is moved by the system, for which this waits. So none that gives way is ever bound: on its way into the
 * park or out of it, as when an interrupt calls it back, it doesn't wait for the GVL yet. It is pulled asleep in the park, with the lock,
 * or not at all. */
static bool
bind(struct hw_runtime *rt, struct hw_thread *next)
{
    if (next && next->yielding) next = NULL;
    if (rt->bound == NULL && next == NULL) return false;
    if (rt->bound && rt->bound != next) hw_pull_ends(rt->bound);
    rt->bound = next;
    return next && pull(rt, next);
}

void
hw_runtime_pull_next(struct hw_runtime *rt, struct hw_thread *thread)
{
    thread->gave_processor = false;
    if (!rt->pulls) return;
    pthread_mutex_lock(&rt->lock);
    struct hw_thread *next = hw_scheduler_goes_next(&rt->scheduler);
    pthread_mutex_unlock(&rt->lock);
    thread->gave_processor = bind(rt, next);
}

void
hw_runtime_pull_nobody(struct hw_runtime *rt)
{
    bind(rt, NULL);
}

/* Whoever is next gets the processor that the thread leaves, unless that will compute on it without the GVL. */
static struct hw_thread *
next_here(struct hw_thread *thread, const struct hw_orders *orders)
{
    thread->free_cpu_from_ns = 0;
    if (orders->next == NULL || thread->yielding) return orders->next;
    thread->free_cpu_from_ns = hw_cpu_ns();
    return hw_policy_computes_free(thread) ? NULL : orders->next;
}

static void
learn_free_cpu(const struct hw_policy *policy, struct hw_thread *thread)
{
    if (thread->free_cpu_from_ns == 0) return;
    hw_policy_learn_free_cpu(policy, thread, hw_elapsed_ns(thread->free_cpu_from_ns, hw_cpu_ns()));
    thread->free_cpu_from_ns = 0;
}

void
hw_runtime_finish(struct hw_runtime *rt, const struct hw_orders *orders)
{
    hw_runtime_unlock(rt);
    if (orders->wake) {
        hw_park_call(orders->wake);
        atomic_fetch_sub_explicit(&orders->wake->calls_due, 1, memory_order_release);
    }
    if (orders->self) rt->trigger();
}

/* Of the slots the first ones: mostly there are no more. */
static void
fetch(const struct hw_runtime *rt, const struct hw_thread *thread)
{
    const struct hw_scheduler *scheduler = &rt->scheduler;
    const struct hw_attribution *attribution = &scheduler->attribution;
    hw_fetch(rt, &attribution->held_ns[HW_SLOTS_STEP]);
    hw_fetch(thread, &thread->pull.before);
    hw_fetch(&thread->waits, &thread->waits.held_before_ns[HW_SLOTS_STEP]);
    hw_fetch(attribution->caused_ns, &attribution->caused_ns[HW_SLOTS_STEP]);
    hw_fetch_to_read(&scheduler->policy, &scheduler->policy + 1);
    if (hw_recording(&rt->recorder)) hw_fetch(&rt->recorder.ring.head, &rt->recorder.ring.head + 1);
}

void
hw_runtime_event(struct hw_runtime *rt, struct hw_thread *thread, enum hw_event event)
{
    struct hw_orders orders = { .tick_ns = HW_NEVER };
    struct hw_scheduler *scheduler = &rt->scheduler;
    struct hw_thread *next = NULL;

    if (event == HW_EVENT_READY && atomic_load_explicit(&rt->forking, memory_order_relaxed)) {
        hw_runtime_tell_later(rt, thread);
        return;
    }
    fetch(rt, thread);
    if (event == HW_EVENT_RESUMED) hw_pull_ends(thread);
    pthread_mutex_lock(&rt->lock);
    uint64_t now = hw_now_ns();
    if (thread->link && atomic_load_explicit(&rt->active, memory_order_relaxed)) {
        uint64_t waited_ns = thread->state == HW_READY ? hw_elapsed_ns(thread->since_ns, now) : 0;
        uint64_t preempted = thread->account.preempted;
        switch (event) {
          case HW_EVENT_READY:
            hw_scheduler_ready(scheduler, thread, now, &orders);
            break;
          case HW_EVENT_RESUMED:
            learn_free_cpu(&scheduler->policy, thread);
            thread->pthread = pthread_self();
            if (thread->native_id == 0) thread->native_id = hw_native_id();
            hw_scheduler_resumed(scheduler, thread, now, &orders);
            break;
          case HW_EVENT_SUSPENDED:
            hw_scheduler_suspended(scheduler, thread, now, &orders);
            break;
          case HW_EVENT_EXITED:
            hw_scheduler_remove(scheduler, thread, now, &orders);
            break;
        }
        if (hw_recording(&rt->recorder) &&
            hw_feed_event(rt, thread, event, thread->account.preempted != preempted, waited_ns, now)) orders.self = true;
        if (event == HW_EVENT_EXITED) hw_record_retire(rt, thread);
        hw_runtime_carry_out(rt, &orders, now);
        if (event == HW_EVENT_SUSPENDED && rt->pulls) next = next_here(thread, &orders);
        if (next && next->sleeps) pull(rt, next);
    }
    hw_runtime_finish(rt, &orders);
    /* It still has the GVL when it is suspended, and has it already when it resumes: nobody else looks at who is bound. */
    if (rt->pulls && (event == HW_EVENT_SUSPENDED || event == HW_EVENT_RESUMED)) bind(rt, next);
}

void
hw_runtime_collected(struct hw_runtime *rt, struct hw_thread *thread, uint64_t spent_ns)
{
    pthread_mutex_lock(&rt->lock);
    hw_scheduler_collected(&rt->scheduler, thread, spent_ns);
    pthread_mutex_unlock(&rt->lock);
}

void
hw_runtime_leave_alone(struct hw_runtime *rt, struct hw_thread *thread)
{
    pthread_mutex_lock(&rt->lock);
    uint64_t until_ns = hw_scheduler_leave_alone(&rt->scheduler, thread, hw_now_ns());
    if (until_ns < rt->tick_ns) hw_ticker_at(rt, until_ns);
    hw_runtime_unlock(rt);
}

void
hw_runtime_set_class(struct hw_runtime *rt, struct hw_thread *thread, enum hw_class set_class)
{
    struct hw_orders orders = { .tick_ns = HW_NEVER };
    pthread_mutex_lock(&rt->lock);
    uint64_t now = hw_now_ns();
    if (thread->link && atomic_load_explicit(&rt->active, memory_order_relaxed)) {
        hw_scheduler_set_class(&rt->scheduler, thread, set_class, now);
        hw_scheduler_tick(&rt->scheduler, now, &orders);
        hw_runtime_carry_out(rt, &orders, now);
        hw_park_look(rt, thread, now);
    }
    else {
        hw_policy_set_class(thread, set_class);
    }
    hw_runtime_finish(rt, &orders);
}

/* -- life --------------------------------------------------------------------------------------------------------------- */

bool
hw_runtime_init(struct hw_runtime *rt, void (*trigger)(void))
{
    memset(rt, 0, sizeof(*rt));
    pthread_mutex_init(&rt->lock, NULL);
    hw_cond_init(&rt->ticker_cond);
    rt->trigger = trigger;
    rt->tick_ns = rt->watch_ns = rt->ticker_wake_ns = HW_NEVER;
    rt->spin_ns = sysconf(_SC_NPROCESSORS_ONLN) > 1 ? SPIN_NS : 0;
    hw_recorder_init(&rt->recorder);
    for (int kind = 0; kind < HW_WORK_KINDS; kind++) {
        if (!hw_histogram_init(&rt->works[kind].wait, 2)) return false;
    }
    return hw_scheduler_init(&rt->scheduler, &hw_policy_default);
}

/* A trigger from the ticker may hit a context that has just stopped running; a signal hits the holder. */
#define POLL_RETRY_NS (1 * HW_NS_PER_MS)

/* Lock held. */
static void
set_policy(struct hw_runtime *rt, const struct hw_policy *policy, enum hw_preempt preempt)
{
    struct hw_policy adapted = *policy;
    if (preempt == HW_POLL) adapted.retry_ns = POLL_RETRY_NS;
    if (rt->spin_ns == 0) adapted.linger_ns = 0;
    rt->preempt = preempt;
    hw_scheduler_set_policy(&rt->scheduler, &adapted, hw_now_ns());
}

/* Threads are added by the caller, before or after; before, the times are reset. */
bool
hw_runtime_start(struct hw_runtime *rt, const struct hw_policy *policy, enum hw_preempt preempt, bool pulls)
{
    if (preempt == HW_SIGNAL && policy->kind != HW_OBSERVE && !hw_signal_install(rt->trigger)) return false;
    hw_allowed_find();
    pulls = pulls && hw_pull_possible();
    pthread_mutex_lock(&rt->lock);
    rt->signal_lost = false;
    rt->pulls = pulls;
    set_policy(rt, policy, preempt);
    atomic_store(&rt->active, true);
    pthread_mutex_unlock(&rt->lock);
    hw_ticker_ensure(rt);
    return true;
}

void
hw_runtime_configure(struct hw_runtime *rt, const struct hw_policy *policy, enum hw_preempt preempt)
{
    bool signals = preempt == HW_SIGNAL && policy->kind != HW_OBSERVE;
    if (signals) signals = hw_signal_install(rt->trigger);
    pthread_mutex_lock(&rt->lock);
    rt->signal_lost = preempt == HW_SIGNAL && policy->kind != HW_OBSERVE && !signals;
    set_policy(rt, policy, preempt);
    hw_park_end_all(rt);
    hw_ticker_at(rt, hw_now_ns());
    hw_runtime_unlock(rt);
    if (!signals) hw_signal_restore();
    hw_ticker_ensure(rt);
}

void
hw_runtime_stop(struct hw_runtime *rt)
{
    pthread_mutex_lock(&rt->lock);
    atomic_store(&rt->active, false);
    atomic_store_explicit(&rt->ready, 0, memory_order_relaxed);
    hw_park_end_all(rt);
    pthread_mutex_unlock(&rt->lock);
    hw_runtime_pull_nobody(rt); /* those that are parked see to themselves */
    hw_ticker_end(rt);
    hw_signal_restore();
}
