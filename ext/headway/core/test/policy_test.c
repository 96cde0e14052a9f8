/* Tables for the pure functions of the policy. Times are written in milliseconds. */
#include "policy.h"
#include "test.h"
#include "times.h"

static const struct hw_policy fair = {
    .kind = HW_FAIR,
    .quantum_ns = MS(100),
    .burst_ns = MS(5),
    .fresh_ns = MS(1),
    .newborn_ns = MS(0.25),
    .tier_ns = { MS(20), MS(200), MS(2000) },
    .turn_quanta = { 2, 2, 1, 1 },
    .patience = 4,
    .starvation_ns = MS(100),
    .protection_ns = MS(5),
    .brief_ns = MS(0.25),
    .brief_most_ns = MS(0.75),
    .brief_wait_ns = MS(0.5),
    .granularity_ns = MS(1),
    .credit_ns = MS(50),
};

static struct hw_policy
of_kind(enum hw_policy_kind kind)
{
    struct hw_policy policy = fair;
    policy.kind = kind;
    return policy;
}

TEST(the_default_is_as_documented)
{
    CHECK(hw_policy_default.kind == HW_FAIR);
    CHECK_EQUAL(MS(100), hw_policy_default.quantum_ns);
    CHECK_EQUAL(MS(5), hw_policy_default.burst_ns);
    CHECK_EQUAL(MS(100), hw_policy_default.starvation_ns);
    CHECK_EQUAL(MS(5), hw_policy_default.protection_ns);
    CHECK(hw_policy_default.fresh_ns <= hw_policy_default.burst_ns);
    CHECK(hw_policy_default.retry_ns < hw_policy_default.burst_ns);
}

TEST(a_threads_own_quantum_goes_before_the_process)
{
    struct hw_thread thread = { .quantum_ns = 0 };
    CHECK_EQUAL(MS(100), hw_policy_quantum_ns(&fair, &thread));
    thread.quantum_ns = MS(1);
    CHECK_EQUAL(MS(1), hw_policy_quantum_ns(&fair, &thread));
    thread.quantum_ns = UINT64_C(4294967) * HW_NS_PER_MS;
    CHECK_EQUAL(UINT64_C(4294967000000), hw_policy_quantum_ns(&fair, &thread));
}

TEST(a_burst_grows_only_while_running)
{
    struct hw_thread thread = { .burst_ns = MS(2), .resumed_ns = MS(10), .burst_from_ns = MS(10) };
    for (int state = 0; state < HW_STATE_COUNT; state++) {
        thread.state = (enum hw_state)state;
        CHECK_EQUAL(state == HW_RUNNING ? MS(5) : MS(2), hw_policy_burst_ns(&thread, MS(13)));
    }
}

TEST(a_clock_that_steps_back_makes_nobody_batch)
{
    struct hw_thread thread = { .state = HW_RUNNING, .burst_ns = MS(2), .resumed_ns = MS(10), .burst_from_ns = MS(10) };
    CHECK_EQUAL(MS(2), hw_policy_burst_ns(&thread, MS(9)));
    CHECK(!hw_policy_is_batch(&fair, &thread, MS(9)));
}

TEST(new_threads_share_what_one_gets_down_to_an_eighth)
{
    CHECK_EQUAL(fair.burst_ns - fair.fresh_ns, hw_policy_fresh_burst_ns(&fair, 0));
    CHECK_EQUAL(fair.burst_ns - fair.fresh_ns / 2, hw_policy_fresh_burst_ns(&fair, 1));
    CHECK_EQUAL(fair.burst_ns - fair.fresh_ns / 8, hw_policy_fresh_burst_ns(&fair, 7));
    CHECK_EQUAL(fair.burst_ns - fair.fresh_ns / 8, hw_policy_fresh_burst_ns(&fair, 1000));
}

TEST(classes)
{
    const struct {
        enum hw_class set_class;
        enum hw_state state;
        double burst_ms, ran_ms;
        bool batch;
    } cases[] = {
        { HW_CLASS_MEASURED, HW_SUSPENDED, 0, 0, false },     { HW_CLASS_MEASURED, HW_READY, 4.999, 50, false },
        { HW_CLASS_MEASURED, HW_READY, 5, 0, true },          { HW_CLASS_MEASURED, HW_SUSPENDED, 5, 0, true },
        { HW_CLASS_MEASURED, HW_RUNNING, 0, 4.999, false },   { HW_CLASS_MEASURED, HW_RUNNING, 0, 5, true },
        { HW_CLASS_MEASURED, HW_RUNNING, 3, 1.999, false },   { HW_CLASS_MEASURED, HW_RUNNING, 3, 2, true },
        { HW_CLASS_BATCH, HW_RUNNING, 0, 0, true },           { HW_CLASS_BATCH, HW_SUSPENDED, 0, 0, true },
        { HW_CLASS_INTERACTIVE, HW_RUNNING, 90, 9000, false }, { HW_CLASS_INTERACTIVE, HW_READY, 90, 0, false },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct hw_thread thread = { .set_class = cases[i].set_class,
                                    .state = cases[i].state,
                                    .burst_ns = MS(cases[i].burst_ms),
                                    .resumed_ns = MS(1000), .burst_from_ns = MS(1000) };
        CHECK(hw_policy_is_batch(&fair, &thread, MS(1000) + MS(cases[i].ran_ms)) == cases[i].batch, "case %zu", i);
    }
}

TEST(tiers)
{
    const struct {
        double burst_ms;
        unsigned tier;
    } cases[] = { { 0, 0 }, { 5, 0 }, { 19.999, 0 }, { 20, 1 }, { 199, 1 }, { 200, 2 }, { 1999, 2 }, { 2000, 3 }, { 1e6, 3 } };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct hw_thread thread = { .state = HW_READY, .burst_ns = MS(cases[i].burst_ms) };
        CHECK_EQUAL(cases[i].tier, hw_policy_tier(&fair, &thread, MS(5)));
        thread = (struct hw_thread){ .state = HW_RUNNING, .resumed_ns = MS(1000), .burst_from_ns = MS(1000) };
        CHECK_EQUAL(cases[i].tier, hw_policy_tier(&fair, &thread, MS(1000) + MS(cases[i].burst_ms)));
    }
    for (double burst_ms = 0; burst_ms <= 2000; burst_ms += 100) {
        struct hw_thread said = { .state = HW_READY, .burst_ns = MS(burst_ms), .set_class = HW_CLASS_BATCH, .says_batch = true };
        CHECK_EQUAL(burst_ms < 2000 ? 2 : 3, hw_policy_tier(&fair, &said, MS(5)));
    }
}

TEST(sleep_pays_off_a_burst_and_memory_is_short)
{
    const struct {
        double burst_ms, slept_ms, left_ms;
    } cases[] = { { 0, 0, 0 }, { 0, 10, 0 }, { 5, 0, 5 }, { 5, 1, 3 }, { 5, 2.5, 0 }, { 5, 1000, 0 }, { 10, 0.001, 9.998 } };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        CHECK_EQUAL(MS(cases[i].left_ms), hw_policy_burst_after_sleep_ns(MS(cases[i].burst_ms), MS(cases[i].slept_ms)));
    }

    CHECK_EQUAL(MS(9), hw_policy_burst_at_block_ns(&fair, MS(9)));
    uint64_t kept_ns = hw_policy_burst_at_block_ns(&fair, MS(9000));
    CHECK_EQUAL(HW_BURST_MEMORY * fair.burst_ns, kept_ns);

    /* The promises of policy.h: a nap leaves it batch, 5 ms of sleep don't. */
    CHECK(hw_policy_burst_after_sleep_ns(kept_ns, HW_NS_PER_US) >= fair.burst_ns);
    CHECK(hw_policy_burst_after_sleep_ns(kept_ns, MS(5)) < fair.burst_ns);
}

TEST(what_a_piece_usually_takes_is_an_average_of_the_last_ones)
{
    struct hw_thread thread = { .usual_piece_ns = hw_policy_longest_piece_ns(&fair) };
    CHECK(!hw_policy_is_brief(&fair, &thread));
    unsigned pieces = 0;
    for (; !hw_policy_is_brief(&fair, &thread); pieces++) thread.usual_piece_ns = hw_policy_usual_piece_ns(&fair, &thread, MS(0.1));
    CHECK(pieces > HW_PIECES_AVERAGED && pieces < 2 * HW_PIECES_AVERAGED, "%u", pieces);

    /* One among many is taken for long, not for the hour it took. */
    for (int i = 0; i < 100; i++) thread.usual_piece_ns = hw_policy_usual_piece_ns(&fair, &thread, MS(0.1));
    CHECK(thread.usual_piece_ns > MS(0.0999) && thread.usual_piece_ns < MS(0.1001));
    thread.usual_piece_ns = hw_policy_usual_piece_ns(&fair, &thread, MS(3600e3));
    CHECK(hw_policy_is_brief(&fair, &thread));
    thread.usual_piece_ns = hw_policy_usual_piece_ns(&fair, &thread, MS(3600e3));
    CHECK(!hw_policy_is_brief(&fair, &thread));
    for (int i = 0; i < 100; i++) thread.usual_piece_ns = hw_policy_usual_piece_ns(&fair, &thread, 0);
    CHECK(thread.usual_piece_ns < HW_PIECES_AVERAGED);
}

#define NEVER_MS -1.0

struct yield_case {
    const char *what;
    struct hw_thread holder;
    struct hw_rivals rivals;
    double yield_ms;
};

static void
check_yields(const struct hw_policy *policy, const struct yield_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t expected_ns = cases[i].yield_ms < 0 ? HW_NEVER : MS(cases[i].yield_ms);
        uint64_t found_ns = hw_policy_yield_at_ns(policy, &cases[i].holder, &cases[i].rivals);
        CHECK(found_ns == expected_ns, "%s: %" PRIu64 " expected, %" PRIu64 " found", cases[i].what, expected_ns, found_ns);
    }
}

/* Every holder below was resumed at 1000 ms. */
#define AT_GATE(tier, ...) TURN_ENDS(HW_NEVER, .waiting_tier = tier, __VA_ARGS__)
#define TURN_ENDS(ns, ...) { .turn_ends_ns = ns, .newborn_ns = HW_NEVER, __VA_ARGS__ }
#define RIVALS(...) AT_GATE(HW_TIERS, __VA_ARGS__)
#define BESIDE(since_ns, ...) RIVALS(.ready = 1, .interactive_ready = 1, .interactive_ready_ns = since_ns, ##__VA_ARGS__)
#define NEWBORN(since_ns) { .waiting_tier = HW_TIERS, .ready = 1, .newborn_ns = since_ns }
#define HOLDER(...) { .state = HW_RUNNING, .resumed_ns = MS(1000), .burst_from_ns = MS(1000), __VA_ARGS__ }
#define BATCH(...) HOLDER(.batch = true, .usual_piece_ns = MS(0.26), ##__VA_ARGS__)
#define BRIEF(...) HOLDER(.batch = true, .usual_piece_ns = MS(0.25), ##__VA_ARGS__)
#define IN_TURN(ran_ms, ...) \
    BATCH(.tier = 3, .turn_burst_ns = MS(5000), .burst_ns = MS(5000 + ran_ms), ##__VA_ARGS__)

TEST(when_a_holder_gives_way_under_fair)
{
    const struct yield_case cases[] = {
        { "batch, alone", BATCH(), AT_GATE(2, .ready = 0, .other_admitted = true), NEVER_MS },
        { "interactive, alone", HOLDER(.batch = false), RIVALS(.ready = 0), NEVER_MS },
        { "batch beside interactive", BATCH(), RIVALS(.ready = 1, .interactive_ready = 1), 1000 },
        { "batch beside interactive, over the budget", BATCH(),
          RIVALS(.ready = 1, .interactive_ready = 1, .granularity_ns = MS(0.5)), 1000.5 },
        { "brief, beside interactive", BRIEF(), BESIDE(MS(1000)), 1000.5 },
        { "brief, beside one that will be late", BRIEF(), BESIDE(MS(999.6)), 1000.1 },
        { "brief, beside one that is late", BRIEF(), BESIDE(MS(900)), 1000 },
        { "brief as a rule, but not now", BRIEF(.piece_ns = MS(0.5)), BESIDE(MS(1000)), 1000.25 },
        { "brief as a rule, long ago", BRIEF(.piece_ns = MS(0.75)), BESIDE(MS(1000)), 1000 },
        { "brief, over the budget", BRIEF(), BESIDE(MS(999.9), .granularity_ns = MS(0.5)), 1000.5 },
        { "brief, another admitted", BRIEF(), RIVALS(.ready = 1, .other_admitted = true), 1000.75 },
        { "brief, above the tier that waits", BRIEF(.tier = 1, .burst_ns = MS(90)), AT_GATE(0, .ready = 1), 1000 },
        { "protected", BATCH(.protected_ns = MS(1005)), RIVALS(.ready = 1, .interactive_ready = 1), 1005 },
        { "protected once", BATCH(.protected_ns = MS(900)), RIVALS(.ready = 1, .interactive_ready = 1), 1000 },
        { "batch beside one it has created just now", BATCH(), NEWBORN(MS(1003)), 1003.25 },
        { "batch beside one created before it ran", BATCH(), NEWBORN(MS(999)), 999.25 },
        { "interactive beside a newborn", HOLDER(.burst_ns = MS(4)), NEWBORN(MS(1000)), 1001 },
        { "admitted, nobody at the gate", IN_TURN(50), RIVALS(.ready = 1), NEVER_MS },
        { "admitted, one at the gate", IN_TURN(50), AT_GATE(3, .ready = 1, .admitted_tier = 3), 1050 },
        { "admitted, its own quantum", IN_TURN(5, .quantum_ns = MS(10)), AT_GATE(3, .ready = 1, .admitted_tier = 3), 1005 },
        { "admitted, turn over, protected", IN_TURN(100, .protected_ns = MS(1003)), AT_GATE(3, .ready = 1, .admitted_tier = 3), 1003 },
        { "admitted, had little of its turn", IN_TURN(10), TURN_ENDS(MS(1050), .waiting_tier = 3, .ready = 1, .admitted_tier = 3), 1050 },
        { "admitted, gate and interactive", IN_TURN(1),
          AT_GATE(3, .ready = 2, .admitted_tier = 3, .interactive_ready = 1, .granularity_ns = MS(1)), 1001 },
        { "batch, another admitted", BATCH(), RIVALS(.ready = 1, .other_admitted = true), 1000 },
        { "batch, another admitted, over the budget", BATCH(),
          RIVALS(.ready = 2, .interactive_ready = 1, .other_admitted = true, .granularity_ns = MS(1)), 1000 },
        { "batch, another admitted, protected", BATCH(.protected_ns = MS(1002)),
          RIVALS(.ready = 1, .other_admitted = true), 1002 },
        { "below the tier that waits", BATCH(.burst_ns = MS(7)), AT_GATE(0, .ready = 1), 1013 },
        { "above the tier that waits", BATCH(.tier = 1, .burst_ns = MS(90)), AT_GATE(0, .ready = 1), 1000 },
        { "in the tier that waits", BATCH(.tier = 1, .burst_ns = MS(90), .turn_burst_ns = MS(70), .quantum_ns = MS(20)),
          AT_GATE(1, .ready = 1, .admitted_tier = 1), 1020 },
        { "admitted ahead of the tier that waits", BATCH(.burst_ns = MS(7)), AT_GATE(1, .ready = 1), 1013 },
        { "in the tier that waits, admitted ahead of it", BATCH(.tier = 1, .burst_ns = MS(90)),
          AT_GATE(1, .ready = 1), 1000 },
        { "above, but it is its turn", BATCH(.tier = 1, .burst_ns = MS(900), .turn_burst_ns = MS(850)),
          TURN_ENDS(MS(1060), .waiting_tier = 0, .ready = 1, .turn = true), 1060 },
        { "above, and its turn is over before", BATCH(.tier = 1, .burst_ns = MS(900), .turn_burst_ns = MS(750)),
          TURN_ENDS(MS(1060), .waiting_tier = 0, .ready = 1, .turn = true), 1050 },
        { "interactive turns batch", HOLDER(.burst_ns = 0), RIVALS(.ready = 1), 1005 },
        { "interactive turns batch sooner", HOLDER(.burst_ns = MS(4)), RIVALS(.ready = 1, .interactive_ready = 1), 1001 },
        { "interactive is batch already", HOLDER(.burst_ns = MS(7)), RIVALS(.ready = 1), 1000 },
        { "interactive by hand", HOLDER(.set_class = HW_CLASS_INTERACTIVE, .burst_ns = MS(70)), RIVALS(.ready = 9), NEVER_MS },
        { "fresh beside fresh", HOLDER(.fresh = true, .burst_ns = MS(4)), RIVALS(.ready = 1, .interactive_ready = 1), 1001 },
        { "fresh, but interactive by hand", HOLDER(.fresh = true, .set_class = HW_CLASS_INTERACTIVE, .burst_ns = MS(4)),
          RIVALS(.ready = 1, .interactive_ready = 1), NEVER_MS },
        { "interactive beside interactive", HOLDER(.burst_ns = MS(4)), RIVALS(.ready = 1, .interactive_ready = 1), 1001 },
    };
    check_yields(&fair, cases, sizeof(cases) / sizeof(*cases));
}

TEST(when_a_holder_gives_way_under_quantum)
{
    struct hw_policy policy = of_kind(HW_QUANTUM), beside_vm_slices = policy;
    beside_vm_slices.vm_slice_ns = MS(120);
    const struct yield_case cases[] = {
        { "alone", HOLDER(.batch = true), RIVALS(.ready = 0), NEVER_MS },
        { "contended before it ran", HOLDER(.batch = false), RIVALS(.ready = 1, .interactive_ready = 1, .contended_ns = MS(900)), 1100 },
        { "contended since", HOLDER(.batch = true), RIVALS(.ready = 1, .contended_ns = MS(1070)), 1170 },
        { "its own quantum", HOLDER(.quantum_ns = MS(1)), RIVALS(.ready = 1, .contended_ns = MS(900)), 1001 },
        { "the longest", HOLDER(.quantum_ns = MS(4294967)), RIVALS(.ready = 1), 4295967 },
    };
    const struct yield_case vm_cases[] = {
        { "as long as the VM's own", HOLDER(.quantum_ns = MS(120)), RIVALS(.ready = 1), NEVER_MS },
        { "just shorter", HOLDER(.quantum_ns = MS(119)), RIVALS(.ready = 1), 1119 },
    };
    check_yields(&policy, cases, sizeof(cases) / sizeof(*cases));
    check_yields(&beside_vm_slices, vm_cases, sizeof(vm_cases) / sizeof(*vm_cases));
}

TEST(nobody_gives_way_under_observe)
{
    struct hw_policy policy = of_kind(HW_OBSERVE);
    const struct yield_case cases[] = {
        { "batch", HOLDER(.batch = true), AT_GATE(2, .ready = 5, .interactive_ready = 3, .other_admitted = true), NEVER_MS },
        { "interactive", HOLDER(.batch = false), RIVALS(.ready = 5), NEVER_MS },
    };
    check_yields(&policy, cases, sizeof(cases) / sizeof(*cases));
    policy.quantum_ns = MS(10);
    policy.vm_slice_ns = MS(120);
    CHECK_EQUAL(MS(120), hw_policy_slice_ns(&policy));
    policy.kind = HW_QUANTUM;
    CHECK_EQUAL(MS(10), hw_policy_slice_ns(&policy));
}

TEST(granularity_is_free_within_the_credit_and_bounded_beyond)
{
    uint64_t before_ns = 0;
    CHECK_EQUAL(0, hw_policy_granularity_ns(&fair, 0));
    CHECK_EQUAL(0, hw_policy_granularity_ns(&fair, fair.credit_ns));
    CHECK_EQUAL(MS(0.5), hw_policy_granularity_ns(&fair, fair.credit_ns + fair.credit_ns / 2));
    for (uint64_t debt_ns = 0; debt_ns < 4 * fair.credit_ns; debt_ns += MS(0.1)) {
        uint64_t granularity_ns = hw_policy_granularity_ns(&fair, debt_ns);
        CHECK(granularity_ns >= before_ns && granularity_ns <= fair.granularity_ns);
        before_ns = granularity_ns;
    }
    CHECK_EQUAL(MS(1), before_ns);
    CHECK_EQUAL(MS(1), hw_policy_granularity_ns(&fair, UINT64_MAX / 2));

    struct hw_policy without_credit = fair;
    without_credit.credit_ns = 0;
    CHECK_EQUAL(MS(1), hw_policy_granularity_ns(&without_credit, MS(1)));
}

TEST(a_debt_is_paid_off_by_time)
{
    CHECK_EQUAL(MS(10.4), hw_policy_in_debt_until_ns(0, MS(0.4), MS(10)));
    CHECK_EQUAL(MS(10.4), hw_policy_in_debt_until_ns(MS(9), MS(0.4), MS(10)));
    CHECK_EQUAL(MS(12.4), hw_policy_in_debt_until_ns(MS(12), MS(0.4), MS(10)));
}

TEST(who_computed_without_the_gvl_the_last_times_will_again)
{
    struct hw_thread thread = { 0 };
    CHECK(!hw_policy_computes_free(&thread));
    uint64_t much_ns = hw_policy_default.free_cpu_ns, little_ns = much_ns - 1;
    hw_policy_learn_free_cpu(&hw_policy_default, &thread, much_ns);
    CHECK(hw_policy_computes_free(&thread));
    for (int i = 0; i < 5; i++) hw_policy_learn_free_cpu(&hw_policy_default, &thread, much_ns);
    for (int i = 1; i < HW_FREE_CPU_MEMORY; i++) hw_policy_learn_free_cpu(&hw_policy_default, &thread, little_ns);
    CHECK(hw_policy_computes_free(&thread), "it may again");
    hw_policy_learn_free_cpu(&hw_policy_default, &thread, 0);
    CHECK(!hw_policy_computes_free(&thread));
}

TESTS({ "default", the_default_is_as_documented }, { "quantum", a_threads_own_quantum_goes_before_the_process },
      { "burst", a_burst_grows_only_while_running }, { "clock", a_clock_that_steps_back_makes_nobody_batch }, { "classes", classes },
      { "new", new_threads_share_what_one_gets_down_to_an_eighth }, { "tiers", tiers },
      { "sleep", sleep_pays_off_a_burst_and_memory_is_short },
      { "piece", what_a_piece_usually_takes_is_an_average_of_the_last_ones }, { "fair_yield", when_a_holder_gives_way_under_fair },
      { "quantum_yield", when_a_holder_gives_way_under_quantum }, { "observe_yield", nobody_gives_way_under_observe },
      { "granularity", granularity_is_free_within_the_credit_and_bounded_beyond },
      { "debt", a_debt_is_paid_off_by_time }, { "free", who_computed_without_the_gvl_the_last_times_will_again })
