/* The tables of one trace file: strings, threads, frames and stacks by their ids. What is defined twice counts as defined last.
 * Texts are kept in chunks until the tables are freed; beyond HW_TABLES_LONGEST bytes in all, what follows is left out. */
#ifndef HW_TRACE_TABLES_H
#define HW_TRACE_TABLES_H

#include "number_map.h"
#include "trace_reader.h"

#define HW_TABLES_LONGEST (UINT64_C(256) << 20)

struct hw_trace_text {
    const char *bytes;
    uint32_t length;
};

struct hw_named_thread {
    struct hw_trace_text name, site;
};

struct hw_trace_frame {
    uint32_t method_string, file_string, line;
};

struct hw_trace_stack {
    const uint32_t *frames; /* leaf first */
    uint32_t count;
};

/* An array that reaches as far as the highest id seen. */
struct hw_table {
    void *entries;
    uint32_t length;
};

struct hw_tables {
    struct hw_table strings, frames, stacks, threads;
    struct hw_number_map thread_at; /* thread's number -> its place in threads */
    struct hw_chunk *chunks;
    uint64_t bytes;
};

void hw_tables_free(struct hw_tables *tables);

/* Takes in a block if it is one of a table. False: malformed, or memory is short; *why says which. */
bool hw_tables_add(struct hw_tables *tables, const struct hw_trace_block_read *block, const char **why);

/* NULL, or a text of 0 bytes, for what isn't there. */
struct hw_trace_text hw_tables_string(const struct hw_tables *tables, uint32_t id);
const struct hw_trace_frame *hw_tables_frame(const struct hw_tables *tables, uint32_t id);
const struct hw_trace_stack *hw_tables_stack(const struct hw_tables *tables, uint32_t id);
const struct hw_named_thread *hw_tables_thread(const struct hw_tables *tables, uint32_t number);

#endif
