/* What threads held the GVL for while others waited: the heaviest lines of code, of all stacks that were there when they did. */
#include "control.h"

#include <stdlib.h>
#include <string.h>

#define LINES 10

/* A frame of the program: no function of C, and no method of Ruby's own, as Kernel#loop is. */
static bool
is_the_programs(const struct hw_control *control, const struct hw_blamed_frame *frame)
{
    static const char internal[] = "<internal:";
    size_t length;
    if (frame->line == 0) return false;
    const char *file = hw_strings_get(control->teller.strings, frame->file, &length);
    return length < sizeof(internal) || memcmp(file, internal, sizeof(internal) - 1) != 0;
}

/* The number of the innermost frame that is the program's; else of the innermost. */
static uint32_t
frame_to_blame(const struct hw_control *control, const struct hw_blamed_stack *stack)
{
    const uint32_t *numbers = &control->teller.stacks->pool[stack->start];
    for (uint32_t i = 0; i < stack->depth; i++) {
        if (is_the_programs(control, &control->teller.stacks->frames[numbers[i] - 1])) return numbers[i];
    }
    return numbers[0];
}

/* The waits by frame, in billionths of seconds; NULL: memory is short. */
static uint64_t *
weights_of_frames(const struct hw_control *control, uint32_t frames, uint32_t count)
{
    const struct hw_stacks *stacks = control->teller.stacks;
    uint64_t *weights = calloc(frames, sizeof(*weights));
    for (uint32_t i = 0; weights && i < count; i++) {
        weights[frame_to_blame(control, &stacks->stacks[i]) - 1] += stacks->stacks[i].weight_ns;
    }
    return weights;
}

static void
add_string(struct hw_control *control, struct hw_text *answer, uint32_t number)
{
    size_t length;
    const char *bytes = hw_strings_get(control->teller.strings, number, &length);
    if (number) hw_text_string(answer, bytes, length);
    else hw_text_add(answer, "null");
}

static void
add_line(struct hw_control *control, struct hw_text *answer, uint32_t index, uint64_t weight_ns)
{
    const struct hw_blamed_frame *frame = &control->teller.stacks->frames[index];
    if (answer->length && answer->bytes[answer->length - 1] == '}') hw_text_add(answer, ",");
    hw_text_add(answer, "{\"weight\":");
    hw_text_fraction(answer, weight_ns, 9);
    hw_text_key(answer, "method");
    add_string(control, answer, frame->method);
    hw_text_key(answer, "file");
    add_string(control, answer, frame->file);
    hw_text_key(answer, "line");
    hw_text_number(answer, frame->line);
    hw_text_add(answer, "}");
}

static void
add_lines(struct hw_control *control, struct hw_text *answer, uint64_t *weights, uint32_t frames)
{
    for (int line = 0; line < LINES; line++) {
        uint32_t most = 0;
        for (uint32_t i = 1; i < frames; i++) {
            if (weights[i] > weights[most]) most = i;
        }
        if (weights[most] == 0) break;
        add_line(control, answer, most, weights[most]);
        weights[most] = 0;
    }
}

/* Stacks are counted before frames: those of a stack are there when it is. */
void
hw_answer_blame(struct hw_control *control, struct hw_text *answer)
{
    const struct hw_stacks *stacks = control->teller.stacks;
    uint32_t count = stacks->frames ? (uint32_t)stacks->stack_count : 0, frames = stacks->frame_count;
    uint64_t *weights = count ? weights_of_frames(control, frames, count) : NULL;
    uint64_t weight_ns = 0;
    for (uint32_t i = 0; weights && i < frames; i++) weight_ns += weights[i];
    hw_text_add(answer, ",\"blame\":{\"weight\":");
    hw_text_fraction(answer, weight_ns, 9);
    hw_text_add(answer, ",\"lines\":[");
    if (weights) add_lines(control, answer, weights, frames);
    hw_text_add(answer, "]}");
    free(weights);
}
