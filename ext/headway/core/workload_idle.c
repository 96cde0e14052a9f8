/* How many threads a pool has: those that did requests, and those that had nothing to do meanwhile. */
#include "workload_threads.h"

#include <stdlib.h>

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

/* From its first request to its end a thread is one of the pool. Pools shrink and grow, and some servers start a thread for each request:
 * of all there ever were, few are there at a time. */
void
hw_reading_count_workers(struct reading *r)
{
    uint64_t *begins = malloc((r->thread_count + (size_t)1) * 2 * sizeof(*begins));
    if (!begins) {
        r->failed = true;
        return;
    }
    uint64_t *ends = begins + r->thread_count;
    uint32_t count = 0;
    for (uint32_t i = 0; i < r->thread_count; i++) {
        if (r->threads[i].last_request == HW_READING_NONE) continue;
        begins[count] = r->threads[i].worked_ns;
        ends[count++] = r->threads[i].end_ns;
    }
    qsort(begins, count, sizeof(*begins), hw_compare_ns);
    qsort(ends, count, sizeof(*ends), hw_compare_ns);
    for (uint32_t begun = 0, ended = 0; begun < count; begun++) {
        while (ends[ended] < begins[begun]) ended++;
        if (begun + 1 - ended > r->process->workers) r->process->workers = begun + 1 - ended;
    }
    free(begins);
}
