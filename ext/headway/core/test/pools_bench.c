/* Pools of threads that all do the same, in the simulated VM: make pools. Not a test: prints figures.
 *
 * Least attained service first is at its best where work is of two kinds. Where it is all of one kind the shorter half gains and the
 * longest lose against first come, first served, which is what stock Ruby does with holds below its slice. Work and sleep are distributed
 * exponentially. */
#include "simulated_vm.h"

#define LENGTH_NS MS(60000)

struct pool {
    unsigned threads;
    uint64_t cpu_ns, sleep_ns;
};

static const struct pool pools[] = {
    { 6, US(80), US(40) },   { 6, MS(3), US(40) },    { 6, MS(3), MS(5) },    { 6, MS(3), MS(20) },
    { 10, MS(3), MS(30) },   { 10, MS(10), MS(80) },  { 10, MS(10), MS(120) }, { 10, MS(20), MS(200) },
};

static void
print_times(const struct pool *pool, enum hw_policy_kind kind)
{
    struct hw_histogram times;
    simulate_pool(kind, pool->threads, pool->cpu_ns, pool->sleep_ns, LENGTH_NS, &times);
    uint64_t ran_ns = 0;
    for (unsigned i = 0; i < pool->threads; i++) ran_ns += vm.actors[i].ran_ns;
    printf("%-5s GVL held %3.0f %%", kind == HW_FAIR ? "fair" : "fifo", 100.0 * (double)ran_ns / (double)LENGTH_NS);
    static const double percents[] = { 50, 90, 99, 99.9 };
    for (int i = 0; i < 4; i++) printf("  p%g %6.1f ms", percents[i], (double)hw_histogram_percentile(&times, percents[i]) / 1e6);
    printf("  forced switches %" PRIu64 " of %" PRIu64 "\n", vm.forced, times.count);
    hw_histogram_free(&times);
}

TEST(pools_that_all_do_the_same)
{
    for (size_t i = 0; i < sizeof(pools) / sizeof(*pools); i++) {
        printf("%u threads that compute for %g ms and sleep for %g\n", pools[i].threads, (double)pools[i].cpu_ns / 1e6,
               (double)pools[i].sleep_ns / 1e6);
        print_times(&pools[i], HW_OBSERVE); /* the VM's queue as it is */
        print_times(&pools[i], HW_FAIR);
    }
}

TESTS({ "pools", pools_that_all_do_the_same })
