#include "encode_tables.h"

static bool
encode_stack(struct hw_buffer *buffer, const struct hw_stacks *stacks, uint32_t index, uint32_t frames)
{
    const struct hw_blamed_stack *stack = &stacks->stacks[index];
    const uint32_t *numbers = &stacks->pool[stack->start];
    for (uint32_t i = 0; i < stack->depth; i++) {
        if (numbers[i] > frames) return false; /* not named yet */
    }
    return hw_write_stack(buffer, index + 1, numbers, stack->depth);
}

/* Stacks are counted first, then frames, then strings: whatever one is made of is there when it is. */
void
hw_encode_tables(struct hw_buffer *buffer, const struct hw_strings *strings, const struct hw_stacks *stacks, struct hw_encoded *done)
{
    uint32_t stack_count = stacks->stack_count, frame_count = stacks->frame_count;
    uint32_t named = done->frames;
    while (named < frame_count && stacks->frames[named].method) named++;
    for (uint32_t count = strings->count; done->strings < count; ++done->strings) {
        size_t length;
        const char *bytes = hw_strings_get(strings, done->strings + 1, &length);
        if (!hw_write_string(buffer, done->strings + 1, bytes, length)) return;
    }
    for (; done->frames < named; ++done->frames) {
        const struct hw_blamed_frame *frame = &stacks->frames[done->frames];
        if (!hw_write_frame(buffer, done->frames + 1, frame->method, frame->file, frame->line)) return;
    }
    for (; done->stacks < stack_count; ++done->stacks) {
        if (!encode_stack(buffer, stacks, done->stacks, named)) return;
    }
}
