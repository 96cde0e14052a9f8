#include "lane.h"

#include <stdlib.h>
#include <string.h>

#define SEGMENT_LONGEST 10

void
hw_lane_free(struct hw_lane *lane)
{
    free(lane->bytes);
    memset(lane, 0, sizeof(*lane));
}

static bool
reserve(struct hw_lane *lane)
{
    if (lane->capacity - lane->length >= SEGMENT_LONGEST) return true;
    size_t capacity = lane->capacity ? lane->capacity * 2 : 64;
    uint8_t *bytes = realloc(lane->bytes, capacity);
    if (!bytes) return false;
    lane->bytes = bytes;
    lane->capacity = capacity;
    return true;
}

static uint64_t
unit_of(uint64_t time_ns)
{
    return (time_ns + HW_LANE_UNIT_NS / 2) / HW_LANE_UNIT_NS;
}

bool
hw_lane_add(struct hw_lane *lane, uint8_t state, uint64_t from_ns, uint64_t to_ns)
{
    uint64_t to = unit_of(to_ns);
    if (lane->segments == 0) lane->start_unit = lane->end_unit = unit_of(from_ns);
    if (to <= lane->end_unit) return true;
    if (!reserve(lane)) return false;

    uint64_t value = (to - lane->end_unit) << 2 | state;
    for (; value >= 0x80; value >>= 7) lane->bytes[lane->length++] = (uint8_t)(value | 0x80);
    lane->bytes[lane->length++] = (uint8_t)value;
    lane->end_unit = to;
    lane->segments++;
    return true;
}
