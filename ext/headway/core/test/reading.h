/* Reading traces that may hold anything. */
#ifndef HW_TEST_READING_H
#define HW_TEST_READING_H

#include "trace_file.h"

static inline bool
says(const struct hw_trace_damage *damage, const char *text)
{
    return strstr(damage->what, text) != NULL;
}

/* Identities that hold whatever was read. */
static inline void
check_identities(const struct hw_analysis *analysis)
{
    for (uint32_t i = 0; i < analysis->thread_count; i++) {
        const struct hw_analysed_thread *thread = &analysis->threads[i];
        uint64_t sum = thread->time_ns[0] + thread->time_ns[1] + thread->time_ns[2];
        CHECK_EQUAL(thread->end_ns - thread->start_ns, sum);
    }
}

static inline void
read_anything(const void *bytes, size_t length, struct hw_trace_damage *damage)
{
    struct hw_analysis analysis;
    memset(damage, 0, sizeof(*damage));
    if (analyse(&analysis, true, bytes, length, damage)) {
        *damage = analysis.processes[0].damage;
        check_identities(&analysis);
    } else {
        CHECK(damage->what[0]);
    }
    CHECK(damage->offset <= length, "offset %llu of %zu", (unsigned long long)damage->offset, length);
    CHECK(strlen(damage->what) < sizeof(damage->what) && !strchr(damage->what, '\n'));
    hw_analysis_free(&analysis);
}

#endif
