/* A thread's lane as packets of a Perfetto trace: two for each segment, its beginning and its end, and in the end of a wait who held
 * the GVL meanwhile. What doesn't change from one packet to the next was encoded by the caller, lib/headway/report/perfetto: here
 * times, lengths and shares are put in between.
 *
 *   packet: 0a, length, 40, time in nanoseconds, rest
 *   rest of a wait's end: before_event, length, end_head, 22, length, title, for each holder its entry and a double */
#ifndef HW_ENCODE_PERFETTO_H
#define HW_ENCODE_PERFETTO_H

#include "holds.h"
#include "trace_writer.h"

struct hw_piece {
    const uint8_t *bytes;
    size_t length;
};

/* A wait behind more threads than this names the longest of them. */
#define HW_PERFETTO_HOLDERS 8

struct hw_perfetto {
    struct hw_piece beginning[HW_LANE_ABSENT]; /* by state: rest */
    struct hw_piece ending;                    /* rest, of what is no wait */
    struct hw_piece before_event, end_head, title;
    struct hw_piece entries;                   /* of each thread, then of nobody, in a row */
    const uint8_t *entry_ends;                 /* a uint32_t for each of them, at any address */
    uint32_t threads;
};

/* Appends packets of the segments from where `walk` is, until the buffer has `enough` bytes or the lane ends, which `*more` says.
 * False: memory is short. */
bool hw_encode_perfetto(struct hw_buffer *buffer, const struct hw_perfetto *pieces, struct hw_lane_walk *walk, struct hw_holds *holds,
                        size_t enough, bool *more);

#endif
