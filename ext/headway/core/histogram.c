#include "histogram.h"

#include <stdlib.h>
#include <string.h>

static int
highest_bit(uint64_t value)
{
    return 63 - __builtin_clzll(value | 1);
}

/* Bucket 0 spans 2^step_bits steps of 1 ns; every later bucket contributes only its upper half, the lower one being
 * what the buckets before it cover already. */
static uint32_t
index_of(const struct hw_histogram *h, uint64_t value_ns)
{
    int bucket = highest_bit(value_ns | ((UINT64_C(1) << h->step_bits) - 1)) - h->step_bits + 1;
    uint64_t step = value_ns >> bucket;
    return (uint32_t)(((uint64_t)bucket << (h->step_bits - 1)) + step);
}

static uint64_t
highest_equivalent(const struct hw_histogram *h, uint32_t index)
{
    uint32_t half = UINT32_C(1) << (h->step_bits - 1);
    uint32_t bucket = index < 2 * half ? 0 : index / half - 1;
    uint64_t step = index - (uint64_t)bucket * half;
    return ((step + 1) << bucket) - 1;
}

bool
hw_histogram_init(struct hw_histogram *h, int digits)
{
    memset(h, 0, sizeof(*h));
    uint64_t steps = 2;
    for (int i = 0; i < digits; i++) steps *= 10;
    h->step_bits = (uint8_t)(highest_bit(steps - 1) + 1);
    h->length = index_of(h, HW_HISTOGRAM_HIGHEST_NS) + 1;
    h->low = UINT32_MAX;
    h->counters = calloc(h->length, sizeof(*h->counters));
    return h->counters != NULL;
}

void
hw_histogram_free(struct hw_histogram *h)
{
    free(h->counters);
    memset(h, 0, sizeof(*h));
}

void
hw_histogram_reset(struct hw_histogram *h)
{
    if (h->count == 0) return;
    memset(h->counters + h->low, 0, (size_t)(h->high - h->low + 1) * sizeof(*h->counters));
    h->count = h->max_ns = 0;
    h->low = UINT32_MAX;
    h->high = 0;
}

void
hw_histogram_fetch(const struct hw_histogram *h, uint64_t value_ns)
{
    if (h->counters && value_ns <= HW_HISTOGRAM_HIGHEST_NS) __builtin_prefetch(&h->counters[index_of(h, value_ns)], 1);
}

void
hw_histogram_record(struct hw_histogram *h, uint64_t value_ns)
{
    if (!h->counters) return;
    if (value_ns > HW_HISTOGRAM_HIGHEST_NS) value_ns = HW_HISTOGRAM_HIGHEST_NS;

    uint32_t index = index_of(h, value_ns);
    if (h->counters[index] == UINT32_MAX) return; /* full: four billion of one duration tell enough */
    h->counters[index]++;
    if (index < h->low) h->low = index;
    if (index > h->high) h->high = index;
    if (value_ns > h->max_ns) h->max_ns = value_ns;
    h->count++;
}

void
hw_histogram_merge(struct hw_histogram *into, const struct hw_histogram *from)
{
    if (from->count == 0 || !into->counters || into->length != from->length) return;
    for (uint32_t i = from->low; i <= from->high; i++) {
        uint32_t room = UINT32_MAX - into->counters[i];
        uint32_t added = from->counters[i] < room ? from->counters[i] : room;
        into->counters[i] += added;
        into->count += added;
    }
    if (from->low < into->low) into->low = from->low;
    if (from->high > into->high) into->high = from->high;
    if (from->max_ns > into->max_ns) into->max_ns = from->max_ns;
}

uint64_t
hw_histogram_percentile(const struct hw_histogram *h, double percentile)
{
    if (h->count == 0) return 0;
    if (percentile > 100.0) percentile = 100.0;

    uint64_t rank = (uint64_t)(percentile / 100.0 * (double)h->count + 0.5);
    if (rank < 1) rank = 1;

    uint64_t seen = 0;
    for (uint32_t i = h->low; i <= h->high; i++) {
        seen += h->counters[i];
        if (seen >= rank) {
            uint64_t value_ns = highest_equivalent(h, i);
            return value_ns < h->max_ns ? value_ns : h->max_ns;
        }
    }
    return h->max_ns;
}

void
hw_histogram_cumulative(const struct hw_histogram *h, const uint64_t *bounds_ns, size_t bounds, uint64_t *counts)
{
    uint64_t seen = 0;
    uint32_t i = h->low;
    for (size_t bound = 0; bound < bounds; bound++) {
        for (; h->count > 0 && i <= h->high && highest_equivalent(h, i) <= bounds_ns[bound]; i++) seen += h->counters[i];
        counts[bound] = seen;
    }
}
