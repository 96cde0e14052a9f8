/* The gate's queue: batch threads that are ready but not admitted, first come first served. A thread in it is either parked
 * (native wait, hw_runtime_park) or still in the VM's ready queue, from where it will be sent here if it runs before its turn. */
#ifndef HW_GATE_H
#define HW_GATE_H

#include "thread.h"

struct hw_gate {
    struct hw_thread *head, *tail;
    unsigned length;
};

void hw_gate_push(struct hw_gate *gate, struct hw_thread *thread); /* does nothing when it is in the queue */
void hw_gate_remove(struct hw_gate *gate, struct hw_thread *thread); /* does nothing when it isn't */
struct hw_thread *hw_gate_pop(struct hw_gate *gate);                 /* NULL when empty */

#endif
