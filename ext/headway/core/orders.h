/* Orders: what has to be done once an event has been taken in. Part of the scheduler; called by scheduler.c alone. */
#ifndef HW_ORDERS_H
#define HW_ORDERS_H

#include "scheduler.h"

/* Wakes the admitted thread if the gate is open for it, preempts the holder if it must give way, and says when to look again. */
void hw_orders_give(struct hw_scheduler *scheduler, uint64_t now, struct hw_orders *orders);

/* The holder must give way, and isn't to be asked or hasn't heard for long. */
bool hw_orders_unanswered(const struct hw_scheduler *scheduler, uint64_t now);

/* When the holder must give way, as things are now. */
uint64_t hw_orders_yield_at_ns(const struct hw_scheduler *scheduler, const struct hw_thread *holder, uint64_t now);

#endif
