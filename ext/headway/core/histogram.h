/* Log-linear histogram of durations, after Gil Tene's HdrHistogram: values are counted in buckets whose width doubles with
 * each power of two, each bucket cut into the same number of linear steps, so that every value from 100 ns to 1 h is known
 * to the digits asked for. Shorter ones are known to the nanosecond, longer ones count as 1 h.
 *
 * Recording is a handful of instructions and touches one counter; it never allocates. Not synchronised: the owner's lock
 * protects it. */
#ifndef HW_HISTOGRAM_H
#define HW_HISTOGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HW_HISTOGRAM_HIGHEST_NS UINT64_C(3600000000000)

struct hw_histogram {
    uint64_t count;
    uint64_t max_ns;
    uint32_t length;          /* counters in use by this precision */
    uint8_t step_bits;        /* 2^step_bits linear steps of 1 ns in the first bucket */
    uint32_t low, high;       /* counters outside low..high are zero: reset and merge skip them */
    uint32_t *counters;
};

/* digits: 1 to 4. Returns false when memory is short; the histogram is then empty and recording into it does nothing. */
bool hw_histogram_init(struct hw_histogram *histogram, int digits);
void hw_histogram_free(struct hw_histogram *histogram);
void hw_histogram_reset(struct hw_histogram *histogram);
void hw_histogram_record(struct hw_histogram *histogram, uint64_t value_ns);

/* What recording the value will touch, so that it is there by then: cache_line.h. */
void hw_histogram_fetch(const struct hw_histogram *histogram, uint64_t value_ns);

/* Adds every value of `from`, which has the same precision. */
void hw_histogram_merge(struct hw_histogram *into, const struct hw_histogram *from);

/* The highest value equivalent to the one at `percentile` (0 < percentile <= 100); 0 when nothing was recorded. */
uint64_t hw_histogram_percentile(const struct hw_histogram *histogram, double percentile);

/* For each of the ascending bounds, how many values are known to be at most that long. A value that shares its counter with
 * longer ones than the bound isn't: bounds are as exact as the digits are. */
void hw_histogram_cumulative(const struct hw_histogram *histogram, const uint64_t *bounds_ns, size_t bounds, uint64_t *counts);

#endif
