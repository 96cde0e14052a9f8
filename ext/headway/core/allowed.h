/* Whether the system lets us do what a seccomp filter may forbid: with an error or, as systemd's filters do, by killing who asks. So
 * where there is a filter a child asks first: once, and for forked children, too. What was asked before there was a filter says nothing
 * any more: then nothing is allowed, until it is asked again. */
#ifndef HW_ALLOWED_H
#define HW_ALLOWED_H

#include <stdbool.h>

/* Asks. With no lock held. */
void hw_allowed_find(void);

bool hw_allowed_affinity(void); /* sched_getaffinity and sched_setaffinity */
bool hw_allowed_slices(void);   /* sched_getattr and sched_setattr */

#endif
