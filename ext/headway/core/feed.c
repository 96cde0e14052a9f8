#include "feed.h"

#include "teller.h"

#include <stdlib.h>

/* 0: nobody tells. A native thread that others share has a clock for all of them. */
static uint64_t
own_cpu_ns(const struct hw_recorder *r)
{
    return r->teller && r->teller->many_to_many ? 0 : hw_cpu_ns();
}

/* On the thread itself, as the next. */
static void
record_cpu(struct hw_recorder *r, struct hw_thread *thread, uint64_t now)
{
    if (!hw_cpu_reading_due(&thread->cpu_reading, hw_elapsed_ns(thread->away_ns, now))) return;
    uint64_t cpu_ns = own_cpu_ns(r);
    if (cpu_ns == 0) return;
    hw_cpu_reading_take(&thread->cpu_reading, cpu_ns, thread->account.time_ns[HW_RUNNING]);
    hw_record(r, HW_TRACE_CPU, thread->number, (uint32_t)(cpu_ns / HW_NS_PER_US) | 1, now);
}

/* Else nothing could be told of a thread's first hold. */
static void
begin_cpu_reading(const struct hw_recorder *r, struct hw_thread *thread)
{
    if (thread->cpu_reading.last_cpu_ns) return;
    hw_cpu_reading_take_hold(&thread->cpu_reading, own_cpu_ns(r), thread->account.time_ns[HW_RUNNING]);
}

static void
record_off_cpu(struct hw_recorder *r, struct hw_thread *thread, uint64_t now)
{
    uint64_t running_ns = thread->account.time_ns[HW_RUNNING];
    if (!hw_cpu_reading_hold_due(&thread->cpu_reading, running_ns)) return;
    uint64_t cpu_ns = own_cpu_ns(r);
    if (cpu_ns == 0) return;
    uint64_t off_us = hw_cpu_reading_take_hold(&thread->cpu_reading, cpu_ns, running_ns) / HW_NS_PER_US;
    if (off_us) hw_record(r, HW_TRACE_OFF_CPU, thread->number, off_us < UINT32_MAX ? (uint32_t)off_us : UINT32_MAX, now);
}

static enum hw_trace_kind
kind_of(const struct hw_thread *thread, enum hw_event event, bool preempted)
{
    switch (event) {
      case HW_EVENT_READY: return preempted ? HW_TRACE_PREEMPTED : HW_TRACE_READY;
      case HW_EVENT_RESUMED: return HW_TRACE_RESUMED;
      case HW_EVENT_SUSPENDED: return thread->state == HW_READY ? HW_TRACE_PREEMPTED : HW_TRACE_SUSPENDED;
      case HW_EVENT_EXITED: break;
    }
    return HW_TRACE_EXITED;
}

/* The ticker looks for waits that last; those that are over before it does are seen here. One look is ahead at a time, so a thread
 * that becomes ready mostly finds it arranged. */
static void
mind_alarm(struct hw_runtime *rt, struct hw_thread *thread, enum hw_event event, uint64_t waited_ns)
{
    uint64_t alarm_ns = rt->recorder.set.alarm_ns;
    if (thread->state == HW_READY) {
        if (rt->watch_ns == HW_NEVER) hw_ticker_watch(rt, thread->since_ns + alarm_ns);
        return;
    }
    if (event == HW_EVENT_RESUMED && waited_ns >= alarm_ns && !thread->alarmed) hw_recorder_sound_alarm(&rt->recorder);
    thread->alarmed = false;
}

void
hw_feed_watch(struct hw_runtime *rt, uint64_t now)
{
    struct hw_recorder *r = &rt->recorder;
    rt->watch_ns = HW_NEVER;
    if (!hw_recording(r) || r->set.alarm_ns == 0) return;
    uint64_t alarm_ns = r->set.alarm_ns, oldest_ns = HW_NEVER;
    bool alarm = false;
    for (struct hw_thread *thread = rt->scheduler.threads; thread; thread = thread->next) {
        if (thread->state != HW_READY || thread->alarmed) continue;
        if (now >= thread->since_ns + alarm_ns) alarm = thread->alarmed = true;
        else if (thread->since_ns < oldest_ns) oldest_ns = thread->since_ns;
    }
    if (alarm) hw_recorder_sound_alarm(r);
    if (oldest_ns != HW_NEVER) hw_ticker_watch(rt, oldest_ns + alarm_ns);
}

/* Whoever blocks for less stalls nobody's request; the wait for the GVL that follows, as after the VM's own time slice, is no block.
 * Threads that share a native one are left alone: a job may be another's. */
#define LONG_AWAY_NS (10 * HW_NS_PER_MS)

static bool
long_away(const struct hw_recorder *r, const struct hw_thread *thread, uint64_t waited_ns, uint64_t now)
{
    if (thread->away_ns == 0 || (r->teller && r->teller->many_to_many)) return false;
    return hw_elapsed_ns(thread->away_ns + waited_ns, now) >= LONG_AWAY_NS;
}

bool
hw_feed_event(struct hw_runtime *rt, struct hw_thread *thread, enum hw_event event, bool preempted, uint64_t waited_ns,
              uint64_t now)
{
    struct hw_recorder *r = &rt->recorder;
    if (event == HW_EVENT_RESUMED && thread->away_ns) record_cpu(r, thread, now);
    if (event == HW_EVENT_RESUMED) begin_cpu_reading(r, thread);
    if (event == HW_EVENT_SUSPENDED) record_off_cpu(r, thread, now);
    hw_record(r, kind_of(thread, event, preempted), thread->number, 0, now);
    if (event == HW_EVENT_SUSPENDED) thread->away_ns = thread->state == HW_SUSPENDED ? now : 0;
    if (r->set.alarm_ns > 0) mind_alarm(rt, thread, event, waited_ns);
    return thread->was_long_away = event == HW_EVENT_RESUMED && long_away(r, thread, waited_ns, now);
}

void
hw_feed_aside(struct hw_runtime *rt, enum hw_trace_kind kind, uint32_t thread, uint32_t value, uint64_t now)
{
    hw_feed_span(rt, kind, thread, value, 0, now);
}

void
hw_feed_span(struct hw_runtime *rt, enum hw_trace_kind kind, uint32_t thread, uint32_t name, uint8_t detail, uint64_t now)
{
    if (!hw_recording(&rt->recorder)) return;
    pthread_mutex_lock(&rt->lock);
    hw_record_detailed(&rt->recorder, kind, thread, name, detail, now);
    pthread_mutex_unlock(&rt->lock);
}

void
hw_feed_started(struct hw_runtime *rt, const struct hw_thread *thread, uint64_t now)
{
    hw_record(&rt->recorder, HW_TRACE_STARTED, thread->number, 0, now);
}

void
hw_feed_known(struct hw_runtime *rt, uint64_t now)
{
    for (const struct hw_thread *thread = rt->scheduler.threads; thread; thread = thread->next) {
        hw_record(&rt->recorder, HW_TRACE_KNOWN, thread->number, thread->state, now);
    }
}

/* Threads that came in between find no room, if there are many: their states are told by their events. */
#define ROOM_TO_GROW 64

void
hw_feed_instant(struct hw_runtime *rt, struct hw_dump *dump)
{
    pthread_mutex_lock(&rt->lock);
    size_t room = rt->scheduler.living + ROOM_TO_GROW;
    pthread_mutex_unlock(&rt->lock);
    struct hw_known *known = malloc(room * sizeof(*known));
    if (known == NULL) room = 0;
    size_t count = 0;

    pthread_mutex_lock(&rt->lock);
    dump->now = hw_now_ns();
    for (const struct hw_thread *thread = rt->scheduler.threads; thread && count < room; thread = thread->next) {
        known[count++] = (struct hw_known){ .since_ns = thread->since_ns, .thread = thread->number, .state = thread->state };
    }
    hw_ring_walk_start(&rt->recorder.ring, &dump->walk);
    pthread_mutex_unlock(&rt->lock);
    dump->known = known;
    dump->known_count = count;
}

int
hw_feed_start(struct hw_runtime *rt, const struct hw_recording *set)
{
    int error = hw_recorder_start(&rt->recorder, set);
    if (error) return error;
    pthread_mutex_lock(&rt->lock);
    uint64_t now = hw_now_ns();
    hw_recorder_go(&rt->recorder);
    hw_feed_known(rt, now);
    for (struct hw_thread *thread = rt->scheduler.threads; thread; thread = thread->next) {
        thread->alarmed = false;
        thread->cpu_reading = (struct hw_cpu_reading){ 0 };
    }
    hw_feed_watch(rt, now);
    hw_runtime_unlock(rt);
    return 0;
}

void
hw_feed_close(struct hw_runtime *rt)
{
    pthread_mutex_lock(&rt->lock);
    hw_feed_known(rt, hw_now_ns());
    atomic_store(&rt->recorder.recording, false);
    pthread_mutex_unlock(&rt->lock);
}
