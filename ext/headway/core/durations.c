#include "durations.h"

#include <string.h>

bool
hw_durations_add(struct hw_durations *durations, uint64_t duration_ns, int digits)
{
    if (!durations->histogram.counters && !hw_histogram_init(&durations->histogram, digits)) return false;
    hw_histogram_record(&durations->histogram, duration_ns);
    durations->count++;
    durations->total_ns += duration_ns;
    if (duration_ns > durations->max_ns) durations->max_ns = duration_ns;
    return true;
}

void
hw_durations_free(struct hw_durations *durations)
{
    hw_histogram_free(&durations->histogram);
    memset(durations, 0, sizeof(*durations));
}

uint64_t
hw_durations_percentile(const struct hw_durations *durations, double percentile)
{
    return hw_histogram_percentile(&durations->histogram, percentile);
}
