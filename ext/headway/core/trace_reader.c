/* See trace_reader.h and docs/trace-format.md. */
#include "trace_reader.h"

#include "crc32.h"
#include "trace_bytes.h"
#include "trace_format.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUFFER_BYTES (UINT32_C(1) << 18)

__attribute__((format(printf, 3, 4))) static bool
fail(struct hw_trace_reader *reader, uint64_t offset, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reader->damage.what, sizeof(reader->damage.what), format, arguments);
    va_end(arguments);
    reader->damage.offset = offset;
    reader->ended = true;
    return false;
}

/* -- bytes --------------------------------------------------------------------------------------------------------------- */

static bool
make_room(struct hw_trace_reader *reader, size_t wanted)
{
    if (wanted <= reader->capacity) return true;
    size_t capacity = wanted < BUFFER_BYTES ? BUFFER_BYTES : wanted;
    uint8_t *buffer = realloc(reader->buffer, capacity);
    if (!buffer) return false;
    reader->buffer = buffer;
    reader->capacity = capacity;
    return true;
}

/* The `length` bytes at reader->offset; NULL, with the damage noted, when they can't be had. The caller has made sure that the
 * file was long enough. */
static const uint8_t *
bytes_at(struct hw_trace_reader *reader, size_t length)
{
    size_t passed = (size_t)(reader->offset - reader->buffer_offset);
    if (passed + length <= reader->filled) return reader->buffer + passed;

    memmove(reader->buffer, reader->buffer + passed, reader->filled - passed);
    reader->filled -= passed;
    reader->buffer_offset = reader->offset;
    if (!make_room(reader, length)) {
        fail(reader, reader->offset, "no memory for a block of %zu bytes", length);
        return NULL;
    }
    while (reader->filled < length) {
        ssize_t got = pread(reader->fd, reader->buffer + reader->filled, reader->capacity - reader->filled,
                            (off_t)(reader->buffer_offset + reader->filled));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) {
            if (got < 0) fail(reader, reader->offset, "can't be read: %s", strerror(errno));
            else fail(reader, reader->offset, "cut short while it was read");
            return NULL;
        }
        reader->filled += (size_t)got;
    }
    return reader->buffer;
}

static uint64_t
left(const struct hw_trace_reader *reader)
{
    return reader->size - reader->offset;
}

/* -- blocks -------------------------------------------------------------------------------------------------------------- */

/* A block's length, from its head; UINT32_MAX, with the damage noted, when it can't be right. */
static uint32_t
sensible_length(struct hw_trace_reader *reader, const uint8_t *head)
{
    uint32_t length = hw_u32(head + 4);
    if (length > HW_TRACE_BLOCK_LONGEST) {
        fail(reader, reader->offset, "a block of %u bytes, more than any may have", length);
        return UINT32_MAX;
    }
    if (HW_TRACE_BLOCK_HEAD_LENGTH + (uint64_t)length > left(reader)) {
        fail(reader, reader->offset, "cut short: a block of %u bytes begins here, but %llu are left",
             HW_TRACE_BLOCK_HEAD_LENGTH + length, (unsigned long long)left(reader));
        return UINT32_MAX;
    }
    return length;
}

static bool
next_block(struct hw_trace_reader *reader, struct hw_trace_block_read *block)
{
    if (left(reader) == 0) return fail(reader, reader->offset, "cut short, or still being written: no end block");
    if (left(reader) < HW_TRACE_BLOCK_HEAD_LENGTH) {
        return fail(reader, reader->offset, "cut short: %u bytes that are no block", (unsigned)left(reader));
    }
    const uint8_t *head = bytes_at(reader, HW_TRACE_BLOCK_HEAD_LENGTH);
    if (!head) return false;
    uint32_t length = sensible_length(reader, head);
    if (length == UINT32_MAX) return false;
    head = bytes_at(reader, HW_TRACE_BLOCK_HEAD_LENGTH + (size_t)length);
    if (!head) return false;

    uint32_t crc = hw_crc32(hw_crc32(0, head, 8), head + HW_TRACE_BLOCK_HEAD_LENGTH, length);
    if (crc != hw_u32(head + 8)) return fail(reader, reader->offset, "a block's checksum is wrong");
    *block = (struct hw_trace_block_read){ .type = hw_u32(head), .length = length, .offset = reader->offset,
                                           .payload = head + HW_TRACE_BLOCK_HEAD_LENGTH };
    reader->offset += HW_TRACE_BLOCK_HEAD_LENGTH + length;
    return true;
}

bool
hw_trace_next(struct hw_trace_reader *reader, struct hw_trace_block_read *block)
{
    if (reader->ended || !next_block(reader, block)) return false;
    if (block->type == HW_TRACE_BLOCK_HEADER) {
        hw_trace_condemn(reader, block, "a second header");
        return false;
    }
    if (block->type != HW_TRACE_BLOCK_END) return true;
    reader->ended = true;
    if (left(reader)) fail(reader, reader->offset, "%llu bytes after the end", (unsigned long long)left(reader));
    return false;
}

void
hw_trace_condemn(struct hw_trace_reader *reader, const struct hw_trace_block_read *block, const char *what)
{
    fail(reader, block->offset, "%s", what);
}

/* -- opening ------------------------------------------------------------------------------------------------------------- */

static bool
open_file(struct hw_trace_reader *reader, const char *path, uint64_t longest)
{
    struct stat facts;
    /* A pipe nobody writes to must not hold us up. */
    reader->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (reader->fd < 0) return fail(reader, 0, "can't be opened: %s", strerror(errno));
    if (fstat(reader->fd, &facts) != 0) return fail(reader, 0, "can't be read: %s", strerror(errno));
    if (!S_ISREG(facts.st_mode)) return fail(reader, 0, "is no regular file");
    if (facts.st_size == 0) return fail(reader, 0, "is empty");
    reader->size = (uint64_t)facts.st_size < longest ? (uint64_t)facts.st_size : longest;
    return make_room(reader, BUFFER_BYTES) || fail(reader, 0, "no memory");
}

static bool
read_preamble(struct hw_trace_reader *reader)
{
    size_t there = left(reader) < HW_TRACE_PREAMBLE_LENGTH ? (size_t)left(reader) : HW_TRACE_PREAMBLE_LENGTH;
    static const uint8_t nothing[HW_TRACE_MAGIC_LENGTH];
    const uint8_t *bytes = bytes_at(reader, there);
    if (!bytes) return false;
    /* What was written later refers to names that are gone. */
    if (there >= HW_TRACE_MAGIC_LENGTH && memcmp(bytes, nothing, HW_TRACE_MAGIC_LENGTH) == 0) {
        return fail(reader, 0, "begins with zeros: it was emptied while it was recorded, as by logrotate's copytruncate, and only the "
                    "copy made before can be read");
    }
    for (size_t i = 0; i < there && i < HW_TRACE_MAGIC_LENGTH; i++) {
        if (bytes[i] != (uint8_t)(HW_TRACE_MAGIC >> (8 * i))) return fail(reader, 0, "is no Headway trace");
    }
    if (there < HW_TRACE_PREAMBLE_LENGTH) return fail(reader, reader->size, "cut short before its header");
    uint32_t version = hw_u32(bytes + HW_TRACE_MAGIC_LENGTH);
    if (version > HW_TRACE_VERSION && __builtin_bswap32(version) <= HW_TRACE_VERSION) {
        return fail(reader, HW_TRACE_MAGIC_LENGTH, "has its numbers in the other byte order: a trace's are little endian on every machine");
    }
    if (version > HW_TRACE_VERSION) {
        return fail(reader, HW_TRACE_MAGIC_LENGTH, "is of version %u of the format, and this Headway reads version %u: "
                    "a newer Headway is needed", version, HW_TRACE_VERSION);
    }
    if (version == 0) return fail(reader, HW_TRACE_MAGIC_LENGTH, "is of version 0 of the format, which never was");
    reader->offset += HW_TRACE_PREAMBLE_LENGTH;
    return true;
}

static void
take_field(struct hw_bytes *bytes, char *field, size_t size)
{
    const char *text;
    uint32_t length = hw_take_text(bytes, (uint32_t)size, &text);
    size_t kept = length < size ? length : size - 1;
    memcpy(field, text, kept);
    field[kept] = 0;
}

static bool
read_header(struct hw_trace_reader *reader)
{
    struct hw_trace_block_read block;
    if (!next_block(reader, &block)) return false;
    if (block.type != HW_TRACE_BLOCK_HEADER) return fail(reader, block.offset, "the first block is no header");

    struct hw_trace_header *header = &reader->header;
    struct hw_bytes bytes = { block.payload, block.payload + block.length, false };
    header->pid = hw_take_u32(&bytes);
    header->parent_pid = hw_take_u32(&bytes);
    header->clock_ns = hw_take_varint(&bytes);
    header->wall_ns = hw_take_varint(&bytes);
    header->quantum_ns = hw_take_varint(&bytes);
    header->cpus = hw_take_u32(&bytes);
    take_field(&bytes, header->ruby, sizeof(header->ruby));
    take_field(&bytes, header->headway, sizeof(header->headway));
    take_field(&bytes, header->policy, sizeof(header->policy));
    take_field(&bytes, header->preempt, sizeof(header->preempt));
    take_field(&bytes, header->command, sizeof(header->command));
    if (bytes.bad) return fail(reader, block.offset, "the header is malformed");
    if (header->clock_ns > HW_TRACE_TIME_HIGHEST_NS || header->wall_ns > HW_TRACE_TIME_HIGHEST_NS) {
        return fail(reader, block.offset, "the header's clock is beyond every time there is");
    }
    if (header->quantum_ns > HW_TRACE_TIME_HIGHEST_NS) {
        return fail(reader, block.offset, "the header's quantum is beyond every time there is");
    }
    if (header->cpus > HW_TRACE_CPUS_MOST) {
        return fail(reader, block.offset, "the header has %u CPUs, more than any machine", header->cpus);
    }
    return true;
}

bool
hw_trace_open(struct hw_trace_reader *reader, const char *path, uint64_t longest)
{
    memset(reader, 0, sizeof(*reader));
    if (open_file(reader, path, longest) && read_preamble(reader) && read_header(reader)) return true;
    hw_trace_close(reader);
    return false;
}

void
hw_trace_close(struct hw_trace_reader *reader)
{
    if (reader->fd >= 0) close(reader->fd);
    free(reader->buffer);
    reader->fd = -1;
    reader->buffer = NULL;
    reader->capacity = reader->filled = 0;
    reader->ended = true;
}
