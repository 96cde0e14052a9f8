/* Durations of one kind: exact count, sum and maximum, and a histogram for the rest, which takes memory from the first
 * duration on. */
#ifndef HW_DURATIONS_H
#define HW_DURATIONS_H

#include "histogram.h"

struct hw_durations {
    uint64_t count, total_ns, max_ns;
    struct hw_histogram histogram;
};

/* digits: the histogram's precision, always the same. False: no memory. */
bool hw_durations_add(struct hw_durations *durations, uint64_t duration_ns, int digits);
void hw_durations_free(struct hw_durations *durations);

/* Never above the maximum; 0 when there are none. */
uint64_t hw_durations_percentile(const struct hw_durations *durations, double percentile);

#endif
