/* See trace_writer.h. A block is reserved at its longest, filled in place, then closed with its length and checksum. */
#include "trace_writer.h"

#include "crc32.h"
#include "trace_bytes.h"
#include "trace_format.h"

#include <stdlib.h>
#include <string.h>

#define VARINT_LONGEST 10
#define EVENT_LONGEST (2 + VARINT_LONGEST + 2 * 5 + 1) /* head, kind; time; thread, value; detail */

bool
hw_buffer_reserve(struct hw_buffer *buffer, size_t more)
{
    if (more > SIZE_MAX / 2 - buffer->length) return false;
    size_t needed = buffer->length + more;
    if (needed <= buffer->capacity) return true;

    size_t capacity = buffer->capacity * 2 > needed ? buffer->capacity * 2 : needed;
    if (capacity < 4096) capacity = 4096;
    uint8_t *bytes = realloc(buffer->bytes, capacity);
    if (!bytes) return false;
    buffer->bytes = bytes;
    buffer->capacity = capacity;
    return true;
}

static uint8_t *
put_u32(uint8_t *at, uint32_t value)
{
    for (int i = 0; i < 4; i++) *at++ = (uint8_t)(value >> (8 * i));
    return at;
}

static uint64_t
zigzag(uint64_t difference)
{
    return (difference << 1) ^ (0 - (difference >> 63));
}

static uint8_t *
put_text(uint8_t *at, const char *bytes, size_t length)
{
    at = hw_put_varint(at, length);
    if (length) memcpy(at, bytes, length);
    return at + length;
}

static size_t
cut(size_t length, size_t longest)
{
    return length < longest ? length : longest;
}

/* -- blocks -------------------------------------------------------------------------------------------------------------- */

/* Where the payload of a block of at most `longest` bytes goes; NULL: no memory. */
static uint8_t *
open_block(struct hw_buffer *buffer, size_t longest)
{
    if (!hw_buffer_reserve(buffer, HW_TRACE_BLOCK_HEAD_LENGTH + longest)) return NULL;
    return buffer->bytes + buffer->length + HW_TRACE_BLOCK_HEAD_LENGTH;
}

/* The checksum covers type, length and payload. */
static bool
close_block(struct hw_buffer *buffer, enum hw_trace_block type, const uint8_t *end)
{
    uint8_t *head = buffer->bytes + buffer->length;
    uint8_t *payload = head + HW_TRACE_BLOCK_HEAD_LENGTH;
    uint32_t length = (uint32_t)(end - payload);
    uint8_t *at = put_u32(put_u32(head, type), length);
    put_u32(at, hw_crc32(hw_crc32(0, head, (size_t)(at - head)), payload, length));
    buffer->length += HW_TRACE_BLOCK_HEAD_LENGTH + length;
    return true;
}

bool
hw_write_header(struct hw_buffer *buffer, const struct hw_trace_header *header)
{
    struct { const char *bytes; size_t longest; } texts[] = {
        { header->ruby, sizeof(header->ruby) },
        { header->headway, sizeof(header->headway) },
        { header->policy, sizeof(header->policy) },
        { header->preempt, sizeof(header->preempt) },
        { header->command, sizeof(header->command) },
    };
    if (!hw_buffer_reserve(buffer, HW_TRACE_PREAMBLE_LENGTH + HW_TRACE_BLOCK_HEAD_LENGTH + sizeof(*header) + 16 * VARINT_LONGEST)) {
        return false;
    }
    uint8_t *preamble = buffer->bytes + buffer->length;
    preamble = put_u32(preamble, (uint32_t)HW_TRACE_MAGIC);
    preamble = put_u32(preamble, (uint32_t)(HW_TRACE_MAGIC >> 32));
    put_u32(preamble, HW_TRACE_VERSION);
    buffer->length += HW_TRACE_PREAMBLE_LENGTH;

    uint8_t *at = open_block(buffer, 0);
    at = hw_put_varint(at, header->pid);
    at = hw_put_varint(at, header->parent_pid);
    at = hw_put_varint(at, header->clock_ns);
    at = hw_put_varint(at, header->wall_ns);
    at = hw_put_varint(at, header->quantum_ns);
    at = hw_put_varint(at, header->cpus);
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        at = put_text(at, texts[i].bytes, strnlen(texts[i].bytes, texts[i].longest));
    }
    return close_block(buffer, HW_TRACE_BLOCK_HEADER, at);
}

bool
hw_write_string(struct hw_buffer *buffer, uint32_t id, const char *bytes, size_t length)
{
    if (id > HW_TRACE_ID_HIGHEST) return true;
    length = cut(length, HW_TRACE_STRING_LONGEST);
    uint8_t *at = open_block(buffer, 2 * VARINT_LONGEST + length);
    if (!at) return false;
    at = put_text(hw_put_varint(at, id), bytes, length);
    return close_block(buffer, HW_TRACE_BLOCK_STRINGS, at);
}

bool
hw_write_thread(struct hw_buffer *buffer, uint32_t thread, const char *name, size_t name_length, const char *site,
                size_t site_length)
{
    name_length = cut(name_length, HW_TRACE_NAME_LONGEST);
    site_length = cut(site_length, HW_TRACE_STRING_LONGEST);
    uint8_t *at = open_block(buffer, 3 * VARINT_LONGEST + name_length + site_length);
    if (!at) return false;
    at = put_text(put_text(hw_put_varint(at, thread), name, name_length), site, site_length);
    return close_block(buffer, HW_TRACE_BLOCK_THREADS, at);
}

bool
hw_write_frame(struct hw_buffer *buffer, uint32_t id, uint32_t method_string, uint32_t file_string, uint32_t line)
{
    if (id > HW_TRACE_ID_HIGHEST) return true;
    uint8_t *at = open_block(buffer, 4 * VARINT_LONGEST);
    if (!at) return false;
    at = hw_put_varint(hw_put_varint(hw_put_varint(hw_put_varint(at, id), method_string), file_string), line);
    return close_block(buffer, HW_TRACE_BLOCK_FRAMES, at);
}

bool
hw_write_stack(struct hw_buffer *buffer, uint32_t id, const uint32_t *frames, uint32_t count)
{
    if (id > HW_TRACE_ID_HIGHEST) return true;
    count = (uint32_t)cut(count, HW_TRACE_STACK_DEEPEST);
    uint8_t *at = open_block(buffer, (2 + (size_t)count) * VARINT_LONGEST);
    if (!at) return false;
    at = hw_put_varint(hw_put_varint(at, id), count);
    for (uint32_t i = 0; i < count; i++) at = hw_put_varint(at, frames[i]);
    return close_block(buffer, HW_TRACE_BLOCK_STACKS, at);
}

/* -- events -------------------------------------------------------------------------------------------------------------- */

static uint8_t *
put_event(uint8_t *at, const struct hw_trace_event *event, uint64_t before_ns, uint32_t thread_before)
{
    uint8_t *head = at++;
    *head = 0;
    if (event->kind != 0 && event->kind <= HW_TRACE_KIND_MASK) *head = event->kind;
    else *at++ = event->kind;
    at = hw_put_varint(at, zigzag(event->time_ns - before_ns));
    if (event->thread == thread_before) *head |= HW_TRACE_SAME_THREAD;
    else at = hw_put_varint(at, event->thread);
    if (event->value) {
        *head |= HW_TRACE_HAS_VALUE;
        at = hw_put_varint(at, event->value);
    }
    if (event->detail) {
        *head |= HW_TRACE_HAS_DETAIL;
        *at++ = event->detail;
    }
    return at;
}

static bool
write_block_of_events(struct hw_buffer *buffer, const struct hw_trace_event *events, size_t count)
{
    uint8_t *at = open_block(buffer, 2 * VARINT_LONGEST + count * EVENT_LONGEST);
    if (!at) return false;
    uint64_t time_ns = events->time_ns;
    uint32_t thread = 0;
    at = hw_put_varint(hw_put_varint(at, count), time_ns);
    for (size_t i = 0; i < count; i++) {
        at = put_event(at, &events[i], time_ns, thread);
        time_ns = events[i].time_ns;
        thread = events[i].thread;
    }
    return close_block(buffer, HW_TRACE_BLOCK_EVENTS, at);
}

bool
hw_write_events(struct hw_buffer *buffer, const struct hw_trace_event *events, size_t count)
{
    size_t before = buffer->length;
    while (count) {
        size_t now = cut(count, HW_TRACE_EVENTS_MOST);
        if (!write_block_of_events(buffer, events, now)) {
            buffer->length = before;
            return false;
        }
        events += now;
        count -= now;
    }
    return true;
}

bool
hw_write_dropped(struct hw_buffer *buffer, uint64_t events_so_far, uint64_t folded_stacks_so_far)
{
    uint8_t *at = open_block(buffer, 2 * VARINT_LONGEST);
    if (!at) return false;
    at = hw_put_varint(hw_put_varint(at, events_so_far), folded_stacks_so_far);
    return close_block(buffer, HW_TRACE_BLOCK_DROPPED, at);
}

bool
hw_write_quota(struct hw_buffer *buffer, const struct hw_quota *so_far)
{
    uint8_t *at = open_block(buffer, 2 * VARINT_LONGEST);
    if (!at) return false;
    at = hw_put_varint(hw_put_varint(at, so_far->periods), so_far->exhausted);
    return close_block(buffer, HW_TRACE_BLOCK_QUOTA, at);
}

bool
hw_write_end(struct hw_buffer *buffer)
{
    uint8_t *at = open_block(buffer, 0);
    return at && close_block(buffer, HW_TRACE_BLOCK_END, at);
}
