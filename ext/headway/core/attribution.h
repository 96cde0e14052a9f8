/* Who waited because of whom: each wait is split among the threads that held the GVL during it. Live, always on, exact.
 *
 * How. Every thread has a slot; slot HW_SLOT_NOBODY stands for the time in which nobody held the GVL. held_ns[slot] is the time
 * the slot's threads have held it so far. A thread that becomes ready copies held_ns, and when it is resumed the difference is
 * what it waited for, slot by slot: two loops without branches over a few dozen numbers, whatever happened in between.
 * caused_ns[holder] grows by the time passed times the number of waiting threads at each change of either.
 *
 * A thread that wants a GVL which is free and which nobody else wants is the common case, and copies nothing: it is `alone` until
 * the next event, and when that is its own its whole wait was for nobody.
 *
 * There are HW_SLOTS slots. When they are all taken a new thread gets that of a thread that ended, whose figures go to
 * HW_SLOT_OTHERS; when nobody has ended it shares HW_SLOT_OTHERS.
 *
 * Invariants
 *   1. The sum of held_ns is the time since the start: so what a thread waited for adds up to its waits, to the nanosecond.
 *   2. The sum of caused_ns over all slots is the sum of all threads' waits, those that still last included.
 *   3. No event costs more than two passes over the slots in use. A new thread that takes an ended one's slot costs a look at
 *      every living thread.
 *
 * Plain data, no lock: part of the scheduler, called by it. */
#ifndef HW_ATTRIBUTION_H
#define HW_ATTRIBUTION_H

#include "clock.h"

#include <stdbool.h>
#include <stdint.h>

#define HW_SLOTS 64
#define HW_SLOTS_STEP 8 /* those in use are counted in whole cache lines: the loops are unrolled and vectorised */
/* A sample is asked for after 10 ms; on a busy machine it may take twice that. In a trace as live. */
#define HW_LATE_NS (50 * HW_NS_PER_MS)
#define HW_SLOT_NOBODY 0
#define HW_SLOT_OTHERS 1

struct hw_ended;
struct hw_thread;

/* A thread's part. */
struct hw_waits {
    uint8_t slot;
    bool waiting;
    uint64_t since_ns;                 /* when its wait began */
    uint64_t held_before_ns[HW_SLOTS]; /* held_ns when its wait began */
    uint64_t waited_ns[HW_SLOTS];      /* for whom, in all its finished waits */
};

struct hw_slot_owner {
    uint32_t number;              /* the thread's; 0: free */
    bool living;
    const struct hw_ended *ended; /* once it has ended: has its name; may be NULL */
};

struct hw_attribution {
    uint64_t now_ns;          /* everything below is true of this time */
    uint8_t holder;           /* slot */
    uint8_t used;             /* slots below this one have been in use */
    unsigned waiting;         /* threads that wait */
    struct hw_waits *alone;   /* waits, has copied nothing yet */
    uint64_t sampled_ns;      /* caused_ns of the holder when it was last looked at by hw_attribution_sample, or began its hold */
    uint64_t pressed_ns;      /* since when somebody has waited for this holder, or since it was last looked at */
    uint64_t late_ns;         /* of all samples, those that came HW_LATE_NS after: that code heeds no interrupt */
    uint64_t held_ns[HW_SLOTS], caused_ns[HW_SLOTS];
    struct hw_slot_owner owners[HW_SLOTS];
};

void hw_attribution_init(struct hw_attribution *attribution);

/* A thread comes and goes. `threads`: all living ones, in case a slot changes hands. */
void hw_attribution_add(struct hw_attribution *attribution, struct hw_thread *thread, struct hw_thread *threads);
void hw_attribution_remove(struct hw_attribution *attribution, struct hw_thread *thread);

void hw_attribution_wait_starts(struct hw_attribution *attribution, struct hw_thread *thread, uint64_t now);
void hw_attribution_wait_ends(struct hw_attribution *attribution, struct hw_thread *thread, uint64_t now);
/* As if it had not waited, but for what it has to do with caused_ns. */
void hw_attribution_wait_void(struct hw_attribution *attribution, struct hw_thread *thread, uint64_t now);

void hw_attribution_hold_starts(struct hw_attribution *attribution, const struct hw_thread *thread, uint64_t now);
void hw_attribution_hold_ends(struct hw_attribution *attribution, uint64_t now);

/* The waits the holder has caused in this hold since the last sample: a blame sample's weight. 0 when nobody holds the GVL. */
uint64_t hw_attribution_sample(struct hw_attribution *attribution, uint64_t now);

/* What the thread has waited for up to now, the wait it is in included. */
void hw_attribution_copy(struct hw_attribution *attribution, const struct hw_thread *thread, uint64_t now,
                         uint64_t waited_ns[HW_SLOTS]);

/* All figures start at zero again. */
void hw_attribution_reset(struct hw_attribution *attribution, struct hw_thread *threads, uint64_t now);

#endif
