/* The one clock of the core: monotonic nanoseconds. Every function that decides anything takes `now` as an argument,
 * so tests and simulations bring their own. */
#ifndef HW_CLOCK_H
#define HW_CLOCK_H

#include <stdint.h>
#include <time.h>

#define HW_NS_PER_US UINT64_C(1000)
#define HW_NS_PER_MS UINT64_C(1000000)
#define HW_NS_PER_S  UINT64_C(1000000000)
#define HW_NEVER     UINT64_MAX

static inline uint64_t
hw_now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * HW_NS_PER_S + (uint64_t)ts.tv_nsec;
}

/* CPU time of the calling thread; 0: the system does not tell. */
static inline uint64_t
hw_cpu_ns(void)
{
    struct timespec ts;
    return clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts) == 0 ? (uint64_t)ts.tv_sec * HW_NS_PER_S + (uint64_t)ts.tv_nsec : 0;
}

static inline uint64_t
hw_earlier_ns(uint64_t a_ns, uint64_t b_ns)
{
    return a_ns < b_ns ? a_ns : b_ns;
}

static inline uint64_t
hw_later_ns(uint64_t a_ns, uint64_t b_ns)
{
    return a_ns > b_ns ? a_ns : b_ns;
}

/* For qsort. */
static inline int
hw_compare_ns(const void *a, const void *b)
{
    uint64_t a_ns = *(const uint64_t *)a, b_ns = *(const uint64_t *)b;
    return (a_ns > b_ns) - (a_ns < b_ns);
}

static inline void
hw_bring_forward(uint64_t *at_ns, uint64_t to_ns)
{
    if (to_ns < *at_ns) *at_ns = to_ns;
}

/* A clock that steps back counts as no time. */
static inline uint64_t
hw_elapsed_ns(uint64_t from_ns, uint64_t to_ns)
{
    return to_ns > from_ns ? to_ns - from_ns : 0;
}

#endif
