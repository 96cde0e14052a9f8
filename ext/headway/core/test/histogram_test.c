/* The histogram against the slow and obvious: a sorted array of every value; and against libhdr-histogram where there is one. */
#include "histogram.h"
#include "test.h"

#ifdef HW_TEST_HDR
#include <hdr/hdr_histogram.h>
#endif

#define VALUES 20000

static const double percentiles[] = { 0.001, 1, 10, 25, 50, 75, 90, 99, 99.9, 99.99, 100 };
#define PERCENTILES (sizeof(percentiles) / sizeof(*percentiles))

/* Evenly distributed over the magnitudes, as durations are. */
static uint64_t
random_duration_ns(void)
{
    uint64_t magnitude = UINT64_C(1) << test_random(43);
    return magnitude + test_random(magnitude);
}

static uint64_t
clamped(uint64_t value_ns)
{
    return value_ns > HW_HISTOGRAM_HIGHEST_NS ? HW_HISTOGRAM_HIGHEST_NS : value_ns;
}

/* How far a value found may lie above the one recorded. */
static uint64_t
tolerance_ns(int digits, uint64_t value_ns)
{
    for (int i = 0; i < digits; i++) value_ns /= 10;
    return value_ns;
}

static int
ascending(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return left < right ? -1 : left > right;
}

static uint64_t
total(const struct hw_histogram *h)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < h->length; i++) sum += h->counters[i];
    return sum;
}

static void
check_same(const struct hw_histogram *expected, const struct hw_histogram *actual)
{
    CHECK_EQUAL(expected->count, actual->count);
    CHECK_EQUAL(expected->max_ns, actual->max_ns);
    CHECK_EQUAL(expected->low, actual->low);
    CHECK_EQUAL(expected->high, actual->high);
    CHECK(memcmp(expected->counters, actual->counters, expected->length * sizeof(*expected->counters)) == 0);
}

TEST(an_empty_one_answers_zero)
{
    struct hw_histogram h;
    CHECK(hw_histogram_init(&h, 3));
    CHECK_EQUAL(0, hw_histogram_percentile(&h, 50));
    CHECK_EQUAL(0, hw_histogram_percentile(&h, 100));
    hw_histogram_reset(&h);
    CHECK_EQUAL(0, h.count);
    hw_histogram_free(&h);
}

TEST(values_at_and_beyond_the_bounds)
{
    const uint64_t values[] = { 0, 1, 63, 64, 99, 100, 101, HW_HISTOGRAM_HIGHEST_NS - 1, HW_HISTOGRAM_HIGHEST_NS,
                                HW_HISTOGRAM_HIGHEST_NS + 1, UINT64_MAX / 2, UINT64_MAX };
    for (int digits = 1; digits <= 4; digits++) {
        for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
            struct hw_histogram h;
            CHECK(hw_histogram_init(&h, digits));
            hw_histogram_fetch(&h, values[i]);
            CHECK_EQUAL(0, h.count);
            hw_histogram_record(&h, values[i]);
            CHECK_EQUAL(1, h.count);
            CHECK_EQUAL(1, total(&h));
            CHECK_EQUAL(clamped(values[i]), h.max_ns);
            CHECK_EQUAL(clamped(values[i]), hw_histogram_percentile(&h, 50));
            CHECK_EQUAL(clamped(values[i]), hw_histogram_percentile(&h, 250));
            hw_histogram_free(&h);
        }
    }
}

TEST(every_value_is_known_to_the_digits_asked_for)
{
    for (int digits = 1; digits <= 4; digits++) {
        struct hw_histogram h;
        CHECK(hw_histogram_init(&h, digits));
        for (unsigned round = 0; round < test_effort(20000); round++) {
            uint64_t value_ns = clamped(random_duration_ns());
            hw_histogram_record(&h, value_ns);
            hw_histogram_record(&h, HW_HISTOGRAM_HIGHEST_NS); /* so that the maximum doesn't hide the error */
            uint64_t found_ns = hw_histogram_percentile(&h, 50);
            CHECK(found_ns >= value_ns && found_ns - value_ns <= tolerance_ns(digits, value_ns),
                  "digits %d: %" PRIu64 " reads back as %" PRIu64, digits, value_ns, found_ns);
            hw_histogram_reset(&h);
        }
        hw_histogram_free(&h);
    }
}

/* Both sides of every boundary between counters. */
TEST(counters_leave_no_gap_and_never_overlap)
{
    for (int digits = 1; digits <= 3; digits++) {
        struct hw_histogram h;
        CHECK(hw_histogram_init(&h, digits));
        uint64_t first_ns = 0;
        for (uint32_t index = 0; index < h.length; index++) {
            hw_histogram_record(&h, first_ns);
            CHECK_EQUAL(1, h.counters[index]);
            hw_histogram_record(&h, HW_HISTOGRAM_HIGHEST_NS);
            uint64_t last_ns = hw_histogram_percentile(&h, 50);
            hw_histogram_record(&h, last_ns);
            if (index + 1 < h.length) CHECK_EQUAL(2, h.counters[index]);
            first_ns = last_ns + 1;
            hw_histogram_reset(&h);
        }
        CHECK(first_ns > HW_HISTOGRAM_HIGHEST_NS);
        hw_histogram_free(&h);
    }
}

TEST(percentiles_as_of_a_sorted_array)
{
    uint64_t *values = malloc(VALUES * sizeof(*values));
    for (int digits = 1; digits <= 4; digits++) {
        struct hw_histogram h;
        CHECK(hw_histogram_init(&h, digits));
        for (int i = 0; i < VALUES; i++) {
            values[i] = clamped(random_duration_ns());
            hw_histogram_record(&h, values[i]);
        }
        qsort(values, VALUES, sizeof(*values), ascending);
        CHECK_EQUAL(values[VALUES - 1], h.max_ns);
        uint64_t before_ns = 0;
        for (size_t i = 0; i < PERCENTILES; i++) {
            uint64_t rank = (uint64_t)(percentiles[i] / 100 * VALUES + 0.5);
            uint64_t expected_ns = values[rank ? rank - 1 : 0], found_ns = hw_histogram_percentile(&h, percentiles[i]);
            CHECK(found_ns >= expected_ns && found_ns - expected_ns <= tolerance_ns(digits, expected_ns),
                  "digits %d, p%g: %" PRIu64 " for %" PRIu64, digits, percentiles[i], found_ns, expected_ns);
            CHECK(found_ns >= before_ns);
            before_ns = found_ns;
        }
        hw_histogram_free(&h);
    }
    free(values);
}

TEST(merging_is_recording_both)
{
    struct hw_histogram a, b, both;
    CHECK(hw_histogram_init(&a, 2) && hw_histogram_init(&b, 2) && hw_histogram_init(&both, 2));
    for (unsigned round = 0; round < test_effort(200); round++) {
        unsigned in_a = (unsigned)test_random(100), in_b = (unsigned)test_random(100);
        for (unsigned i = 0; i < in_a + in_b; i++) {
            uint64_t value_ns = random_duration_ns();
            hw_histogram_record(i < in_a ? &a : &b, value_ns);
            hw_histogram_record(&both, value_ns);
        }
        hw_histogram_merge(&a, &b);
        check_same(&both, &a);
        hw_histogram_reset(&a);
        hw_histogram_reset(&b);
        hw_histogram_reset(&both);
    }
    hw_histogram_free(&a);
    hw_histogram_free(&b);
    hw_histogram_free(&both);
}

TEST(a_reset_one_is_as_new)
{
    struct hw_histogram used, new;
    CHECK(hw_histogram_init(&used, 3) && hw_histogram_init(&new, 3));
    for (unsigned round = 0; round < 50; round++) {
        for (unsigned i = test_random(50); i > 0; i--) hw_histogram_record(&used, random_duration_ns());
        hw_histogram_reset(&used);
        check_same(&new, &used);
    }
    hw_histogram_free(&used);
    hw_histogram_free(&new);
}

TEST(one_without_memory_takes_everything_and_keeps_nothing)
{
    struct hw_histogram none, some;
    memset(&none, 0, sizeof(none));
    CHECK(hw_histogram_init(&some, 2));
    hw_histogram_record(&none, 100);
    hw_histogram_record(&some, 100);
    hw_histogram_merge(&none, &some);
    hw_histogram_merge(&some, &none);
    CHECK_EQUAL(0, none.count);
    CHECK_EQUAL(1, some.count);
    CHECK_EQUAL(0, hw_histogram_percentile(&none, 99));
    hw_histogram_reset(&none);
    hw_histogram_free(&none);
    hw_histogram_free(&some);
}

/* A counter that is full stays full, and percentiles stay right. */
TEST(a_full_counter_spoils_no_percentile)
{
    struct hw_histogram h, more;
    CHECK(hw_histogram_init(&h, 2) && hw_histogram_init(&more, 2));
    hw_histogram_record(&h, 1000);
    h.counters[h.low] = UINT32_MAX;
    h.count = UINT32_MAX;
    for (int i = 0; i < 1000; i++) hw_histogram_record(&h, 1000);
    hw_histogram_record(&h, HW_HISTOGRAM_HIGHEST_NS);
    hw_histogram_merge(&more, &h);
    hw_histogram_merge(&more, &h);
    CHECK_EQUAL(total(&h), h.count);
    CHECK_EQUAL(total(&more), more.count);
    CHECK(hw_histogram_percentile(&more, 99.9) < 1100);
    hw_histogram_free(&h);
    hw_histogram_free(&more);
}

/* Against every value in turn; one that shares its counter with the bound may count for the next bound. */
TEST(cumulative_counts_as_of_all_values)
{
    const uint64_t bounds_ns[] = { 0, 100, 10000, 10000000, 2500000000, HW_HISTOGRAM_HIGHEST_NS };
    enum { BOUNDS = sizeof(bounds_ns) / sizeof(*bounds_ns) };
    for (int digits = 1; digits <= 4; digits++) {
        struct hw_histogram h;
        uint64_t counts[BOUNDS], at_most[BOUNDS] = { 0 }, surely[BOUNDS] = { 0 };
        CHECK(hw_histogram_init(&h, digits));
        hw_histogram_cumulative(&h, bounds_ns, BOUNDS, counts);
        for (int b = 0; b < BOUNDS; b++) CHECK_EQUAL(0, counts[b]);
        for (int i = 0; i < VALUES; i++) {
            uint64_t value_ns = clamped(random_duration_ns());
            hw_histogram_record(&h, value_ns);
            for (int b = 0; b < BOUNDS; b++) {
                at_most[b] += value_ns <= bounds_ns[b];
                surely[b] += value_ns + tolerance_ns(digits, bounds_ns[b]) <= bounds_ns[b];
            }
        }
        hw_histogram_cumulative(&h, bounds_ns, BOUNDS, counts);
        for (int b = 0; b < BOUNDS; b++) CHECK(surely[b] <= counts[b] && counts[b] <= at_most[b]);
        hw_histogram_free(&h);
    }
}

#ifdef HW_TEST_HDR
TEST(as_libhdr_histogram_has_it)
{
    for (int digits = 1; digits <= 4; digits++) {
        struct hw_histogram h;
        struct hdr_histogram *hdr;
        CHECK(hw_histogram_init(&h, digits));
        CHECK(hdr_init(1, (int64_t)HW_HISTOGRAM_HIGHEST_NS, digits, &hdr) == 0);
        for (int i = 0; i < VALUES; i++) {
            uint64_t value_ns = clamped(random_duration_ns());
            hw_histogram_record(&h, value_ns);
            CHECK(hdr_record_value(hdr, (int64_t)value_ns));
        }
        CHECK_EQUAL((uint64_t)hdr->total_count, h.count);
        for (int32_t i = 0; i < hdr->counts_len; i++) {
            CHECK_EQUAL((uint64_t)hdr->counts[i], (uint32_t)i < h.length ? h.counters[i] : 0);
        }
        for (size_t i = 0; i < PERCENTILES; i++) {
            uint64_t expected_ns = (uint64_t)hdr_value_at_percentile(hdr, percentiles[i]);
            if (expected_ns > h.max_ns) expected_ns = h.max_ns; /* theirs may exceed the highest value recorded */
            CHECK_EQUAL(expected_ns, hw_histogram_percentile(&h, percentiles[i]));
        }
        hdr_close(hdr);
        hw_histogram_free(&h);
    }
}
#else
TEST(as_libhdr_histogram_has_it)
{
    puts("libhdr-histogram is missing: not compared with it");
}
#endif

TESTS({ "empty", an_empty_one_answers_zero }, { "bounds", values_at_and_beyond_the_bounds },
      { "digits", every_value_is_known_to_the_digits_asked_for }, { "counters", counters_leave_no_gap_and_never_overlap },
      { "percentiles", percentiles_as_of_a_sorted_array }, { "merge", merging_is_recording_both }, { "reset", a_reset_one_is_as_new },
      { "no_memory", one_without_memory_takes_everything_and_keeps_nothing },
      { "full", a_full_counter_spoils_no_percentile }, { "cumulative", cumulative_counts_as_of_all_values },
      { "hdr", as_libhdr_histogram_has_it })
