#include "event_stream.h"

#include "trace_bytes.h"
#include "trace_format.h"

#include <stdlib.h>
#include <string.h>

/* The least an event takes: its head and its time. */
#define EVENT_SHORTEST 2

void
hw_stream_free(struct hw_event_stream *stream)
{
    free(stream->events);
    free(stream->spare);
    memset(stream, 0, sizeof(*stream));
}

static bool
reserve(struct hw_event_stream *stream, size_t needed)
{
    if (needed <= stream->capacity) return true;
    size_t capacity = stream->capacity * 2 > needed ? stream->capacity * 2 : needed;
    struct hw_trace_event *events = realloc(stream->events, capacity * sizeof(*events));
    if (events) stream->events = events;
    struct hw_trace_event *spare = events ? realloc(stream->spare, capacity * sizeof(*spare)) : NULL;
    if (!spare) return false;
    stream->spare = spare;
    stream->capacity = capacity;
    return true;
}

static void
drop_settled(struct hw_event_stream *stream)
{
    stream->count -= stream->settled;
    if (stream->settled && stream->count) {
        memmove(stream->events, stream->events + stream->settled, stream->count * sizeof(*stream->events));
    }
    stream->settled = 0;
}

/* -- decoding ------------------------------------------------------------------------------------------------------------ */

static uint64_t
unzigzag(uint64_t value)
{
    return (value >> 1) ^ (0 - (value & 1));
}

static inline void
take_event(struct hw_bytes *bytes, struct hw_trace_event *event, uint64_t before_ns, uint32_t thread_before)
{
    uint8_t head = hw_take_byte(bytes);
    if (head & HW_TRACE_RESERVED) bytes->bad = true;
    event->kind = head & HW_TRACE_KIND_MASK;
    if (event->kind == 0) event->kind = hw_take_byte(bytes);
    event->time_ns = before_ns + unzigzag(hw_take_varint(bytes));
    if (event->time_ns > HW_TRACE_TIME_HIGHEST_NS) bytes->bad = true;
    event->thread = head & HW_TRACE_SAME_THREAD ? thread_before : hw_take_u32(bytes);
    event->value = head & HW_TRACE_HAS_VALUE ? hw_take_u32(bytes) : 0;
    event->detail = head & HW_TRACE_HAS_DETAIL ? hw_take_byte(bytes) : 0;
}

static bool
take_events(struct hw_event_stream *stream, const struct hw_trace_block_read *block, const char **why)
{
    struct hw_bytes bytes = { block->payload, block->payload + block->length, false };
    uint64_t count = hw_take_varint(&bytes);
    uint64_t time_ns = hw_take_varint(&bytes);
    uint32_t thread = 0;
    *why = "a malformed block of events";
    if (bytes.bad || count > HW_TRACE_EVENTS_MOST || count > (uint64_t)(bytes.end - bytes.at) / EVENT_SHORTEST) return false;
    if (!reserve(stream, stream->count + count)) {
        *why = "no memory for its events";
        return false;
    }
    struct hw_trace_event *event = stream->events + stream->count;
    for (uint64_t i = 0; i < count; i++, event++) {
        take_event(&bytes, event, time_ns, thread);
        if (bytes.bad) return false;
        time_ns = event->time_ns;
        thread = event->thread;
    }
    if (bytes.at != bytes.end) return false;
    stream->count += count;
    return true;
}

/* -- sorting ------------------------------------------------------------------------------------------------------------- */

/* Merges two sorted neighbours, of which the left one's events come first among equals. */
static void
merge(struct hw_event_stream *stream, size_t left, size_t middle, size_t right)
{
    struct hw_trace_event *events = stream->events, *spare = stream->spare;
    size_t left_count = middle - left;
    memcpy(spare, events + left, left_count * sizeof(*spare));
    size_t from_left = 0, from_right = middle, to = left;
    while (from_left < left_count && from_right < right) {
        events[to++] = events[from_right].time_ns < spare[from_left].time_ns ? events[from_right++] : spare[from_left++];
    }
    memcpy(events + to, spare + from_left, (left_count - from_left) * sizeof(*spare));
}

/* Bottom up, and stable. Neighbours already in order, as nearly all are, cost one comparison. */
static void
sort(struct hw_event_stream *stream)
{
    struct hw_trace_event *events = stream->events;
    size_t count = stream->count;
    for (size_t width = 1; width < count; width *= 2) {
        for (size_t left = 0; left + width < count; left += 2 * width) {
            size_t middle = left + width;
            size_t right = count - middle < width ? count : middle + width;
            if (events[middle].time_ns < events[middle - 1].time_ns) merge(stream, left, middle, right);
        }
    }
}

/* All that no event to come can precede; more when too many would be held back. */
static size_t
settled(const struct hw_event_stream *stream)
{
    if (stream->count == 0) return 0;
    uint64_t latest_ns = stream->events[stream->count - 1].time_ns;
    uint64_t until_ns = latest_ns > HW_STREAM_WINDOW_NS ? latest_ns - HW_STREAM_WINDOW_NS : 0;
    size_t low = 0, high = stream->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (stream->events[middle].time_ns <= until_ns) low = middle + 1;
        else high = middle;
    }
    size_t least = stream->count > HW_STREAM_MOST ? stream->count - HW_STREAM_MOST / 2 : 0;
    return low > least ? low : least;
}

bool
hw_stream_add(struct hw_event_stream *stream, const struct hw_trace_block_read *block, const char **why)
{
    drop_settled(stream);
    if (!take_events(stream, block, why)) return false;
    sort(stream);
    stream->settled = settled(stream);
    return true;
}

void
hw_stream_finish(struct hw_event_stream *stream)
{
    drop_settled(stream);
    stream->settled = stream->count;
}
