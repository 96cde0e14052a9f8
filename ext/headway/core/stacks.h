/* A table of stacks, for blame: each stack and each frame is kept once, with the waits a stack has caused. Everything is allocated
 * at once; adding a stack allocates nothing. Bounded: a stack that finds no room counts as HW_STACK_FOLDED, and is counted. It serves for
 * the life of a process, in which a server under load would fill it within minutes: once it is tight, the last quarter is for stacks that
 * their giver has cut short, of which there are few.
 *
 * Changed by one at a time (the GVL sees to that), read by anybody: frames and stacks are only ever added, and the counts are raised when
 * they are there. */
#ifndef HW_STACKS_H
#define HW_STACKS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define HW_FRAMES_MOST 16384
#define HW_STACKS_MOST 8192
#define HW_STACK_DEEPEST 64 /* frames nearest to the leaf */
#define HW_STACK_FOLDED 1   /* the first stack; its only frame is the first one, in no method */

struct hw_blamed_frame {
    uint32_t method, file; /* strings; 0: none */
    uint32_t line;         /* 0: none, as in C */
};

struct hw_blamed_stack {
    uint32_t start, depth, hash; /* frames[start ... start + depth] in the pool, leaf first */
    _Atomic uint64_t weight_ns, samples;
};

struct hw_stacks {
    struct hw_blamed_frame *frames;     /* of number - 1, and so on */
    struct hw_blamed_stack *stacks;
    uint32_t *pool;              /* frame numbers */
    uint32_t *frame_table, *stack_table;
    _Atomic uint32_t frame_count, stack_count;
    uint32_t pool_used;
    _Atomic uint64_t folded;
};

bool hw_stacks_init(struct hw_stacks *stacks); /* false: memory is short; hw_stacks_add returns 0 then */
void hw_stacks_free(struct hw_stacks *stacks);

/* The stack's number, leaf first. With weight 0 that is all: it isn't blamed, and 0 if it is new to the last eighth, which is for those. */
uint32_t hw_stacks_add(struct hw_stacks *stacks, const struct hw_blamed_frame *frames, unsigned depth, uint64_t weight_ns);
/* As above, where it is known already; 0: it isn't, and nothing was added. */
uint32_t hw_stacks_add_known(struct hw_stacks *stacks, const struct hw_blamed_frame *frames, unsigned depth, uint64_t weight_ns);
bool hw_stacks_tight(const struct hw_stacks *stacks);
/* Weights and counts start at zero again. */
void hw_stacks_reset(struct hw_stacks *stacks);

#endif
