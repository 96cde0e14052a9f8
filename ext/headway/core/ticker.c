/* The ticker: one native thread that wakes when the policy said something would be due, and in mode poll triggers the job; it also
 * triggers it to have the holder's stack looked at while somebody waits. For the flight recorder's alarm it looks for waits that last. It
 * starts with the second thread, stays until the stop, and sleeps without a timeout when nobody has waited for a while. */
#include "allowed.h"
#include "feed.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#ifdef __linux__
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

/* While threads compete the ticker wakes this often whether or not something is due, so that an event hook need not wake it for
 * every deadline: waking it costs more than all else a hook does. */
#define AWAKE_FOR_NS (50 * HW_NS_PER_MS)

static void
tick(struct hw_runtime *rt, uint64_t now)
{
    struct hw_orders orders;
    hw_scheduler_tick(&rt->scheduler, now, &orders);
    rt->tick_ns = orders.tick_ns;
    if (hw_scheduler_contended(&rt->scheduler)) rt->contended_ns = now;
    if (hw_scheduler_sample_due(&rt->scheduler, now)) rt->sample_due = rt->poll_due = true;
    if (orders.preempt) hw_runtime_preempt(rt, &orders);
    if (orders.wake) hw_park_call(orders.wake);
}

static bool
poll(struct hw_runtime *rt)
{
    if (!rt->poll_due) return false;
    rt->poll_due = false;
    pthread_mutex_unlock(&rt->lock);
    rt->trigger();
    pthread_mutex_lock(&rt->lock);
    return true;
}

#define OWN_SLICE_NS (100 * HW_NS_PER_US) /* the least there is */

/* Linux: on the processor of a thread that computes, the ticker, which has next to nothing to do, would wait until that one's slice of
 * some 3 ms ends; from 6.12 on who asks for shorter ones need not. An older one ignores it. The default timer
 * slack of 50 µs is much for a quantum of 1 ms. */
static void
be_prompt(void)
{
#ifdef PR_SET_TIMERSLACK
    prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL);
#endif
#if defined(SYS_sched_setattr) && defined(SYS_sched_getattr)
    struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime_ns, deadline_ns, period_ns;
        uint32_t least, most;
    } attributes = { .size = sizeof(attributes) };
    if (!hw_allowed_slices()) return;
    if (syscall(SYS_sched_getattr, 0, &attributes, sizeof(attributes), 0) != 0 || attributes.policy != 0) return; /* SCHED_OTHER */
    attributes.runtime_ns = OWN_SLICE_NS;
    syscall(SYS_sched_setattr, 0, &attributes, 0);
#endif
}

static void *
run(void *arg)
{
    struct hw_runtime *rt = arg;
    be_prompt();
    pthread_mutex_lock(&rt->lock);
    rt->pulls = rt->pulls && hw_allowed_affinity(); /* a forked child may have locked itself up */
    while (!rt->ticker_must_end) {
        if (poll(rt)) continue;
        uint64_t now = hw_now_ns();
        uint64_t due_ns = hw_earlier_ns(rt->tick_ns, hw_scheduler_sample_at_ns(&rt->scheduler));
        if (now >= due_ns) {
            tick(rt, now);
            continue;
        }
        if (now >= rt->watch_ns) {
            hw_feed_watch(rt, now);
            continue;
        }
        uint64_t pace_ns = rt->scheduler.policy.kind == HW_OBSERVE ? HW_SAMPLE_NS : rt->scheduler.policy.retry_ns;
        uint64_t paced_ns = now < rt->contended_ns + AWAKE_FOR_NS ? now + pace_ns : HW_NEVER;
        rt->ticker_wake_ns = hw_earlier_ns(paced_ns, hw_earlier_ns(due_ns, rt->watch_ns));
        hw_cond_wait_until(&rt->ticker_cond, &rt->lock, rt->ticker_wake_ns);
        rt->ticker_wake_ns = 0; /* awake: nobody need wake it */
    }
    pthread_mutex_unlock(&rt->lock);
    return NULL;
}

void
hw_ticker_awake_by(struct hw_runtime *rt, uint64_t at_ns)
{
    if (rt->ticker_runs && at_ns < rt->ticker_wake_ns) rt->ticker_called = true;
}

void
hw_ticker_at(struct hw_runtime *rt, uint64_t at_ns)
{
    rt->tick_ns = at_ns;
    hw_ticker_awake_by(rt, at_ns);
}

void
hw_ticker_watch(struct hw_runtime *rt, uint64_t at_ns)
{
    rt->watch_ns = at_ns;
    hw_ticker_awake_by(rt, at_ns);
}

void
hw_ticker_poll(struct hw_runtime *rt)
{
    rt->poll_due = true;
    hw_ticker_awake_by(rt, 0);
}

static int
create(struct hw_runtime *rt)
{
#ifdef HW_TEST
    if (rt->no_ticker) return EAGAIN;
#endif
    return pthread_create(&rt->ticker, NULL, run, rt);
}

void
hw_ticker_ensure(struct hw_runtime *rt)
{
    pthread_mutex_lock(&rt->lock);
    bool wanted = atomic_load(&rt->active) && !rt->ticker_runs && rt->scheduler.living >= 2;
    if (wanted) {
        rt->ticker_runs = true;
        rt->ticker_must_end = false;
        rt->ticker_wake_ns = 0;
    }
    pthread_mutex_unlock(&rt->lock);
    if (!wanted) return;

    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = create(rt);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed) {
        pthread_mutex_lock(&rt->lock);
        rt->ticker_runs = false;
        pthread_mutex_unlock(&rt->lock);
    }
}

/* For a parked thread, which looks after itself every 50 ms: that often the turns of those that compute end, too. It triggers no job, as that
 * would be its own: who is not sent a signal gives way at the VM's tick. Starting the ticker is for who has the GVL. */
void
hw_ticker_stand_in(struct hw_runtime *rt)
{
    tick(rt, hw_now_ns());
}

void
hw_ticker_end(struct hw_runtime *rt)
{
    pthread_mutex_lock(&rt->lock);
    bool runs = rt->ticker_runs;
    rt->ticker_must_end = true;
    if (runs) pthread_cond_signal(&rt->ticker_cond);
    pthread_mutex_unlock(&rt->lock);
    if (!runs) return;
    pthread_join(rt->ticker, NULL);
    pthread_mutex_lock(&rt->lock);
    rt->ticker_runs = false;
    rt->tick_ns = rt->ticker_wake_ns = HW_NEVER;
    rt->poll_due = rt->sample_due = false;
    pthread_mutex_unlock(&rt->lock);
}
