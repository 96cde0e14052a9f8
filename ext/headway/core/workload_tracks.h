/* For workload.c only. */
#ifndef HW_WORKLOAD_TRACKS_H
#define HW_WORKLOAD_TRACKS_H

#include "workload.h"

/* Once all is read: lengthens pauses and joins tracks (one that went into another has no requests left). -> of each track, which it
 * went into, maybe itself; the caller's to free; NULL: memory is short. */
uint32_t *hw_workload_spread_tracks(struct hw_workload *workload);

#endif
