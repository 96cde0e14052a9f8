/* Admission: which batch thread may be in the VM's ready queue, and when a parked one may go there. Part of the scheduler, whose
 * invariants 3 and 4 it keeps; called by scheduler.c alone, but for hw_admission_turn_ends_ns (orders.c) and what scheduler.h declares. */
#ifndef HW_ADMISSION_H
#define HW_ADMISSION_H

#include "scheduler.h"

/* Puts one thread right after its state or its class changed. */
void hw_admission_place(struct hw_scheduler *scheduler, struct hw_thread *thread, uint64_t now);

/* The admitted thread gives way of itself, or is passed by: whoever is next is admitted, if it is time. */
void hw_admission_rotate(struct hw_scheduler *scheduler, uint64_t now);

/* The VM's own time slice ended a hold of the admitted thread as if it had blocked: its turn goes on. */
void hw_admission_take_back(struct hw_scheduler *scheduler, struct hw_thread *thread, uint64_t now);

/* When those that wait for the admitted thread have waited long enough, however little it ran in its turn. Somebody is admitted. */
uint64_t hw_admission_turn_ends_ns(const struct hw_scheduler *scheduler);

/* A thread has stopped running: the gate stays shut for a while if it, or one before it, is expected right back, and batch threads
 * can bear it. And what that was, once somebody wants the GVL or has it. */
void hw_admission_linger(struct hw_scheduler *scheduler, const struct hw_thread *thread, uint64_t now);
void hw_admission_linger_ends(struct hw_scheduler *scheduler, uint64_t now);

/* The VM chose to run a batch thread that isn't admitted: it is, if the owner's time is up and the owner isn't about to run. */
void hw_admission_hand_over(struct hw_scheduler *scheduler, struct hw_thread *thread, uint64_t now);

#endif
