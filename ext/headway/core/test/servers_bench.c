/* Servers in the simulated VM: make servers. Not a test: prints figures. Stock Ruby's queue and fair get the very same requests, far more
 * of them than a real server could be given in an hour, so that a p99 of the rare ones says something. "said": under fair, and the heavy
 * ones are in a Headway.batch { }. */
#include "simulated_server.h"

#define OPEN_NS MS(2000000)
#define CLOSED_NS MS(100000)

static const struct serving servers[] = {
    /* a mix, as bin/bench-server's */
    { .threads = 10, .load = 0.50, .heavy_share = 0.1, .heavy_ns = MS(150), .light_pieces = 5, .light_ns = MS(1) },
    { .threads = 10, .load = 0.70, .heavy_share = 0.1, .heavy_ns = MS(150), .light_pieces = 5, .light_ns = MS(1) },
    { .threads = 10, .load = 0.85, .heavy_share = 0.1, .heavy_ns = MS(150), .light_pieces = 5, .light_ns = MS(1) },
    { .threads = 5, .load = 0.50, .heavy_share = 0.1, .heavy_ns = MS(150), .light_pieces = 5, .light_ns = MS(1) },
    { .threads = 10, .load = 0.70, .heavy_share = 0.1, .heavy_ns = MS(150), .light_pieces = 1, .light_ns = MS(6) },
    { .threads = 10, .load = 0.70, .heavy_share = 0.1, .heavy_ns = MS(50), .light_pieces = 5, .light_ns = MS(1), .exponential = true },
    /* all of one kind */
    { .threads = 5, .load = 0.70, .light_pieces = 1, .light_ns = MS(1), .exponential = true },
    { .threads = 5, .load = 0.70, .light_pieces = 1, .light_ns = MS(3), .exponential = true },
    { .threads = 5, .load = 0.70, .light_pieces = 1, .light_ns = MS(10), .exponential = true },
    { .threads = 5, .load = 0.70, .light_pieces = 1, .light_ns = MS(30), .exponential = true },
    /* at saturation */
    { .threads = 5, .connections = 10, .light_pieces = 1, .light_ns = US(100), .exponential = true },
    { .threads = 5, .connections = 10, .light_pieces = 1, .light_ns = US(300), .exponential = true },
    { .threads = 5, .connections = 10, .light_pieces = 1, .light_ns = MS(1), .exponential = true },
    { .threads = 5, .connections = 10, .light_pieces = 1, .light_ns = MS(3), .exponential = true },
    { .threads = 10, .connections = 20, .heavy_share = 0.1, .heavy_ns = MS(150), .light_pieces = 5, .light_ns = MS(1) },
};

static void
print_times(const char *what, const struct hw_histogram *times)
{
    static const double percents[] = { 50, 99, 99.9 };
    if (times->count == 0) return;
    printf("  %s", what);
    for (int i = 0; i < 3; i++) printf(" p%g %.1f", percents[i], (double)hw_histogram_percentile(times, percents[i]) / 1e6);
    printf(" ms");
}

static double
print_arm(const char *arm, enum hw_policy_kind kind, const struct serving *set)
{
    uint64_t length_ns = set->connections ? CLOSED_NS : OPEN_NS;
    simulate_server(kind, set, length_ns);
    uint64_t count = server.light.count + server.heavy.count;
    printf("  %s %6.0f a second", arm, (double)count / (double)length_ns * 1e9);
    print_times("light", &server.light);
    print_times("heavy", &server.heavy);
    printf("  forced switches %.3f a request", (double)vm.forced / (double)count);
    double heavy_p99 = (double)hw_histogram_percentile(&server.heavy, 99);
    hw_histogram_free(&server.light);
    hw_histogram_free(&server.heavy);
    return heavy_p99;
}

static void
print_server(const struct serving *set)
{
    printf("%u threads, ", set->threads);
    if (set->connections) printf("%u connections", set->connections);
    else printf("%g %% load", 100 * set->load);
    printf("; %u x %g ms%s", set->light_pieces, (double)set->light_ns / 1e6, set->exponential ? ", exponential" : "");
    if (set->heavy_share > 0) printf("; %g %% compute for %g ms", 100 * set->heavy_share, (double)set->heavy_ns / 1e6);
    puts("");
    double fifo_ns = print_arm("fifo", HW_OBSERVE, set);
    puts("");
    double fair_ns = print_arm("fair", HW_FAIR, set);
    if (set->heavy_share == 0) {
        puts("");
        return;
    }
    struct serving said = *set;
    said.heavy_say_so = true;
    printf("  heavy p99 %.2f x\n", fair_ns / fifo_ns);
    double said_ns = print_arm("said", HW_FAIR, &said);
    printf("  heavy p99 %.2f x\n", said_ns / fifo_ns);
}

TEST(servers_)
{
    for (size_t i = 0; i < sizeof(servers) / sizeof(*servers); i++) print_server(&servers[i]);
}

TESTS({ "servers", servers_ })
