#include "encode_perfetto.h"

#include "trace_bytes.h"

#include <string.h>

#define PACKET 0x0a
#define TIMESTAMP 0x40
#define ANNOTATIONS 0x22
#define VARINT_LONGEST 10
#define UNITS_PER_MS 10000.0

static size_t
varint_length(uint64_t value)
{
    size_t length = 1;
    while (value >>= 7) length++;
    return length;
}

static uint8_t *
put(uint8_t *at, struct hw_piece piece)
{
    memcpy(at, piece.bytes, piece.length);
    return at + piece.length;
}

static uint8_t *
put_double(uint8_t *at, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    for (int i = 0; i < 8; i++) *at++ = (uint8_t)(bits >> (8 * i));
    return at;
}

/* A packet up to its rest, which is so long. */
static uint8_t *
open_packet(struct hw_buffer *buffer, uint64_t unit, size_t rest_length)
{
    uint64_t time_ns = unit * HW_LANE_UNIT_NS;
    if (!hw_buffer_reserve(buffer, 2 + 2 * VARINT_LONGEST + rest_length)) return NULL;
    uint8_t *at = buffer->bytes + buffer->length;
    *at++ = PACKET;
    at = hw_put_varint(at, 1 + varint_length(time_ns) + rest_length);
    *at++ = TIMESTAMP;
    return hw_put_varint(at, time_ns);
}

static bool
close_packet(struct hw_buffer *buffer, const uint8_t *end)
{
    buffer->length = (size_t)(end - buffer->bytes);
    return true;
}

static bool
put_packet(struct hw_buffer *buffer, uint64_t unit, struct hw_piece rest)
{
    uint8_t *at = open_packet(buffer, unit, rest.length);
    return at && close_packet(buffer, put(at, rest));
}

static uint32_t
end_of(const struct hw_perfetto *pieces, uint32_t entry)
{
    uint32_t end;
    memcpy(&end, pieces->entry_ends + entry * sizeof(end), sizeof(end));
    return end;
}

static struct hw_piece
entry_of(const struct hw_perfetto *pieces, const struct hw_share *share)
{
    uint32_t entry = share->owner < pieces->threads ? share->owner : pieces->threads;
    uint32_t start = entry ? end_of(pieces, entry - 1) : 0, end = end_of(pieces, entry);
    if (start > end || end > pieces->entries.length) return (struct hw_piece){ pieces->entries.bytes, 0 };
    return (struct hw_piece){ pieces->entries.bytes + start, end - start };
}

static bool
put_wait_end(struct hw_buffer *buffer, const struct hw_perfetto *pieces, uint64_t unit, const struct hw_share *shares, size_t count)
{
    if (count > HW_PERFETTO_HOLDERS) count = HW_PERFETTO_HOLDERS;
    size_t inner = pieces->title.length;
    for (size_t i = 0; i < count; i++) inner += entry_of(pieces, &shares[i]).length + 8;
    size_t event = pieces->end_head.length + 1 + varint_length(inner) + inner;
    uint8_t *at = open_packet(buffer, unit, pieces->before_event.length + varint_length(event) + event);
    if (at == NULL) return false;
    at = put(hw_put_varint(put(at, pieces->before_event), event), pieces->end_head);
    *at++ = ANNOTATIONS;
    at = put(hw_put_varint(at, inner), pieces->title);
    for (size_t i = 0; i < count; i++) at = put_double(put(at, entry_of(pieces, &shares[i])), (double)shares[i].units / UNITS_PER_MS);
    return close_packet(buffer, at);
}

bool
hw_encode_perfetto(struct hw_buffer *buffer, const struct hw_perfetto *pieces, struct hw_lane_walk *walk, struct hw_holds *holds,
                   size_t enough, bool *more)
{
    while (buffer->length < enough) {
        *more = hw_lane_next(walk);
        if (!*more) return true;
        if (walk->state == HW_LANE_ABSENT) continue;
        if (!put_packet(buffer, walk->from, pieces->beginning[walk->state])) return false;
        if (walk->state == HW_LANE_READY) {
            size_t count = hw_holds_during(holds, walk->from, walk->to);
            if (!put_wait_end(buffer, pieces, walk->to, holds->shares, count)) return false;
        }
        else if (!put_packet(buffer, walk->to, pieces->ending)) {
            return false;
        }
    }
    *more = true;
    return true;
}
