#include "trace_tables.h"

#include "trace_bytes.h"
#include "trace_format.h"

#include <stdlib.h>
#include <string.h>

#define CHUNK_BYTES 65536
#define THREADS_MOST (UINT32_C(1) << 20)

struct hw_chunk {
    struct hw_chunk *next;
    size_t used, size;
    _Alignas(uint32_t) uint8_t bytes[];
};

static const char *const no_memory = "no memory for its tables";

void
hw_tables_free(struct hw_tables *tables)
{
    for (struct hw_chunk *chunk = tables->chunks, *next; chunk; chunk = next) {
        next = chunk->next;
        free(chunk);
    }
    free(tables->strings.entries);
    free(tables->frames.entries);
    free(tables->stacks.entries);
    free(tables->threads.entries);
    hw_number_map_free(&tables->thread_at);
    memset(tables, 0, sizeof(*tables));
}

/* -- memory -------------------------------------------------------------------------------------------------------------- */

/* Bytes that live as long as the tables, aligned for frame ids. */
static void *
keep(struct hw_tables *tables, size_t size)
{
    size = (size + 3) & ~(size_t)3;
    struct hw_chunk *chunk = tables->chunks;
    if (!chunk || chunk->size - chunk->used < size) {
        size_t chunk_size = size > CHUNK_BYTES ? size : CHUNK_BYTES;
        chunk = malloc(sizeof(*chunk) + chunk_size);
        if (!chunk) return NULL;
        *chunk = (struct hw_chunk){ .next = tables->chunks, .size = chunk_size };
        tables->chunks = chunk;
    }
    void *bytes = chunk->bytes + chunk->used;
    chunk->used += size;
    tables->bytes += size;
    return bytes;
}

static bool
keep_text(struct hw_tables *tables, struct hw_trace_text *text)
{
    if (text->length == 0) return true;
    char *bytes = keep(tables, text->length);
    if (!bytes) return false;
    memcpy(bytes, text->bytes, text->length);
    text->bytes = bytes;
    return true;
}

/* The entry's place, new ones zeroed; by calloc, so that a high id alone takes addresses, not memory: its record is a few bytes, and every
 * file has tables of its own. */
static void *
entry(struct hw_table *table, uint32_t id, size_t size)
{
    if (id >= table->length) {
        uint32_t length = table->length * 2 > id + 1 ? table->length * 2 : id + 1;
        uint8_t *entries = calloc(length, size);
        if (!entries) return NULL;
        if (table->length > 0) memcpy(entries, table->entries, table->length * size);
        free(table->entries);
        table->entries = entries;
        table->length = length;
    }
    return (uint8_t *)table->entries + id * size;
}

static bool
full(const struct hw_tables *tables)
{
    return tables->bytes > HW_TABLES_LONGEST;
}

/* -- records: each returns NULL, or what is wrong ------------------------------------------------------------------------ */

static const char *
add_string(struct hw_tables *tables, struct hw_bytes *bytes)
{
    uint32_t id = hw_take_u32(bytes);
    struct hw_trace_text text;
    text.length = hw_take_text(bytes, HW_TRACE_STRING_LONGEST, &text.bytes);
    if (bytes->bad) return "a malformed string";
    if (id > HW_TRACE_ID_HIGHEST || full(tables)) return NULL;
    struct hw_trace_text *place = entry(&tables->strings, id, sizeof(*place));
    if (!place || !keep_text(tables, &text)) return no_memory;
    *place = text;
    return NULL;
}

/* As keep_text; names come again and again. */
static bool
keep_other_text(struct hw_tables *tables, struct hw_trace_text *text, const struct hw_trace_text *before)
{
    bool same = text->length == before->length && text->length > 0 && memcmp(text->bytes, before->bytes, text->length) == 0;
    if (!same) return keep_text(tables, text);
    *text = *before;
    return true;
}

static const char *
add_thread(struct hw_tables *tables, struct hw_bytes *bytes)
{
    uint32_t number = hw_take_u32(bytes);
    struct hw_named_thread thread;
    thread.name.length = hw_take_text(bytes, HW_TRACE_NAME_LONGEST, &thread.name.bytes);
    thread.site.length = hw_take_text(bytes, HW_TRACE_STRING_LONGEST, &thread.site.bytes);
    if (bytes->bad) return "a malformed thread";
    if (number == UINT32_MAX || full(tables)) return NULL;
    uint64_t *at = hw_number_map_find(&tables->thread_at, number);
    if (!at) {
        uint32_t count = tables->thread_at.count;
        if (count == THREADS_MOST) return NULL;
        at = hw_number_map_put(&tables->thread_at, number);
        if (at) *at = count;
    }
    struct hw_named_thread *place = at ? entry(&tables->threads, (uint32_t)*at, sizeof(*place)) : NULL;
    if (!place) return no_memory;
    if (thread.site.length == 0) thread.site = place->site; /* whoever told only the name doesn't know it */
    if (!keep_other_text(tables, &thread.name, &place->name) || !keep_other_text(tables, &thread.site, &place->site)) return no_memory;
    *place = thread;
    return NULL;
}

static const char *
add_frame(struct hw_tables *tables, struct hw_bytes *bytes)
{
    uint32_t id = hw_take_u32(bytes);
    struct hw_trace_frame frame;
    frame.method_string = hw_take_u32(bytes);
    frame.file_string = hw_take_u32(bytes);
    frame.line = hw_take_u32(bytes);
    if (bytes->bad) return "a malformed frame";
    if (id > HW_TRACE_ID_HIGHEST) return NULL;
    struct hw_trace_frame *place = entry(&tables->frames, id, sizeof(*place));
    if (!place) return no_memory;
    *place = frame;
    return NULL;
}

static const char *
add_stack(struct hw_tables *tables, struct hw_bytes *bytes)
{
    uint32_t id = hw_take_u32(bytes);
    uint64_t count = hw_take_varint(bytes);
    /* A frame takes a byte at least: so what is kept is bounded by what was read. */
    if (bytes->bad || count > HW_TRACE_STACK_DEEPEST || count > (uint64_t)(bytes->end - bytes->at)) return "a malformed stack";
    uint32_t frames[HW_TRACE_STACK_DEEPEST];
    for (uint32_t i = 0; i < count; i++) frames[i] = hw_take_u32(bytes);
    if (bytes->bad) return "a malformed stack";
    if (id > HW_TRACE_ID_HIGHEST || full(tables)) return NULL;
    struct hw_trace_stack *place = entry(&tables->stacks, id, sizeof(*place));
    uint32_t *kept = place ? keep(tables, count * sizeof(*kept)) : NULL;
    if (!kept) return no_memory;
    memcpy(kept, frames, count * sizeof(*kept));
    *place = (struct hw_trace_stack){ .frames = kept, .count = (uint32_t)count };
    return NULL;
}

bool
hw_tables_add(struct hw_tables *tables, const struct hw_trace_block_read *block, const char **why)
{
    struct hw_bytes bytes = { block->payload, block->payload + block->length, false };
    *why = NULL;
    while (bytes.at < bytes.end && !*why) {
        switch (block->type) {
          case HW_TRACE_BLOCK_STRINGS: *why = add_string(tables, &bytes); break;
          case HW_TRACE_BLOCK_THREADS: *why = add_thread(tables, &bytes); break;
          case HW_TRACE_BLOCK_FRAMES: *why = add_frame(tables, &bytes); break;
          case HW_TRACE_BLOCK_STACKS: *why = add_stack(tables, &bytes); break;
          default: return true;
        }
    }
    return !*why;
}

/* -- look up ------------------------------------------------------------------------------------------------------------- */

struct hw_trace_text
hw_tables_string(const struct hw_tables *tables, uint32_t id)
{
    return id < tables->strings.length ? ((struct hw_trace_text *)tables->strings.entries)[id] : (struct hw_trace_text){ NULL, 0 };
}

const struct hw_trace_frame *
hw_tables_frame(const struct hw_tables *tables, uint32_t id)
{
    return id < tables->frames.length ? (struct hw_trace_frame *)tables->frames.entries + id : NULL;
}

const struct hw_trace_stack *
hw_tables_stack(const struct hw_tables *tables, uint32_t id)
{
    return id < tables->stacks.length ? (struct hw_trace_stack *)tables->stacks.entries + id : NULL;
}

const struct hw_named_thread *
hw_tables_thread(const struct hw_tables *tables, uint32_t number)
{
    uint64_t *at = hw_number_map_find(&tables->thread_at, number);
    return at ? (struct hw_named_thread *)tables->threads.entries + *at : NULL;
}
