/* The tables of strings and stacks as blocks of a trace. */
#ifndef HW_ENCODE_TABLES_H
#define HW_ENCODE_TABLES_H

#include "stacks.h"
#include "strings.h"
#include "trace_writer.h"

struct hw_encoded {
    uint32_t strings, frames, stacks;
};

/* What is there beyond `done`; any thread. */
void hw_encode_tables(struct hw_buffer *buffer, const struct hw_strings *strings, const struct hw_stacks *stacks, struct hw_encoded *done);

#endif
