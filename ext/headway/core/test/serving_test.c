/* What the policy promises to the requests of a server, against first come, first served, as on stock Ruby: the simulated server. */
#include "simulated_server.h"

struct served {
    double light_p99_ns, heavy_p99_ns;
    uint64_t count;
};

static struct served
serve(enum hw_policy_kind kind, const struct serving *set, uint64_t length_ns)
{
    simulate_server(kind, set, length_ns);
    struct served served = {
        .light_p99_ns = (double)hw_histogram_percentile(&server.light, 99),
        .heavy_p99_ns = (double)hw_histogram_percentile(&server.heavy, 99),
        .count = server.light.count + server.heavy.count,
    };
    uint64_t at_work = 0;
    for (unsigned i = 0; i < set->threads; i++) at_work += !server.workers[i].idle;
    CHECK(served.count + at_work == server.first, "%" PRIu64 " of %" PRIu64, served.count, server.first);
    hw_histogram_free(&server.light);
    hw_histogram_free(&server.heavy);
    return served;
}

TEST(light_requests_no_longer_wait_for_heavy_ones_which_hardly_take_longer)
{
    static const struct { double load; uint64_t heavy_ns; double heavy_at_most; } cases[] = {
        { 0.5, MS(150), 1.5 }, { 0.7, MS(150), 1.7 }, { 0.5, MS(250), 1.4 }, { 0.7, MS(250), 1.4 }
    };
    for (size_t i = 0; i < (test_in_brief() ? 1 : sizeof(cases) / sizeof(*cases)); i++) {
        struct serving set = { .threads = 10, .load = cases[i].load, .heavy_share = 0.1, .heavy_ns = cases[i].heavy_ns, .light_pieces = 5,
                               .light_ns = MS(1) };
        struct served fifo = serve(HW_OBSERVE, &set, MS(300000)), fair = serve(HW_FAIR, &set, MS(300000));
        CHECK(12 * fair.light_p99_ns < fifo.light_p99_ns, "%zu: %.0f ns, %.0f", i, fair.light_p99_ns, fifo.light_p99_ns);
        CHECK(fair.heavy_p99_ns < cases[i].heavy_at_most * fifo.heavy_p99_ns, "%zu: %.0f ns, %.0f", i, fair.heavy_p99_ns, fifo.heavy_p99_ns);
    }
}

TEST(a_saturated_server_of_short_requests_answers_as_many_as_fast)
{
    static const uint64_t light_ns[] = { US(100), US(300), US(600) };
    for (int i = 0; i < (test_in_brief() ? 1 : 3); i++) {
        struct serving set = { .threads = 5, .connections = 10, .light_pieces = 1, .light_ns = light_ns[i], .exponential = true };
        struct served fifo = serve(HW_OBSERVE, &set, MS(10000)), fair = serve(HW_FAIR, &set, MS(10000));
        CHECK((double)fair.count > 0.97 * (double)fifo.count, "%d: %" PRIu64 ", %" PRIu64, i, fair.count, fifo.count);
        CHECK(fair.light_p99_ns < 1.5 * fifo.light_p99_ns, "%d: %.0f ns, %.0f", i, fair.light_p99_ns, fifo.light_p99_ns);
    }
}

TESTS({ "mix", light_requests_no_longer_wait_for_heavy_ones_which_hardly_take_longer },
      { "saturated", a_saturated_server_of_short_requests_answers_as_many_as_fast })
