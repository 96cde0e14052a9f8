#include "encode_tables.h"

/* Stacks are counted first, then frames, then strings: whatever one is made of is there when it is. */
void
hw_encode_tables(struct hw_buffer *buffer, const struct hw_strings *strings, const struct hw_stacks *stacks, struct hw_encoded *done)
{
    uint32_t stack_count = stacks->stack_count, frame_count = stacks->frame_count;
    for (uint32_t count = strings->count; done->strings < count; ++done->strings) {
        size_t length;
        const char *bytes = hw_strings_get(strings, done->strings + 1, &length);
        if (!hw_write_string(buffer, done->strings + 1, bytes, length)) return;
    }
    for (; done->frames < frame_count; ++done->frames) {
        const struct hw_blamed_frame *frame = &stacks->frames[done->frames];
        if (!hw_write_frame(buffer, done->frames + 1, frame->method, frame->file, frame->line)) return;
    }
    for (; done->stacks < stack_count; ++done->stacks) {
        const struct hw_blamed_stack *stack = &stacks->stacks[done->stacks];
        if (!hw_write_stack(buffer, done->stacks + 1, &stacks->pool[stack->start], stack->depth)) return;
    }
}
