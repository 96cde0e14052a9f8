/* The analysis, slow and obvious: every step of time is handed out to everybody, one event after the other. */
#ifndef HW_TEST_RECOUNT_H
#define HW_TEST_RECOUNT_H

#include "event.h"
#include "thread.h"

#include <string.h>

#define MOST 12

struct recount {
    uint64_t now, start[MOST], end[MOST], time[MOST][HW_STATE_COUNT], since[MOST], sampled[MOST], waits[MOST], wait_sum[MOST];
    uint64_t caused[MOST + 1][MOST], idle, blame, gc; /* caused[0]: by nobody */
    uint64_t boot_time[MOST][HW_STATE_COUNT], caused_at_boot[MOST + 1][MOST];
    bool there[MOST], started[MOST], exited[MOST], in_gc, booted;
    enum hw_state state[MOST];
    uint32_t holder;
};

static inline void
recount_pass_time(struct recount *r, uint64_t now)
{
    uint64_t step = now - r->now;
    for (uint32_t i = 1; i < MOST; i++) {
        if (!r->there[i] || r->exited[i]) continue;
        r->time[i][r->state[i]] += step;
        r->end[i] = now;
        if (r->state[i] == HW_READY) r->caused[r->holder][i] += step;
    }
    if (!r->holder) r->idle += step;
    if (r->in_gc) r->gc += step;
    r->now = now;
}

static inline void
recount_set(struct recount *r, uint32_t i, enum hw_state state)
{
    if (r->exited[i] || r->state[i] == state) return;
    if (r->state[i] == HW_READY && state == HW_RUNNING) {
        r->waits[i]++;
        r->wait_sum[i] += r->now - r->since[i];
    }
    if (r->holder == i) r->holder = 0;
    if (state == HW_RUNNING && r->holder) recount_set(r, r->holder, HW_SUSPENDED);
    if (state == HW_RUNNING) r->holder = i;
    r->state[i] = state;
    r->since[i] = r->now;
}

static inline void
recount_blame(struct recount *r, uint32_t holder)
{
    for (uint32_t i = 1; i < MOST; i++) {
        if (r->holder != holder || !r->there[i] || r->exited[i] || r->state[i] != HW_READY) continue;
        uint64_t from = r->since[i];
        if (r->since[holder] > from) from = r->since[holder];
        if (r->sampled[holder] > from) from = r->sampled[holder];
        r->blame += r->now - from;
    }
    r->sampled[holder] = r->now;
}

static inline void
recount_request(struct recount *r, uint32_t i)
{
    if (r->booted || r->exited[i]) return;
    r->booted = true;
    uint32_t were_there = 0;
    for (uint32_t j = 1; j < MOST; j++) were_there += r->there[j] && !r->started[j];
    if (!r->started[i] && were_there > 1) return;
    memcpy(r->boot_time, r->time, sizeof(r->time));
    memcpy(r->caused_at_boot, r->caused, sizeof(r->caused));
    r->sampled[r->holder] = r->now;
    r->blame = 0;
}

static inline void
recount_event(struct recount *r, const struct hw_trace_event *event)
{
    uint32_t i = event->thread;
    recount_pass_time(r, event->time_ns);
    if (event->kind == HW_TRACE_GC_START || event->kind == HW_TRACE_GC_END) {
        r->in_gc = event->kind == HW_TRACE_GC_START;
        return;
    }
    if (!r->there[i]) {
        r->there[i] = true;
        r->start[i] = r->end[i] = r->since[i] = r->now;
        if (event->kind == HW_TRACE_BLAME || event->kind == HW_TRACE_MARK) recount_set(r, i, HW_RUNNING);
    }
    switch (event->kind) {
      case HW_TRACE_STARTED: r->started[i] = true; break;
      case HW_TRACE_READY: case HW_TRACE_PREEMPTED: recount_set(r, i, HW_READY); break;
      case HW_TRACE_RESUMED: recount_set(r, i, HW_RUNNING); break;
      case HW_TRACE_SUSPENDED: recount_set(r, i, HW_SUSPENDED); break;
      case HW_TRACE_KNOWN: recount_set(r, i, (enum hw_state)event->value); break;
      case HW_TRACE_BLAME: recount_blame(r, i); break;
      case HW_TRACE_MARK_BEGIN: recount_request(r, i); break;
      case HW_TRACE_EXITED: recount_set(r, i, HW_SUSPENDED); r->exited[i] = true; break;
    }
}

#endif
