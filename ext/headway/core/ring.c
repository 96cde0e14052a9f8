#include "ring.h"

#include <stdlib.h>
#include <string.h>

#define BUSY UINT32_MAX
#define STAMP(word) ((uint32_t)(word))

bool
hw_ring_init(struct hw_ring *ring, uint64_t slots, bool flight)
{
    memset(ring, 0, sizeof(*ring));
    if (slots == 0 || slots > HW_RING_MAX_SLOTS) return false;
    unsigned bits = 0;
    while ((UINT64_C(1) << bits) < slots) bits++;
    size_t size = sizeof(struct hw_slot) << bits;
    void *memory;
    if (posix_memalign(&memory, HW_CACHE_LINE, size) != 0) return false;
    memset(memory, 0, size); /* every page is there before the first event is */
    ring->slots = memory;
    ring->mask = (UINT64_C(1) << bits) - 1;
    ring->bits = bits;
    ring->flight = flight;
    return true;
}

void
hw_ring_free(struct hw_ring *ring)
{
    free(ring->slots);
    memset(ring, 0, sizeof(*ring));
}

static uint32_t
stamp_of(const struct hw_ring *ring, uint64_t number)
{
    return (uint32_t)((number >> ring->bits) + 1) & (BUSY >> 1);
}

bool
hw_ring_push(struct hw_ring *ring, const struct hw_trace_event *event)
{
    uint64_t number = atomic_load_explicit(&ring->head, memory_order_relaxed);
    struct hw_slot *slot = &ring->slots[number & ring->mask];
    if (ring->flight) {
        atomic_store_explicit(&slot->words[2], BUSY, memory_order_relaxed);
    }
    else if (number > ring->mask + atomic_load_explicit(&ring->tail, memory_order_acquire)) {
        atomic_store_explicit(&ring->dropped, hw_ring_dropped(ring) + 1, memory_order_relaxed);
        return false;
    }
    atomic_store_explicit(&ring->head, number + 1, memory_order_relaxed);
    atomic_store_explicit(&slot->words[0], event->time_ns, memory_order_release);
    atomic_store_explicit(&slot->words[1], event->thread | (uint64_t)event->value << 32, memory_order_release);
    atomic_store_explicit(&slot->words[2], stamp_of(ring, number) | (uint64_t)event->kind << 32 | (uint64_t)event->detail << 40,
                          memory_order_release);
    return true;
}

/* False when the slot doesn't hold, or no longer holds, the event of this number. */
static bool
read_slot(struct hw_ring *ring, uint64_t number, struct hw_trace_event *event)
{
    struct hw_slot *slot = &ring->slots[number & ring->mask];
    uint64_t word = atomic_load_explicit(&slot->words[2], memory_order_acquire);
    if (STAMP(word) != stamp_of(ring, number)) return false;
    uint64_t time_ns = atomic_load_explicit(&slot->words[0], memory_order_acquire);
    uint64_t who = atomic_load_explicit(&slot->words[1], memory_order_acquire);
    if (atomic_load_explicit(&slot->words[2], memory_order_relaxed) != word) return false;
    *event = (struct hw_trace_event){ .time_ns = time_ns, .thread = (uint32_t)who, .value = (uint32_t)(who >> 32),
                                      .kind = (uint8_t)(word >> 32), .detail = (uint8_t)(word >> 40) };
    return true;
}

size_t
hw_ring_take(struct hw_ring *ring, struct hw_trace_event *events, size_t count)
{
    uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    size_t taken = 0;
    while (taken < count && read_slot(ring, tail + taken, &events[taken])) taken++;
    atomic_store_explicit(&ring->tail, tail + taken, memory_order_release);
    return taken;
}

void
hw_ring_walk_start(const struct hw_ring *ring, struct hw_ring_walk *walk)
{
    uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    uint64_t oldest = head > ring->mask + 1 ? head - ring->mask - 1 : 0;
    *walk = (struct hw_ring_walk){ .next = oldest > ring->floor ? oldest : ring->floor, .end = head };
}

size_t
hw_ring_walk_next(struct hw_ring *ring, struct hw_ring_walk *walk, struct hw_trace_event *events, size_t count)
{
    size_t read = 0;
    while (read < count && walk->next < walk->end) {
        if (read_slot(ring, walk->next++, &events[read])) {
            read++;
            continue;
        }
        walk->missed++;
        if (read == 0 && !walk->begun) walk->older++;
    }
    if (read > 0) walk->begun = true;
    return read;
}

void
hw_ring_forget(struct hw_ring *ring)
{
    uint64_t head = atomic_load(&ring->head);
    atomic_store(&ring->tail, head);
    atomic_store(&ring->dropped, 0);
    ring->floor = head;
}
