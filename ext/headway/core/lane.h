/* A thread's states over time, as small as they go: LEB128 varints (duration in units of 100 ns << 2 | state), one after the
 * other without a gap. Boundaries are rounded, not durations, so nothing adds up to a drift; what is shorter than a unit may
 * vanish. */
#ifndef HW_LANE_H
#define HW_LANE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HW_LANE_UNIT_NS UINT64_C(100)

enum hw_lane_state { HW_LANE_RUNNING, HW_LANE_READY, HW_LANE_SUSPENDED, HW_LANE_ABSENT };
enum hw_gc_lane_state { HW_LANE_NO_GC, HW_LANE_GC };

struct hw_lane {
    uint64_t start_unit; /* of the first segment */
    uint64_t end_unit;
    uint64_t segments;
    uint8_t *bytes;
    size_t length, capacity;
};

void hw_lane_free(struct hw_lane *lane);

/* Appends state from `from_ns`, which for every segment but the first is where the last one ended, to `to_ns`. False: no
 * memory. */
bool hw_lane_add(struct hw_lane *lane, uint8_t state, uint64_t from_ns, uint64_t to_ns);

#endif
