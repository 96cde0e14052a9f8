#include "stacks.h"

#include "strings.h"

#include <stdlib.h>
#include <string.h>

#define FRAME_TABLE (HW_FRAMES_MOST * 2)
#define STACK_TABLE (HW_STACKS_MOST * 2)
#define POOL (HW_STACKS_MOST * 32)

bool
hw_stacks_init(struct hw_stacks *s)
{
    memset(s, 0, sizeof(*s));
    s->frames = calloc(HW_FRAMES_MOST, sizeof(*s->frames));
    s->stacks = calloc(HW_STACKS_MOST, sizeof(*s->stacks));
    s->pool = calloc(POOL, sizeof(*s->pool));
    s->frame_table = calloc(FRAME_TABLE, sizeof(*s->frame_table));
    s->stack_table = calloc(STACK_TABLE, sizeof(*s->stack_table));
    if (!s->frames || !s->stacks || !s->pool || !s->frame_table || !s->stack_table) {
        hw_stacks_free(s);
        return false;
    }
    s->frames[0].file = HW_STRING_OTHERS;
    s->pool[0] = s->pool_used = 1;
    s->frame_count = s->stack_count = 1;
    s->stacks[0].depth = 1;
    return true;
}

void
hw_stacks_free(struct hw_stacks *s)
{
    free(s->frames);
    free(s->stacks);
    free(s->pool);
    free(s->frame_table);
    free(s->stack_table);
    memset(s, 0, sizeof(*s));
}

static uint32_t
mix(uint32_t hash, uint64_t value)
{
    uint64_t product = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(product >> 32) ^ (uint32_t)product;
}

static bool
full_to(const struct hw_stacks *s, unsigned eighths)
{
    return s->frame_count >= HW_FRAMES_MOST / 8 * eighths || s->stack_count >= HW_STACKS_MOST / 8 * eighths ||
           s->pool_used >= POOL / 8 * eighths;
}

bool
hw_stacks_tight(const struct hw_stacks *s)
{
    return full_to(s, 6);
}

/* 0: no room, or, if it is not to be added, it isn't there */
static uint32_t
frame_number(struct hw_stacks *s, struct hw_blamed_frame frame, bool add)
{
    uint32_t place = mix(frame.line, (uint64_t)frame.method << 32 | frame.file) % FRAME_TABLE;
    for (; s->frame_table[place]; place = (place + 1) % FRAME_TABLE) {
        const struct hw_blamed_frame *other = &s->frames[s->frame_table[place] - 1];
        if (other->method == frame.method && other->file == frame.file && other->line == frame.line) return s->frame_table[place];
    }
    uint32_t count = s->frame_count;
    if (!add || count == HW_FRAMES_MOST) return 0;
    s->frames[count] = frame;
    s->frame_table[place] = ++count;
    s->frame_count = count;
    return count;
}

/* 0: as above */
static uint32_t
stack_number(struct hw_stacks *s, const uint32_t *frames, unsigned depth, bool add)
{
    uint32_t hash = depth;
    for (unsigned i = 0; i < depth; i++) hash = mix(hash, frames[i]);
    uint32_t place = hash % STACK_TABLE;
    for (; s->stack_table[place]; place = (place + 1) % STACK_TABLE) {
        const struct hw_blamed_stack *stack = &s->stacks[s->stack_table[place] - 1];
        if (stack->hash == hash && stack->depth == depth &&
            memcmp(&s->pool[stack->start], frames, depth * sizeof(*frames)) == 0) return s->stack_table[place];
    }
    uint32_t count = s->stack_count;
    if (!add || count == HW_STACKS_MOST || s->pool_used + depth > POOL) return 0;
    s->stacks[count] = (struct hw_blamed_stack){ .start = s->pool_used, .depth = depth, .hash = hash };
    memcpy(&s->pool[s->pool_used], frames, depth * sizeof(*frames));
    s->pool_used += depth;
    s->stack_table[place] = ++count;
    s->stack_count = count;
    return count;
}

static uint32_t
number_of(struct hw_stacks *s, const struct hw_blamed_frame *frames, unsigned depth, bool add)
{
    uint32_t numbers[HW_STACK_DEEPEST];
    if (depth > HW_STACK_DEEPEST) depth = HW_STACK_DEEPEST;
    for (unsigned i = 0; i < depth; i++) {
        numbers[i] = frame_number(s, frames[i], add);
        if (numbers[i] == 0) return 0;
    }
    return stack_number(s, numbers, depth, add);
}

static uint32_t
weigh(struct hw_stacks *s, uint32_t number, uint64_t weight_ns)
{
    if (weight_ns == 0) return number;
    s->stacks[number - 1].weight_ns += weight_ns;
    s->stacks[number - 1].samples++;
    return number;
}

uint32_t
hw_stacks_add(struct hw_stacks *s, const struct hw_blamed_frame *frames, unsigned depth, uint64_t weight_ns)
{
    if (s->frames == NULL || depth == 0) return 0;
    uint32_t number = number_of(s, frames, depth, weight_ns > 0 || !full_to(s, 7));
    if (number == 0 && weight_ns == 0) return 0;
    if (number == 0) s->folded++;
    return weigh(s, number ? number : HW_STACK_FOLDED, weight_ns);
}

uint32_t
hw_stacks_add_known(struct hw_stacks *s, const struct hw_blamed_frame *frames, unsigned depth, uint64_t weight_ns)
{
    if (s->frames == NULL || depth == 0) return 0;
    uint32_t number = number_of(s, frames, depth, false);
    return number ? weigh(s, number, weight_ns) : 0;
}

void
hw_stacks_reset(struct hw_stacks *s)
{
    for (uint32_t i = 0; i < s->stack_count; i++) s->stacks[i].weight_ns = s->stacks[i].samples = 0;
    s->folded = 0;
}
