/* Records: one for each thread, and the accounts of those that ended. */
#include "feed.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* A thread that becomes ready on a native thread that doesn't know its record, as each does at first, is looked up: in a table, or all
 * others' records would be read. Lock held. */
static struct hw_thread **
place_of(struct hw_runtime *rt, uintptr_t owner)
{
    return &rt->owned[(uint64_t)owner * UINT64_C(0x9e3779b97f4a7c15) >> (64 - HW_OWNED_BITS)];
}

void
hw_record_disown(struct hw_runtime *rt, struct hw_thread *thread)
{
    if (thread->owner == 0) return;
    struct hw_thread **link = place_of(rt, thread->owner);
    while (*link != thread) link = &(*link)->owner_next;
    *link = thread->owner_next;
    thread->owner = 0;
}

void
hw_record_retire(struct hw_runtime *rt, struct hw_thread *thread)
{
    if (thread->ended) {
        hw_account_merge(&thread->ended->account, &thread->account);
        thread->ended->threads++;
        if (thread->waits.slot == HW_SLOT_OTHERS) thread->ended->untold++;
        else thread->ended->caused_ns += rt->scheduler.attribution.caused_ns[thread->waits.slot];
    }
    hw_record_disown(rt, thread); /* another thread may have its address next */
    thread->next = rt->spare;
    rt->spare = thread;
}

static struct hw_thread *
take_record(struct hw_runtime *rt)
{
    pthread_mutex_lock(&rt->lock);
    struct hw_thread *thread = rt->spare;
    if (thread) { /* under the lock: who writes an answer may still look at it, to find that it is another's */
        rt->spare = thread->next;
        memset(&thread->state, 0, offsetof(struct hw_thread, parked_cond) - offsetof(struct hw_thread, state));
        hw_account_reset(&thread->account);
    }
    pthread_mutex_unlock(&rt->lock);
    if (thread) return thread;
    void *memory;
    if (posix_memalign(&memory, HW_CACHE_LINE, sizeof(*thread)) != 0) return NULL;
    thread = memset(memory, 0, sizeof(*thread));
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
    uint64_t now = hw_now_ns();
    hw_scheduler_add(&rt->scheduler, thread, state, now);
    if (fresh && hw_recording(&rt->recorder)) hw_feed_started(rt, thread, now);
    pthread_mutex_unlock(&rt->lock);
    return thread;
}

void
hw_runtime_set_owner(struct hw_runtime *rt, struct hw_thread *thread, uintptr_t owner)
{
    pthread_mutex_lock(&rt->lock);
    hw_record_disown(rt, thread);
    struct hw_thread **place = place_of(rt, owner);
    thread->owner = owner;
    thread->owner_next = *place;
    *place = thread;
    pthread_mutex_unlock(&rt->lock);
}

struct hw_thread *
hw_runtime_find(struct hw_runtime *rt, uintptr_t owner)
{
    pthread_mutex_lock(&rt->lock);
    struct hw_thread *thread = *place_of(rt, owner);
    while (thread && thread->owner != owner) thread = thread->owner_next;
    pthread_mutex_unlock(&rt->lock);
    return thread;
}

/* Lock held. */
static void
discard(struct hw_runtime *rt, struct hw_thread *thread)
{
    if (thread->link == NULL) return; /* swept meanwhile: twice among the spare ones it would be two threads' */
    struct hw_orders orders = { .tick_ns = HW_NEVER };
    uint64_t now = hw_now_ns();
    thread->ended = NULL;
    hw_scheduler_remove(&rt->scheduler, thread, now, &orders);
    if (hw_recording(&rt->recorder)) hw_feed_event(rt, thread, HW_EVENT_EXITED, false, 0, now);
    hw_record_retire(rt, thread);
    if (!atomic_load_explicit(&rt->active, memory_order_relaxed)) return;
    if (orders.wake) hw_park_call(orders.wake);
    orders.wake = NULL;
    hw_runtime_carry_out(rt, &orders, now);
}

void
hw_runtime_discard(struct hw_runtime *rt, struct hw_thread *thread)
{
    pthread_mutex_lock(&rt->lock);
    discard(rt, thread);
    hw_runtime_unlock(rt);
}

void
hw_runtime_set_name(struct hw_runtime *rt, struct hw_thread *thread, const char *name, size_t length)
{
    size_t kept = length < sizeof(thread->name) - 1 ? length : sizeof(thread->name) - 1;
    pthread_mutex_lock(&rt->lock);
    memcpy(thread->name, name, kept);
    memset(thread->name + kept, 0, sizeof(thread->name) - kept);
    pthread_mutex_unlock(&rt->lock);
}

void
hw_runtime_set_ending(struct hw_runtime *rt, struct hw_thread *thread)
{
    pthread_mutex_lock(&rt->lock);
    thread->ending = true;
    pthread_mutex_unlock(&rt->lock);
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
hw_runtime_sweep(struct hw_runtime *rt, bool stillborn)
{
    struct hw_thread *next;
    pthread_mutex_lock(&rt->lock);
    for (struct hw_thread *thread = rt->scheduler.threads; thread; thread = next) {
        next = thread->next;
        if (!thread->seen && !(stillborn && thread->ractor_known)) discard(rt, thread);
        thread->seen = false;
    }
    hw_runtime_unlock(rt);
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

const char *const hw_work_labels[] = {
#define EACH(name, label) [HW_##name] = label,
    HW_WORK_KINDS_OF(EACH)
#undef EACH
};

void
hw_runtime_count_work(struct hw_runtime *rt, enum hw_work_kind kind, const uint64_t time_ns[HW_STATE_COUNT])
{
    struct hw_works *works = &rt->works[kind];
    pthread_mutex_lock(&rt->lock);
    for (int state = 0; state < HW_STATE_COUNT; state++) works->time_ns[state] += time_ns[state];
    hw_histogram_record(&works->wait, time_ns[HW_READY]);
    pthread_mutex_unlock(&rt->lock);
}

struct hw_figures
hw_runtime_works(struct hw_runtime *rt, enum hw_work_kind kind)
{
    struct hw_figures figures = { 0 };
    pthread_mutex_lock(&rt->lock);
    memcpy(figures.time_ns, rt->works[kind].time_ns, sizeof(figures.time_ns));
    figures.wait = hw_spread_of(&rt->works[kind].wait);
    pthread_mutex_unlock(&rt->lock);
    return figures;
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
        ended->threads = ended->caused_ns = ended->untold = 0;
    }
    hw_account_reset(&scheduler->account);
    hw_attribution_reset(&scheduler->attribution, scheduler->threads, now);
    scheduler->preemptions = scheduler->retries = scheduler->batch_ns = scheduler->batch_waits_ns = 0;
    scheduler->just_suspended = NULL;
    rt->parks = rt->park_timeouts = 0;
    for (int kind = 0; kind < HW_WORK_KINDS; kind++) {
        memset(rt->works[kind].time_ns, 0, sizeof(rt->works[kind].time_ns));
        hw_histogram_reset(&rt->works[kind].wait);
    }
    atomic_store_explicit(&rt->pulled, 0, memory_order_relaxed);
    rt->started_ns = now;
}

void
hw_runtime_reset(struct hw_runtime *rt)
{
    pthread_mutex_lock(&rt->lock);
    hw_runtime_reset_locked(rt, hw_now_ns());
    pthread_mutex_unlock(&rt->lock);
}
