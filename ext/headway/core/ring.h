/* The ring: where events are recorded. Slots of 24 bytes, all allocated and touched beforehand; one producer at a time, one consumer
 * beside it. Neither waits for the other, the producer allocates nothing and makes no system call: it takes the next number, fills the
 * slot of that number and stamps it, with plain stores.
 *
 * Mode stream: the consumer takes every event once; when it falls a whole ring behind, new events are dropped and counted.
 * Mode flight: the newest events overwrite the oldest; a hw_ring_walk reads what is there while the producer goes on.
 *
 * A slot is three atomic words, so that nothing is ever read half written:
 *   word 0  time_ns
 *   word 1  thread, value << 32
 *   word 2  stamp, kind << 32, detail << 40;  stamp: 0 never used, else the lap's number + 1, BUSY while it is being filled
 *
 * Invariants
 *   1. In mode stream tail <= head <= tail + slots: a slot that is filled has been taken by the consumer before.
 *   2. In mode flight words 0 and 1 are written between two stamps, BUSY and that of the lap, with release order, and read with
 *      acquire order between two looks at word 2: a reader that saw one of them change sees the stamp change.
 *   3. recorded + dropped = events offered. */
#ifndef HW_RING_H
#define HW_RING_H

#include "cache_line.h"
#include "event.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hw_slot {
    _Atomic uint64_t words[3];
};

struct hw_ring {
    struct hw_slot *slots;
    uint64_t mask;     /* number of slots - 1, a power of two */
    unsigned bits;
    bool flight;
    uint64_t floor;    /* flight: nothing before this number is shown */
    _Alignas(HW_CACHE_LINE) _Atomic uint64_t head; /* the next number */
    _Atomic uint64_t dropped;
    _Alignas(HW_CACHE_LINE) _Atomic uint64_t tail; /* stream: the next number the consumer takes */
};

#define HW_RING_MAX_SLOTS (UINT64_C(1) << 28)

/* Slots are rounded up to a power of two. False when memory is short, or for 0 or more than HW_RING_MAX_SLOTS. */
bool hw_ring_init(struct hw_ring *ring, uint64_t slots, bool flight);
void hw_ring_free(struct hw_ring *ring);

/* By one thread at a time. False: dropped. */
bool hw_ring_push(struct hw_ring *ring, const struct hw_trace_event *event);

/* Mode stream, the consumer: up to `count` events in the order they were claimed; 0 when there is none. */
size_t hw_ring_take(struct hw_ring *ring, struct hw_trace_event *events, size_t count);

/* Mode flight, one reader at a time: a walk over what is there now, oldest first. Events overwritten meanwhile are left out. */
struct hw_ring_walk {
    uint64_t next, end;
    uint64_t missed; /* overwritten, or not finished, before they could be read */
    uint64_t older;  /* of these, those before the first that was read: without them it begins later, and has no gap */
    bool begun;      /* one was read */
};
void hw_ring_walk_start(const struct hw_ring *ring, struct hw_ring_walk *walk);
size_t hw_ring_walk_next(struct hw_ring *ring, struct hw_ring_walk *walk, struct hw_trace_event *events, size_t count);

/* Forgets what is there, without touching the slots: for a forked child. Nobody pushes meanwhile. */
void hw_ring_forget(struct hw_ring *ring);

static inline uint64_t
hw_ring_slots(const struct hw_ring *ring)
{
    return ring->mask + 1;
}

/* Events recorded since the start. */
static inline uint64_t
hw_ring_claimed(const struct hw_ring *ring)
{
    return atomic_load_explicit(&ring->head, memory_order_relaxed);
}

static inline uint64_t
hw_ring_dropped(const struct hw_ring *ring)
{
    return atomic_load_explicit(&ring->dropped, memory_order_relaxed);
}

#endif
