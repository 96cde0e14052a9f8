/* The gate's queues against an array. */
#include "gate.h"
#include "test.h"

#define THREADS 12
#define PATIENCE_NS 1000

static struct hw_thread threads[THREADS];
static struct hw_gate gate;
static uint64_t now;

/* Who waits, first come first; served_ns of each tier. */
static struct hw_thread *oracle[THREADS];
static unsigned oracle_length;
static uint64_t oracle_served_ns[HW_TIERS];

static void
start_empty(void)
{
    memset(threads, 0, sizeof(threads));
    for (int i = 0; i < THREADS; i++) threads[i].due_ns = HW_NEVER;
    memset(&gate, 0, sizeof(gate));
    memset(oracle_served_ns, 0, sizeof(oracle_served_ns));
    oracle_length = 0;
    now = 1000000;
}

static struct hw_thread *
oracle_first(unsigned tier)
{
    for (unsigned i = 0; i < oracle_length; i++) {
        if (oracle[i]->gate_tier == tier) return oracle[i];
    }
    return NULL;
}

static bool
oracle_has(const struct hw_thread *thread)
{
    for (unsigned i = 0; i < oracle_length; i++) {
        if (oracle[i] == thread) return true;
    }
    return false;
}

static void
push(struct hw_thread *thread)
{
    if (!oracle_has(thread)) {
        if (oracle_first(thread->tier) == NULL) oracle_served_ns[thread->tier] = now;
        oracle[oracle_length++] = thread;
    }
    hw_gate_push(&gate, thread, now);
}

static void
oracle_remove(struct hw_thread *thread)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < oracle_length; i++) {
        if (oracle[i] != thread) oracle[kept++] = oracle[i];
    }
    oracle_length = kept;
}

/* The lowest tier, unless others are overdue: then the one that was so first. */
static struct hw_thread *
oracle_pop(void)
{
    int chosen = -1;
    uint64_t first_ns = 0;
    for (int tier = 0; tier < HW_TIERS; tier++) {
        struct hw_thread *first = oracle_first((unsigned)tier);
        if (first == NULL) continue;
        uint64_t at_ns = oracle_served_ns[tier] + PATIENCE_NS;
        if (first->due_ns < at_ns) at_ns = first->due_ns;
        if (chosen >= 0 && (at_ns > now || at_ns >= first_ns)) continue;
        chosen = tier;
        first_ns = at_ns;
    }
    if (chosen < 0) return NULL;
    oracle_served_ns[chosen] = now;
    struct hw_thread *thread = oracle_first((unsigned)chosen);
    oracle_remove(thread);
    return thread;
}

static void
check_gate(void)
{
    CHECK_EQUAL(oracle_length, gate.length);
    unsigned lowest = HW_TIERS;
    for (unsigned tier = HW_TIERS; tier-- > 0;) {
        struct hw_thread *thread = gate.queues[tier].head, *before = NULL;
        for (unsigned i = 0; i < oracle_length; i++) {
            if (oracle[i]->gate_tier != tier) continue;
            CHECK(thread == oracle[i] && thread->gate_prev == before);
            before = thread;
            thread = thread->gate_next;
            lowest = tier;
        }
        CHECK(thread == NULL && gate.queues[tier].tail == before);
    }
    CHECK_EQUAL(lowest, hw_gate_tier(&gate));
    for (unsigned i = 0; i < THREADS; i++) {
        CHECK(threads[i].at_gate == oracle_has(&threads[i]));
        if (!threads[i].at_gate) CHECK(threads[i].gate_next == NULL && threads[i].gate_prev == NULL);
    }
}

TEST(within_a_tier_first_come_first_served)
{
    start_empty();
    for (unsigned i = 0; i < THREADS; i++) push(&threads[i]);
    for (unsigned i = 0; i < THREADS; i++) CHECK(hw_gate_pop(&gate, PATIENCE_NS, now) == &threads[i]);
    CHECK(hw_gate_pop(&gate, PATIENCE_NS, now) == NULL);
    CHECK_EQUAL(0, gate.length);
}

TEST(lower_tiers_go_first)
{
    start_empty();
    for (unsigned i = 0; i < THREADS; i++) {
        threads[i].tier = (uint8_t)(HW_TIERS - 1 - i % HW_TIERS);
        push(&threads[i]);
    }
    for (unsigned i = 0; i < THREADS; i++) CHECK_EQUAL(i / (THREADS / HW_TIERS), hw_gate_pop(&gate, PATIENCE_NS, now)->tier);
}

TEST(who_is_put_back_to_the_head_has_waited_since_then)
{
    start_empty();
    now += 10 * PATIENCE_NS;
    threads[0].tier = 1;
    hw_gate_push_front(&gate, &threads[0], now);
    push(&threads[1]);
    CHECK(hw_gate_pop(&gate, PATIENCE_NS, now) == &threads[1], "its tier was served till now");
    now += PATIENCE_NS;
    push(&threads[1]);
    CHECK(hw_gate_pop(&gate, PATIENCE_NS, now) == &threads[0]);
}

TEST(doing_it_twice_is_doing_it_once)
{
    start_empty();
    push(&threads[0]);
    push(&threads[1]);
    push(&threads[0]);
    CHECK_EQUAL(2, gate.length);
    CHECK(gate.queues[0].head == &threads[0]);
    hw_gate_remove(&gate, &threads[0]);
    hw_gate_remove(&gate, &threads[0]);
    hw_gate_remove(&gate, &threads[5]);
    CHECK(hw_gate_pop(&gate, PATIENCE_NS, now) == &threads[1]);
    CHECK_EQUAL(0, gate.length);
}

/* When every turn outlasts everybody's patience all tiers have to take turns. */
TEST(no_tier_is_passed_over_for_ever)
{
    unsigned served[HW_TIERS] = { 0 };
    start_empty();
    for (unsigned i = 0; i < 2 * HW_TIERS; i++) {
        threads[i].tier = (uint8_t)(i % HW_TIERS);
        push(&threads[i]);
    }
    for (int turn = 0; turn < 10 * HW_TIERS; turn++) {
        now += 2 * PATIENCE_NS;
        struct hw_thread *thread = hw_gate_pop(&gate, PATIENCE_NS, now);
        served[thread->tier]++;
        hw_gate_push(&gate, thread, now);
    }
    for (int tier = 0; tier < HW_TIERS; tier++) CHECK(served[tier] >= 8, "tier %d: %u of %d turns", tier, served[tier], 10 * HW_TIERS);
}

TEST(nor_for_others_that_are_due_all_the_time)
{
    bool served = false;
    start_empty();
    threads[0].tier = HW_TIERS - 1;
    for (int i = 0; i < 3; i++) push(&threads[i]);
    for (int turn = 0; turn < 3 && !served; turn++) {
        now += PATIENCE_NS;
        struct hw_thread *thread = hw_gate_pop(&gate, PATIENCE_NS, now);
        served = thread == &threads[0];
        thread->due_ns = now + 1;
        push(thread);
    }
    CHECK(served);
}

TEST(whose_time_it_is_goes_before_lower_tiers)
{
    start_empty();
    for (int i = 0; i < 3; i++) {
        threads[i].tier = (uint8_t)i;
        threads[i].due_ns = i == 0 ? HW_NEVER : now + 300 - 100 * (uint64_t)i;
        push(&threads[i]);
    }
    now += 99;
    CHECK(hw_gate_pop(&gate, PATIENCE_NS, now) == &threads[0]);
    push(&threads[0]);
    now += 100;
    CHECK(hw_gate_pop(&gate, PATIENCE_NS, now) == &threads[2]);
    CHECK(hw_gate_pop(&gate, PATIENCE_NS, now) == &threads[0]);
}

TEST(in_any_order_as_an_array)
{
    start_empty();
    for (unsigned round = 0; round < test_effort(100000); round++) {
        struct hw_thread *thread = &threads[test_random(THREADS)];
        now += test_random(200);
        switch (test_random(5)) {
          case 0:
          case 1:
            thread->tier = (uint8_t)test_random(HW_TIERS);
            if (!oracle_has(thread)) thread->due_ns = test_random(3) ? HW_NEVER : now + test_random(3000);
            push(thread);
            break;
          case 2:
            oracle_remove(thread);
            hw_gate_remove(&gate, thread);
            break;
          default: {
            struct hw_thread *expected = oracle_pop();
            CHECK(hw_gate_pop(&gate, PATIENCE_NS, now) == expected);
          }
        }
        check_gate();
    }
}

TESTS({ "fifo", within_a_tier_first_come_first_served }, { "tiers", lower_tiers_go_first },
      { "put_back", who_is_put_back_to_the_head_has_waited_since_then }, { "twice", doing_it_twice_is_doing_it_once },
      { "overdue", no_tier_is_passed_over_for_ever }, { "others_due", nor_for_others_that_are_due_all_the_time },
      { "due", whose_time_it_is_goes_before_lower_tiers }, { "random", in_any_order_as_an_array })
