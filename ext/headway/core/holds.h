/* Who held the GVL when, from a process's lanes; and in each wait for how long. Times are in a lane's units. */
#ifndef HW_HOLDS_H
#define HW_HOLDS_H

#include "lane.h"

/* Goes through a lane's segments, those without length left out. `lane` need not be whole: it ends where it makes no sense. */
struct hw_lane_walk {
    const uint8_t *at, *end;
    uint64_t from, to;
    uint8_t state;
};
static inline struct hw_lane_walk
hw_lane_walk(const uint8_t *bytes, size_t length, uint64_t start_unit)
{
    return (struct hw_lane_walk){ .at = bytes, .end = bytes + length, .from = start_unit, .to = start_unit };
}
bool hw_lane_next(struct hw_lane_walk *walk);

#define HW_NOBODY_HOLDS UINT32_MAX

struct hw_share {
    uint64_t units;
    uint32_t owner; /* HW_NOBODY_HOLDS: the GVL was free */
};

struct hw_hold {
    uint64_t from, to;
    uint32_t owner;
};

/* Zeroed before its first use. */
struct hw_holds {
    struct hw_hold *list;
    size_t count, capacity;
    bool sorted;
    size_t *place;           /* owner -> its place in shares + 1, while shares are counted */
    uint32_t owners;         /* highest owner + 1 */
    struct hw_share *shares; /* of the wait last asked for */
};

void hw_holds_free(struct hw_holds *holds);
/* The lane of one thread, whose number is `owner`. False: memory is short. */
bool hw_holds_add(struct hw_holds *holds, uint32_t owner, const uint8_t *bytes, size_t length, uint64_t start_unit);
/* After the last lane. False: memory is short. */
bool hw_holds_ready(struct hw_holds *holds);
/* Who held it from `from` to `to`, the longest first and of equals the first one first: `holds->shares`. They sum to `to - from`,
 * unless holds overlap. */
size_t hw_holds_during(struct hw_holds *holds, uint64_t from, uint64_t to);

#endif
