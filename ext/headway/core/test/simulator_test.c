/* The simulator against what queueing theory and arithmetic say. */
#include "simulator.h"
#include "test.h"
#include "times.h"

#include <math.h>

static struct hw_workload work;
static struct hw_simulated out;
static struct hw_simulation set;

static void
clean_up(void)
{
    hw_simulated_free(&out);
    hw_workload_free(&work);
}

/* A simulation of the VM alone, closed, one thread on one core. */
static void
begin(void)
{
    test_clean_up = clean_up;
    hw_workload_init(&work);
    memset(&out, 0, sizeof(out));
    set = (struct hw_simulation){ .workload = &work, .seed = test_seed(), .processes = 1, .threads = 1, .cores = 1,
                                  .policy = hw_policy_default, .vm_slice_ns = MS(100), .requests = test_effort(20000),
                                  .warm_up = 200, .longest_ns = HW_NEVER / 2 };
    set.policy.kind = HW_OBSERVE;
}

static void
simulate_as_it_is(void)
{
    hw_simulated_free(&out);
    CHECK(hw_simulate(&set, &out, NULL));
}

static void
simulate(void)
{
    CHECK(hw_workload_finish(&work));
    simulate_as_it_is();
}

static void
request(const char *class, uint64_t gvl_ns, uint64_t delay_ns, uint64_t gvl_after_ns)
{
    hw_workload_request(&work, hw_workload_class(&work, class, strlen(class)));
    hw_workload_step(&work, HW_STEP_GVL, gvl_ns, 0);
    if (delay_ns) hw_workload_step(&work, HW_STEP_DELAY, delay_ns, 1);
    if (gvl_after_ns) hw_workload_step(&work, HW_STEP_GVL, gvl_after_ns, 0);
}

/* A thread beside the requests that computes for ever. */
static void
hog(void)
{
    uint32_t place = hw_workload_request(&work, hw_workload_class(&work, "hog", 3));
    hw_workload_step(&work, HW_STEP_GVL, MS(1e6), 0);
    work.requests[place].track = 0;
    work.tracks = calloc(1, sizeof(*work.tracks));
    work.track_count = 1;
    work.tracks[0] = (struct hw_track){ .requests = 1, .class = work.requests[place].class, .running_ns = 1, .lived_ns = 1 };
}

static uint64_t
exponential_ns(double mean_ns)
{
    return (uint64_t)(-log(((double)test_random(1 << 30) + 0.5) / (1 << 30)) * mean_ns) + 1;
}

static double
per_second(void)
{
    return (double)out.requests / (double)out.elapsed_ns * 1e9;
}

static double
mean_ms(void)
{
    return (double)out.latency.total_ns / (double)out.latency.count / 1e6;
}

static bool
near(double expected, double actual, double tolerance)
{
    return fabs(actual - expected) <= tolerance * expected;
}

#define CHECK_NEAR(expected, actual, tolerance) CHECK(near(expected, actual, tolerance), "%g, not %g", (double)(actual), (double)(expected))

TEST(one_thread_never_waits)
{
    begin();
    request("r", MS(1), MS(4), MS(0.5));
    simulate();
    CHECK_EQUAL(MS(5.5), out.latency.max_ns);
    CHECK_NEAR(1000 / 5.5, per_second(), 0.001);
    CHECK_EQUAL(0, out.classes[0].wait_ns);
    clean_up();
}

TEST(what_follows_a_request_costs_throughput_but_no_latency)
{
    begin();
    request("r", MS(1), MS(4), MS(1));
    work.requests[0].after_ns = MS(2);
    simulate();
    CHECK_EQUAL(MS(6), out.latency.max_ns);
    CHECK_NEAR(1000 / 8.0, per_second(), 0.001);
    clean_up();
}

/* R(n) = S (1 + Q(n-1)) and so on, exactly: bursts and delays are exponential. */
TEST(closed_threads_do_what_mean_value_analysis_says)
{
    const double s_ms = 1, z_ms = 4;
    for (unsigned threads = 1; threads <= 16; threads *= 2) {
        double queue = 0, rate = 0;
        for (unsigned n = 1; n <= threads; n++) {
            double r_ms = s_ms * (1 + queue);
            rate = n / (z_ms + r_ms);
            queue = rate * r_ms;
        }
        begin();
        for (int i = 0; i < 4000; i++) request("r", exponential_ns(s_ms * 1e6), exponential_ns(z_ms * 1e6), 0);
        set.threads = threads;
        set.requests = test_effort(60000);
        simulate();
        /* The 4,000 differ from their mean by some percent, and so do the few that a slow variant simulates: four standard errors. */
        CHECK_NEAR(rate * 1000, per_second(), 0.035 + 4 / sqrt((double)set.requests));
        clean_up();
    }
}

/* Jobs of a minute, of which few are done: in step they would be so all at once, and one more or less of such a batch would decide. */
TEST(threads_that_only_compute_do_the_same_however_many_they_are)
{
    for (unsigned threads = 1; threads <= 16; threads *= 2) {
        begin();
        request("job", MS(60e3), 0, 0);
        set.threads = threads;
        set.requests = UINT64_MAX;
        set.warm_up = UINT64_MAX;
        set.longest_ns = MS(3600e3);
        simulate();
        CHECK_EQUAL(MS(3240e3), out.elapsed_ns);
        CHECK_NEAR(1 / 60.0, per_second(), 0.04); /* 54, and two in part */
        clean_up();
    }
}

/* M/D/1: S + load * S / (2 (1 - load)) */
TEST(open_arrivals_queue_as_theory_says)
{
    static const double loads[] = { 0.3, 0.5, 0.8 };
    for (int i = 0; i < 3; i++) {
        begin();
        request("r", MS(1), 0, 0);
        set.rate_per_s = loads[i] * 1000;
        set.requests = test_effort(200000);
        simulate();
        CHECK_NEAR(set.rate_per_s, per_second(), 0.05);
        CHECK_NEAR(1 + loads[i] / (2 * (1 - loads[i])), mean_ms(), 0.12);
        CHECK(!out.overloaded);
        clean_up();
    }
}

TEST(too_many_arrivals_are_noticed)
{
    begin();
    request("r", MS(1), 0, 0);
    set.rate_per_s = 3000;
    set.requests = UINT64_MAX;
    simulate();
    CHECK(out.overloaded);
    clean_up();
}

TEST(cores_are_shared)
{
    begin();
    request("r", MS(1), MS(1), MS(1));
    set.processes = 4;
    set.cores = 2;
    set.threads = 8; /* each process would keep a core busy */
    simulate();
    CHECK_NEAR(2 * 500, per_second(), 0.02);
    clean_up();

    begin(); /* nearly all of it without the GVL */
    hw_workload_request(&work, hw_workload_class(&work, "r", 1));
    hw_workload_step(&work, HW_STEP_GVL, US(1), 0);
    hw_workload_step(&work, HW_STEP_CPU, MS(10), 0);
    hw_workload_step(&work, HW_STEP_GVL, US(1), 0);
    set.threads = 6;
    set.cores = 3;
    simulate();
    CHECK_NEAR(300, per_second(), 0.02);
    clean_up();
}

TEST(beside_a_hog_requests_wait_for_slices_and_under_fair_they_do_not)
{
    static const double quanta_ms[] = { 100, 10 };
    for (int i = 0; i < 2; i++) {
        begin();
        request("r", US(100), MS(5), US(100));
        hog();
        set.vm_slice_ns = MS(quanta_ms[i]);
        set.requests = test_effort(400);
        set.warm_up = 10;
        simulate();
        /* It asks for the GVL once a request (its end and the next one's begin are one burst), and the timer's next tick may be near. */
        CHECK(mean_ms() > 0.9 * quanta_ms[i] && mean_ms() < quanta_ms[i] + 16, "%g ms", mean_ms());
        set.policy.kind = HW_FAIR;
        set.requests = test_effort(20000);
        simulate_as_it_is();
        CHECK(mean_ms() < 5.6, "%g ms", mean_ms());
        CHECK(out.forced >= out.requests / 2);
        clean_up();
    }
}

TEST(the_quantum_policy_has_slices_of_its_length)
{
    begin();
    request("r", US(100), MS(5), US(100));
    hog();
    set.policy.kind = HW_QUANTUM;
    set.policy.quantum_ns = MS(2);
    simulate();
    CHECK_NEAR(5.1 + 2.1, mean_ms(), 0.06);
    clean_up();
}

static uint64_t
digest(void)
{
    return out.elapsed_ns * 31 + out.gvl_ns * 7 + out.bursts + out.latency.total_ns * 3 + out.forced;
}

static void
random_work(void)
{
    unsigned requests = 1 + (unsigned)test_random(200);
    for (unsigned i = 0; i < requests; i++) {
        static const char *const names[] = { "a", "b", "c" };
        hw_workload_request(&work, hw_workload_class(&work, names[test_random(3)], 1));
        unsigned steps = 1 + (unsigned)test_random(6);
        for (unsigned k = 0; k < steps; k++) {
            hw_workload_step(&work, (enum hw_step_kind)(k == 0 ? 0 : test_random(3)), 1 + test_random(US(10) << test_random(10)), 1);
        }
        work.requests[i].after_ns = test_random(2) ? test_random(MS(1)) : 0;
    }
    if (test_random(3) == 0) hog();
}

/* Whatever is simulated ends, adds up, and comes out the same again. */
TEST(a_seed_makes_a_run_repeatable)
{
    unsigned differ = 0, rounds = test_effort(120);
    for (unsigned round = 0; round < rounds; round++) {
        begin();
        random_work();
        set.policy.kind = (enum hw_policy_kind)(round % HW_POLICY_COUNT);
        set.policy.quantum_ns = set.vm_slice_ns = MS(1) << test_random(8);
        set.processes = 1 + (uint32_t)test_random(3);
        set.threads = 1 + (uint32_t)test_random(70);
        set.cores = 1 + (uint32_t)test_random(4);
        set.resample = test_random(2);
        set.handover_ns = test_random(US(20));
        set.rate_per_s = test_random(2) ? 0 : 20 + (double)test_random(300);
        set.requests = 2000;
        set.longest_ns = MS(20000);
        set.seed = 1 + test_random(1000);
        simulate();
        uint64_t first = digest();
        CHECK(out.gvl_ns <= set.processes * out.elapsed_ns);
        CHECK_EQUAL(out.requests, out.latency.count);
        simulate_as_it_is();
        CHECK_EQUAL(first, digest());
        set.seed += 1000;
        simulate_as_it_is();
        differ += first != digest();
        clean_up();
    }
    CHECK(rounds < 10 || differ > rounds / 2, "%u", differ);
}

TEST(cancelled_or_impossible_it_fails)
{
    atomic_bool cancelled = true;
    begin();
    request("r", MS(1), 0, 0);
    set.requests = UINT64_MAX;
    CHECK(hw_workload_finish(&work));
    CHECK(!hw_simulate(&set, &out, &cancelled));
    hw_simulated_free(&out);
    set.threads = HW_SIMULATED_THREADS_MOST + 1;
    CHECK(!hw_simulate(&set, &out, NULL));
    clean_up();
    begin();
    CHECK(!hw_simulate(&set, &out, NULL)); /* nothing to do */
    clean_up();
}

TESTS({ "one", one_thread_never_waits }, { "after", what_follows_a_request_costs_throughput_but_no_latency },
      { "mva", closed_threads_do_what_mean_value_analysis_says }, { "few", threads_that_only_compute_do_the_same_however_many_they_are },
      { "open", open_arrivals_queue_as_theory_says },
      { "overload", too_many_arrivals_are_noticed }, { "cores", cores_are_shared },
      { "hog", beside_a_hog_requests_wait_for_slices_and_under_fair_they_do_not },
      { "quantum", the_quantum_policy_has_slices_of_its_length }, { "seed", a_seed_makes_a_run_repeatable },
      { "cancelled", cancelled_or_impossible_it_fails })
