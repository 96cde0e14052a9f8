/* Threads of a pool that had nothing to do while others of it did requests. */
#include "workload_threads.h"

struct hw_trace_text
hw_reading_name(const struct reading *r, const struct reading_thread *t)
{
    const struct hw_named_thread *named = hw_tables_thread(&r->tables, t->number);
    return named ? named->name.length ? named->name : named->site : (struct hw_trace_text){ "", 0 };
}

/* The next byte that is no digit; 0: none is left. */
static char
letter(struct hw_trace_text *text)
{
    while (text->length > 0) {
        char byte = *text->bytes++;
        text->length--;
        if (byte < '0' || byte > '9') return byte;
    }
    return 0;
}

static bool
alike(struct hw_trace_text one, struct hw_trace_text other)
{
    char byte;
    do {
        byte = letter(&one);
        if (byte != letter(&other)) return false;
    } while (byte);
    return true;
}

/* Pools name their threads alike: "puma srv tp 007". */
void
hw_reading_count_idle(struct reading *r)
{
    struct hw_trace_text worker = { "", 0 };
    for (uint32_t i = 0; i < r->thread_count && worker.length == 0; i++) {
        if (r->threads[i].last_request != HW_READING_NONE) worker = hw_reading_name(r, &r->threads[i]);
    }
    if (worker.length == 0) return;
    for (uint32_t i = 0; i < r->thread_count; i++) {
        const struct reading_thread *t = &r->threads[i];
        if (!t->exited && t->last_request == HW_READING_NONE && t->depth == 0 && alike(hw_reading_name(r, t), worker)) r->process->idle++;
    }
}
