#include "vm_fixture.h"

#include <time.h>

uint64_t
now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t
ns_from_seconds(VALUE seconds)
{
    return (uint64_t)(NUM2DBL(seconds) * 1e9);
}

void
spin_ns(uint64_t duration_ns)
{
    const uint64_t end = now_ns() + duration_ns;
    while (now_ns() < end) continue;
}
