/* Watches an event loop for turns that take too long.
 *
 * The loop says when a turn begins and when it waits: a store and a load each. A native thread looks at that no more often than
 * the threshold, and not at all while the loop waits. Of a turn that is too long it asks, every millisecond until somebody
 * answers or the turn is over, to have the stack looked at.
 *
 * began_ns and dozing are ordered like Dekker's flags: the loop stores began_ns, then looks at dozing; the watcher stores
 * dozing, then looks at began_ns. So one of them sees the other. */
#ifndef HW_LOOP_WATCH_H
#define HW_LOOP_WATCH_H

#include "clock.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

struct hw_loop_watch {
    uint64_t threshold_ns;
    void (*ask)(void);             /* called on the watcher's thread, without a lock */
    _Atomic uint64_t began_ns;     /* of the turn under way; 0: the loop waits */
    _Atomic uint64_t answered_ns;  /* began_ns of the turn whose stack is known */
    _Atomic bool dozing;           /* the watcher waits for a turn to begin */
    pthread_mutex_t lock;
    pthread_cond_t cond;
    pthread_t watcher;
    pid_t pid;                     /* in a forked child there is no watcher */
    bool runs, must_end;
};

bool hw_loop_watch_start(struct hw_loop_watch *watch, uint64_t threshold_ns, void (*ask)(void));
void hw_loop_watch_end(struct hw_loop_watch *watch); /* as often as you like */
void hw_loop_watch_rouse(struct hw_loop_watch *watch);

/* The turn before ends too. Returns how long it was; 0 when the loop waited. */
static inline uint64_t
hw_loop_watch_turn(struct hw_loop_watch *watch, uint64_t now)
{
    uint64_t began = atomic_load_explicit(&watch->began_ns, memory_order_relaxed);
    atomic_store(&watch->began_ns, now);
    if (atomic_load(&watch->dozing)) hw_loop_watch_rouse(watch);
    return began ? now - began : 0;
}

static inline bool
hw_loop_watch_turns(const struct hw_loop_watch *watch)
{
    return atomic_load_explicit(&watch->began_ns, memory_order_relaxed) != 0;
}

static inline uint64_t
hw_loop_watch_idle(struct hw_loop_watch *watch, uint64_t now)
{
    uint64_t began = atomic_load_explicit(&watch->began_ns, memory_order_relaxed);
    if (began == 0) return 0;
    atomic_store_explicit(&watch->began_ns, 0, memory_order_relaxed);
    return now - began;
}

/* Whether the turn under way is too long and its stack unknown; if so it counts as known from now on. */
static inline bool
hw_loop_watch_answer(struct hw_loop_watch *watch, uint64_t now)
{
    uint64_t began = atomic_load(&watch->began_ns);
    if (began == 0 || now - began < watch->threshold_ns || atomic_load(&watch->answered_ns) == began) return false;
    atomic_store(&watch->answered_ns, began);
    return true;
}

#endif
