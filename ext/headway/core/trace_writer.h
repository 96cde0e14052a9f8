/* Encodes a trace, in the format of docs/trace-format.md, into a buffer of the caller's. No I/O, no locks, nothing kept between
 * calls: one user of a buffer at a time. Each call appends whole checksummed blocks, so that what was written so far can always
 * be read.
 *
 * The file is the header, then anything in any order (a string, frame or stack may also come after what refers to it), then the
 * end. Ids count from 1; those above HW_TRACE_ID_HIGHEST are not written, too long strings and too deep stacks are cut.
 *
 * Every function returns false when memory is short; the buffer then holds what it held before. */
#ifndef HW_TRACE_WRITER_H
#define HW_TRACE_WRITER_H

#include "event.h"
#include "quota.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hw_trace_header {
    char ruby[32], headway[32], policy[16], preempt[16];
    char command[512];
    uint32_t pid, parent_pid;
    uint64_t clock_ns; /* CLOCK_MONOTONIC */
    uint64_t wall_ns;  /* CLOCK_REALTIME at the same instant */
    uint64_t quantum_ns;
    uint32_t cpus;
};

/* Zeroed before its first use. The caller writes bytes away and sets length to 0, and frees bytes in the end. */
struct hw_buffer {
    uint8_t *bytes;
    size_t length, capacity;
};

/* Makes room for `more` bytes beyond its length; at least doubles, so that appending costs the same however long it is. */
bool hw_buffer_reserve(struct hw_buffer *, size_t more);

bool hw_write_header(struct hw_buffer *, const struct hw_trace_header *);
bool hw_write_string(struct hw_buffer *, uint32_t id, const char *bytes, size_t length);

/* May be repeated for a thread: the last one counts. */
bool hw_write_thread(struct hw_buffer *, uint32_t thread, const char *name, size_t name_length, const char *site,
                     size_t site_length);
bool hw_write_frame(struct hw_buffer *, uint32_t id, uint32_t method_string, uint32_t file_string, uint32_t line);

/* frames: leaf first */
bool hw_write_stack(struct hw_buffer *, uint32_t id, const uint32_t *frames, uint32_t count);

/* In about the order of their times: the reader puts right what is out of order by less than 10 ms. */
bool hw_write_events(struct hw_buffer *, const struct hw_trace_event *, size_t count);

/* What was lost so far: the last one counts. */
bool hw_write_dropped(struct hw_buffer *, uint64_t events_so_far, uint64_t folded_stacks_so_far);

/* While it was recorded: the last one counts. */
bool hw_write_quota(struct hw_buffer *, const struct hw_quota *so_far);

/* A file without it was cut short, or is still being written. */
bool hw_write_end(struct hw_buffer *);

#endif
