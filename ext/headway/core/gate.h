/* The gate: batch threads that are ready but not admitted, a queue for each tier, first come first served. A thread in it is either
 * parked (native wait, hw_runtime_park) or still in the VM's ready queue, from where it will be sent here if it runs before its
 * turn, unless it is brief. */
#ifndef HW_GATE_H
#define HW_GATE_H

#include "policy.h"
#include "thread.h"

struct hw_gate {
    unsigned length;
    struct hw_gate_queue {
        struct hw_thread *head, *tail;
        uint64_t served_ns; /* when it was last served, or began to wait */
    } queues[HW_TIERS];
};

/* Into the queue of its tier; does nothing when it is in one. */
void hw_gate_push(struct hw_gate *gate, struct hw_thread *thread, uint64_t now);
/* To its head, for one that was overtaken: it goes on where it was. */
void hw_gate_push_front(struct hw_gate *gate, struct hw_thread *thread, uint64_t now);
void hw_gate_remove(struct hw_gate *gate, struct hw_thread *thread); /* does nothing when it isn't in one */

/* The lowest tier somebody waits in; HW_TIERS: nobody waits. */
uint8_t hw_gate_tier(const struct hw_gate *gate);

/* The lowest tier's first; but of tiers that were passed over for `patience_ns`, or whose first is due, the one that was or is so first.
 * NULL when empty. */
struct hw_thread *hw_gate_pop(struct hw_gate *gate, uint64_t patience_ns, uint64_t now);

#endif
