/* An analysis of events that a test makes, and what it says of threads. */
#ifndef HW_TEST_ANALYSED_H
#define HW_TEST_ANALYSED_H

#include "trace_file.h"

static struct hw_analysis analysis;

static inline void
analyse_events(const struct hw_trace_event *events, size_t count, bool lanes)
{
    struct hw_buffer buffer = { 0 };
    struct hw_trace_damage damage;
    CHECK(hw_write_header(&buffer, &trace_header));
    write_events(&buffer, events, count);
    CHECK(hw_write_end(&buffer));
    CHECK(analyse(&analysis, lanes, buffer.bytes, buffer.length, &damage), "%s", damage.what);
    CHECK(!analysis.processes[0].damage.what[0], "%s", analysis.processes[0].damage.what);
    free(buffer.bytes);
}

#define ANALYSE(...)                                                                                                           \
    do {                                                                                                                       \
        const struct hw_trace_event events_[] = { __VA_ARGS__ };                                                               \
        analyse_events(events_, sizeof(events_) / sizeof(*events_), true);                                                     \
    } while (0)

static inline const struct hw_analysed_thread *
numbered(uint32_t number)
{
    for (uint32_t i = 0; i < analysis.thread_count; i++) {
        if (analysis.threads[i].number == number) return &analysis.threads[i];
    }
    CHECK(false, "no thread %u", number);
    return NULL;
}

static inline uint64_t
pair_of(const struct hw_number_map *caused, const struct hw_analysed_thread *waiter)
{
    uint64_t *pair = hw_number_map_find(caused, (uint32_t)(waiter - analysis.threads));
    return pair ? *pair : 0;
}

/* How long the waiter waited for the holder, or for nobody when that is NULL, while its process booted; and in all. */
static inline uint64_t
waited_at_boot(const struct hw_analysed_thread *waiter, const struct hw_analysed_thread *holder)
{
    return pair_of(holder ? &holder->caused_at_boot : &analysis.processes[waiter->process].idle_at_boot, waiter);
}

static inline uint64_t
waited_for(const struct hw_analysed_thread *waiter, const struct hw_analysed_thread *holder)
{
    return pair_of(holder ? &holder->caused : &analysis.processes[waiter->process].idle_caused, waiter) + waited_at_boot(waiter, holder);
}

/* A test that is called what it says. */
#define NAMED(test) { #test, test }

#endif
