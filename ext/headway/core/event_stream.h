/* The events of one trace file in the order of their times. A ring's slots are taken in nearly that order: what comes late by
 * less than HW_STREAM_WINDOW_NS is put where it belongs, as long as that takes no more than HW_STREAM_MOST events in memory.
 * What comes later still is left where it is, and whoever reads takes it as of the latest time before it. */
#ifndef HW_EVENT_STREAM_H
#define HW_EVENT_STREAM_H

#include "clock.h"
#include "trace_reader.h"

#define HW_STREAM_WINDOW_NS (10 * HW_NS_PER_MS)
#define HW_STREAM_MOST (UINT32_C(1) << 18)

struct hw_event_stream {
    struct hw_trace_event *events; /* `count` of them in order; the first `settled` are known to be next */
    struct hw_trace_event *spare;  /* for sorting */
    size_t count, settled, capacity;
};

void hw_stream_free(struct hw_event_stream *stream);

/* Drops the settled events, which the caller is done with, and adds a block's. False: *why says what is wrong with it; of a
 * malformed block nothing is added. */
bool hw_stream_add(struct hw_event_stream *stream, const struct hw_trace_block_read *block, const char **why);

/* Drops the settled events; all that are left are now settled. */
void hw_stream_finish(struct hw_event_stream *stream);

#endif
