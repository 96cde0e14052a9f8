#include "runtime.h"

#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* How often a parked thread looks for itself whether a wake-up went missing. */
#define PARK_CHECK_NS (50 * HW_NS_PER_MS)
/* A wake-up may be under way for so long, on a machine that is busy otherwise, before it counts as lost. */
#define WAKE_UP_NS (20 * HW_NS_PER_MS)
/* An interactive thread's turn is often over in less time than it takes to sleep and be woken. */
#define SPIN_NS (25 * HW_NS_PER_US)

/* -- condition variables on the monotonic clock ------------------------------------------------------------------------- */

void
hw_cond_init(pthread_cond_t *cond)
{
#ifdef HAVE_PTHREAD_CONDATTR_SETCLOCK
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attr);
    pthread_condattr_destroy(&attr);
#else
    pthread_cond_init(cond, NULL);
#endif
}

static struct timespec
timespec_of(uint64_t ns)
{
    return (struct timespec){ .tv_sec = (time_t)(ns / HW_NS_PER_S), .tv_nsec = (long)(ns % HW_NS_PER_S) };
}

void
hw_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t until_ns)
{
    if (until_ns == HW_NEVER) {
        pthread_cond_wait(cond, lock);
        return;
    }
#ifdef HAVE_PTHREAD_CONDATTR_SETCLOCK
    struct timespec until = timespec_of(until_ns);
    pthread_cond_timedwait(cond, lock, &until);
#else /* macOS has no monotonic condition variables, but waits for a length of time */
    uint64_t now = hw_now_ns();
    struct timespec length = timespec_of(until_ns > now ? until_ns - now : 0);
    pthread_cond_timedwait_relative_np(cond, lock, &length);
#endif
}

/* -- orders ------------------------------------------------------------------------------------------------------------- */

static void
preempt(struct hw_runtime *rt, struct hw_thread *holder)
{
    if (rt->preempt == HW_SIGNAL && !rt->signal_lost) {
        if (hw_signal_installed()) {
            pthread_kill(holder->pthread, hw_signal_number());
            return;
        }
        rt->signal_lost = true;
    }
    hw_ticker_poll(rt);
}

/* Lock held. What may be done after it is released is left to finish(). */
static void
carry_out(struct hw_runtime *rt, struct hw_orders *orders, uint64_t now)
{
    atomic_store_explicit(&rt->ready, rt->scheduler.counts[HW_IS_READY], memory_order_relaxed);
    if (hw_scheduler_contended(&rt->scheduler)) rt->contended_ns = now;
    if (orders->preempt && !orders->self) preempt(rt, orders->preempt);
    if (orders->tick_ns < rt->tick_ns) hw_ticker_at(rt, orders->tick_ns);
}

static void
finish(struct hw_runtime *rt, const struct hw_orders *orders)
{
    if (orders->self) rt->trigger();
    if (!orders->wake) return;
#ifdef HW_TEST
    if (rt->drop_wakes > 0) {
        rt->drop_wakes--;
        return;
    }
#endif
    pthread_cond_signal(&orders->wake->parked_cond);
}

/* Lock held; the thread is off the scheduler's list. */
static void
retire(struct hw_runtime *rt, struct hw_thread *thread)
{
    if (thread->ended) {
        hw_account_merge(&thread->ended->account, &thread->account);
        thread->ended->threads++;
    }
    thread->next = rt->spare;
    rt->spare = thread;
}

void
hw_runtime_event(struct hw_runtime *rt, struct hw_thread *thread, enum hw_event event)
{
    struct hw_orders orders = { .tick_ns = HW_NEVER };
    struct hw_scheduler *scheduler = &rt->scheduler;

    pthread_mutex_lock(&rt->lock);
    uint64_t now = hw_now_ns();
    if (thread->link && atomic_load_explicit(&rt->active, memory_order_relaxed)) {
        switch (event) {
          case HW_EVENT_READY:
            hw_scheduler_ready(scheduler, thread, now, &orders);
            break;
          case HW_EVENT_RESUMED:
            thread->pthread = pthread_self();
            hw_scheduler_resumed(scheduler, thread, now, &orders);
            break;
          case HW_EVENT_SUSPENDED:
            hw_scheduler_suspended(scheduler, thread, now, &orders);
            break;
          case HW_EVENT_EXITED:
            hw_scheduler_remove(scheduler, thread, now, &orders);
            retire(rt, thread);
            break;
        }
        carry_out(rt, &orders, now);
    }
    pthread_mutex_unlock(&rt->lock);
    finish(rt, &orders);
}

/* -- parking ------------------------------------------------------------------------------------------------------------ */

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

static void
spin(struct hw_thread *thread, uint64_t end_ns)
{
    do {
        for (int i = 0; i < 20; i++) {
            if (called_back(thread)) return;
            relax();
        }
    } while (hw_now_ns() < end_ns);
}

static uint64_t
earliest(uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t earlier = a < b ? a : b;
    return earlier < c ? earlier : c;
}

void
hw_runtime_park(struct hw_runtime *rt, struct hw_thread *thread, uint64_t until_ns)
{
    pthread_mutex_lock(&rt->lock);
    thread->parked = true;
    atomic_store_explicit(&thread->open, false, memory_order_relaxed);
    rt->parks++;

    /* Only the admitted thread spins: its turn comes as soon as the interactive ones have had theirs. */
    bool spins = rt->spin_ns > 0 && rt->scheduler.admitted == thread;
    bool timed_out = false;
    for (;;) {
        uint64_t now = hw_now_ns();
        if (!atomic_load_explicit(&rt->active, memory_order_relaxed) ||
            atomic_load_explicit(&thread->interrupted, memory_order_acquire) || now >= until_ns ||
            thread->state != HW_READY) break;
        if (hw_scheduler_gate_open(&rt->scheduler, thread, now)) {
            bool starved = now >= hw_scheduler_starves_at_ns(&rt->scheduler, thread);
            bool woken = atomic_load_explicit(&thread->open, memory_order_relaxed) && now < thread->opened_ns + WAKE_UP_NS;
            if (timed_out && !starved && !woken) rt->park_timeouts++;
            break;
        }
        if (timed_out && hw_scheduler_repair(&rt->scheduler, thread, now)) {
            rt->park_timeouts++;
            continue;
        }
        /* The gate may have closed again between the wake-up and now. */
        atomic_store_explicit(&thread->open, false, memory_order_relaxed);
        uint64_t lingers_until_ns = hw_scheduler_lingers_until_ns(&rt->scheduler, thread);
        if (spins || lingers_until_ns != HW_NEVER) {
            pthread_mutex_unlock(&rt->lock);
            spin(thread, lingers_until_ns != HW_NEVER ? lingers_until_ns : now + rt->spin_ns);
            pthread_mutex_lock(&rt->lock);
            spins = false;
        }
        else {
            uint64_t wake_ns = earliest(until_ns, now + PARK_CHECK_NS, hw_scheduler_starves_at_ns(&rt->scheduler, thread));
            hw_cond_wait_until(&thread->parked_cond, &rt->lock, wake_ns);
            timed_out = hw_now_ns() >= wake_ns;
        }
    }
    thread->parked = false;
    pthread_mutex_unlock(&rt->lock);
}

void
hw_runtime_set_class(struct hw_runtime *rt, struct hw_thread *thread, enum hw_class set_class)
{
    struct hw_orders orders = { .tick_ns = HW_NEVER };
    pthread_mutex_lock(&rt->lock);
    uint64_t now = hw_now_ns();
    thread->set_class = set_class;
    if (thread->link && atomic_load_explicit(&rt->active, memory_order_relaxed)) {
        hw_scheduler_set_class(&rt->scheduler, thread, set_class, now);
        hw_scheduler_tick(&rt->scheduler, now, &orders);
        carry_out(rt, &orders, now);
    }
    pthread_mutex_unlock(&rt->lock);
    finish(rt, &orders);
}

void
hw_runtime_unpark(struct hw_runtime *rt, struct hw_thread *thread)
{
    pthread_mutex_lock(&rt->lock);
    atomic_store_explicit(&thread->interrupted, true, memory_order_release);
    pthread_cond_signal(&thread->parked_cond);
    pthread_mutex_unlock(&rt->lock);
}

/* Lock held. */
static void
unpark_all(struct hw_runtime *rt)
{
    for (struct hw_thread *thread = rt->scheduler.threads; thread; thread = thread->next) {
        atomic_store_explicit(&thread->open, true, memory_order_release);
        pthread_cond_signal(&thread->parked_cond);
    }
}

/* -- records ------------------------------------------------------------------------------------------------------------ */

static struct hw_thread *
take_record(struct hw_runtime *rt)
{
    pthread_mutex_lock(&rt->lock);
    struct hw_thread *thread = rt->spare;
    if (thread) rt->spare = thread->next;
    pthread_mutex_unlock(&rt->lock);
    if (thread) {
        memset(thread, 0, offsetof(struct hw_thread, parked_cond));
        hw_account_reset(&thread->account);
        return thread;
    }
    thread = calloc(1, sizeof(*thread));
    if (thread == NULL) return NULL;
    if (!hw_account_init(&thread->account, 2)) {
        hw_account_free(&thread->account);
        free(thread);
        return NULL;
    }
    hw_cond_init(&thread->parked_cond);
    return thread;
}

struct hw_thread *
hw_runtime_add(struct hw_runtime *rt, enum hw_state state, bool fresh)
{
    struct hw_thread *thread = take_record(rt);
    if (thread == NULL) return NULL;
    thread->fresh = fresh;
    if (state == HW_RUNNING) thread->pthread = pthread_self();
    pthread_mutex_lock(&rt->lock);
    hw_scheduler_add(&rt->scheduler, thread, state, hw_now_ns());
    pthread_mutex_unlock(&rt->lock);
    return thread;
}

void
hw_runtime_discard(struct hw_runtime *rt, struct hw_thread *thread)
{
    struct hw_orders orders = { .tick_ns = HW_NEVER };
    pthread_mutex_lock(&rt->lock);
    uint64_t now = hw_now_ns();
    thread->ended = NULL;
    hw_scheduler_remove(&rt->scheduler, thread, now, &orders);
    retire(rt, thread);
    carry_out(rt, &orders, now);
    pthread_mutex_unlock(&rt->lock);
    finish(rt, &orders);
}

void
hw_runtime_revive(struct hw_runtime *rt, struct hw_thread *thread, enum hw_state state)
{
    pthread_mutex_lock(&rt->lock);
    if (state == HW_RUNNING) thread->pthread = pthread_self();
    hw_scheduler_revive(&rt->scheduler, thread, state, hw_now_ns());
    pthread_mutex_unlock(&rt->lock);
}

void
hw_runtime_sweep(struct hw_runtime *rt)
{
    struct hw_orders ignored;
    struct hw_thread *next;
    pthread_mutex_lock(&rt->lock);
    for (struct hw_thread *thread = rt->scheduler.threads; thread; thread = next) {
        next = thread->next;
        if (thread->seen) {
            thread->seen = false;
            continue;
        }
        thread->ended = NULL;
        hw_scheduler_remove(&rt->scheduler, thread, hw_now_ns(), &ignored);
        retire(rt, thread);
    }
    pthread_mutex_unlock(&rt->lock);
}

#define ENDED_NAMES 128

struct hw_ended *
hw_runtime_ended(struct hw_runtime *rt, const char *name_start, size_t length)
{
    char name[sizeof(((struct hw_ended *)0)->name)] = "";
    memcpy(name, name_start, length < sizeof(name) - 1 ? length : sizeof(name) - 1);
    unsigned names = 0;
    struct hw_ended *found = NULL, *last = NULL;
    pthread_mutex_lock(&rt->lock);
    for (struct hw_ended *ended = rt->ended; ended && !found; ended = ended->next) {
        names++;
        last = ended;
        if (strcmp(ended->name, name) == 0) found = ended;
    }
    pthread_mutex_unlock(&rt->lock);
    if (found) return found;
    if (names >= ENDED_NAMES) return last;

    struct hw_ended *ended = calloc(1, sizeof(*ended));
    if (ended == NULL) return NULL;
    if (!hw_account_init(&ended->account, 2)) {
        hw_account_free(&ended->account);
        free(ended);
        return NULL;
    }
    if (names == ENDED_NAMES - 1) strcpy(ended->name, "(others)");
    else memcpy(ended->name, name, sizeof(name));
    pthread_mutex_lock(&rt->lock);
    if (last) last->next = ended;
    else rt->ended = ended;
    pthread_mutex_unlock(&rt->lock);
    return ended;
}

void
hw_runtime_reset_locked(struct hw_runtime *rt, uint64_t now)
{
    struct hw_scheduler *scheduler = &rt->scheduler;
    for (struct hw_thread *thread = scheduler->threads; thread; thread = thread->next) {
        hw_account_reset(&thread->account);
        thread->since_ns = now;
    }
    for (struct hw_ended *ended = rt->ended; ended; ended = ended->next) {
        hw_account_reset(&ended->account);
        ended->threads = 0;
    }
    hw_account_reset(&scheduler->account);
    scheduler->preemptions = scheduler->retries = 0;
    scheduler->just_suspended = NULL;
    rt->parks = rt->park_timeouts = 0;
    rt->started_ns = now;
}

void
hw_runtime_reset(struct hw_runtime *rt)
{
    pthread_mutex_lock(&rt->lock);
    hw_runtime_reset_locked(rt, hw_now_ns());
    pthread_mutex_unlock(&rt->lock);
}

/* -- life --------------------------------------------------------------------------------------------------------------- */

bool
hw_runtime_init(struct hw_runtime *rt, void (*trigger)(void))
{
    memset(rt, 0, sizeof(*rt));
    pthread_mutex_init(&rt->lock, NULL);
    hw_cond_init(&rt->ticker_cond);
    rt->trigger = trigger;
    rt->tick_ns = rt->ticker_wake_ns = HW_NEVER;
    rt->spin_ns = sysconf(_SC_NPROCESSORS_ONLN) > 1 ? SPIN_NS : 0;
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

/* Threads are added by the caller, before or after. */
bool
hw_runtime_start(struct hw_runtime *rt, const struct hw_policy *policy, enum hw_preempt preempt)
{
    if (preempt == HW_SIGNAL && policy->kind != HW_OBSERVE && !hw_signal_install(rt->trigger)) return false;
    pthread_mutex_lock(&rt->lock);
    rt->signal_lost = false;
    rt->started_ns = hw_now_ns();
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
    unpark_all(rt);
    hw_ticker_at(rt, hw_now_ns());
    pthread_mutex_unlock(&rt->lock);
    if (!signals) hw_signal_restore();
    hw_ticker_ensure(rt);
}

void
hw_runtime_stop(struct hw_runtime *rt)
{
    pthread_mutex_lock(&rt->lock);
    atomic_store(&rt->active, false);
    unpark_all(rt);
    pthread_mutex_unlock(&rt->lock);
    hw_ticker_end(rt);
    hw_signal_restore();
}
