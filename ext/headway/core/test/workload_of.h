/* The workload of a trace that a test writes. */
#ifndef HW_TEST_WORKLOAD_OF_H
#define HW_TEST_WORKLOAD_OF_H

#include "trace_file.h"
#include "clock.h"
#include "workload.h"

static struct hw_workload work;
static struct hw_buffer buffer;

static inline void
clean_up(void)
{
    free(buffer.bytes);
    buffer = (struct hw_buffer){ 0 };
    hw_workload_free(&work);
}

#define AT(us) (UINT64_C(1000000) + (us) * HW_NS_PER_US)
#define COUNT(array) (sizeof(array) / sizeof(*(array)))

/* Times in microseconds from 0. */
static inline void
read_lossy_trace(uint64_t dropped, const struct hw_trace_event *events, size_t count)
{
    struct hw_trace_damage damage;
    test_clean_up = clean_up;
    hw_workload_init(&work);
    CHECK(hw_write_header(&buffer, &trace_header));
    CHECK(hw_write_string(&buffer, 1, "light", 5));
    CHECK(hw_write_string(&buffer, 2, "inner", 5));
    CHECK(hw_write_events(&buffer, events, count));
    CHECK(hw_write_thread(&buffer, 7, "ticker", 6, "", 0)); /* names may come late */
    CHECK(hw_write_thread(&buffer, 8, "ticker", 6, "", 0));
    CHECK(hw_write_dropped(&buffer, dropped, 0));
    CHECK(hw_write_end(&buffer));
    CHECK(hw_workload_read(&work, trace_file(buffer.bytes, buffer.length), UINT64_MAX, &damage));
    CHECK(hw_workload_finish(&work));
}

static inline void
read_trace(const struct hw_trace_event *events, size_t count)
{
    read_lossy_trace(3, events, count);
}

static inline void
check_step(const struct hw_request *request, unsigned place, enum hw_step_kind kind, uint64_t length_us)
{
    const struct hw_step *step = &work.steps[request->first_step + place];
    CHECK(place < request->steps);
    CHECK_EQUAL(kind, step->kind);
    CHECK_EQUAL(length_us * HW_NS_PER_US, step->length_ns);
}

#endif
