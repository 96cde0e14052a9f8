/* Attribution against the slow obvious way: at every step of time each waiting thread's wait goes to whoever holds the GVL. */
#include "scheduler.h"
#include "test.h"

#define CAST 100 /* more than there are slots */

static struct hw_scheduler scheduler;
static struct hw_thread threads[CAST];
static uint64_t now;
static struct hw_orders orders;

/* The oracle: what thread i waited for number j; [0]: nobody. */
static uint64_t waited_ns[CAST][CAST + 1], waits_ns[CAST], caused_ns[CAST + 1];

static void
clean_up(void)
{
    for (unsigned i = 0; i < CAST; i++) hw_account_free(&threads[i].account);
    hw_scheduler_free(&scheduler);
}

static void
start(unsigned cast)
{
    struct hw_policy policy = hw_policy_default;
    policy.kind = HW_OBSERVE;
    now = HW_NS_PER_S;
    memset(threads, 0, sizeof(threads));
    memset(waited_ns, 0, sizeof(waited_ns));
    memset(waits_ns, 0, sizeof(waits_ns));
    memset(caused_ns, 0, sizeof(caused_ns));
    test_clean_up = clean_up;
    CHECK(hw_scheduler_init(&scheduler, &policy));
    for (unsigned i = 0; i < cast; i++) {
        CHECK(hw_account_init(&threads[i].account, 1));
        hw_scheduler_add(&scheduler, &threads[i], HW_SUSPENDED, now);
        CHECK_EQUAL(i + 1, threads[i].number);
    }
}

static void
end(void)
{
    clean_up();
    test_clean_up = NULL;
}

static void
pass(uint64_t ns)
{
    uint32_t holder = scheduler.holder ? scheduler.holder->number : 0;
    for (unsigned i = 0; i < CAST; i++) {
        if (threads[i].link == NULL || threads[i].state != HW_READY) continue;
        waited_ns[i][holder] += ns;
        waits_ns[i] += ns;
        caused_ns[holder] += ns;
    }
    now += ns;
}

static uint64_t
sum(const uint64_t figures[HW_SLOTS])
{
    uint64_t total = 0;
    for (unsigned slot = 0; slot < HW_SLOTS; slot++) total += figures[slot];
    return total;
}

/* exact: every thread still has the slot it had from the start. */
static void
check(bool exact)
{
    struct hw_attribution *a = &scheduler.attribution;
    uint64_t all_ns = 0, copy[HW_SLOTS];
    for (unsigned i = 0; i < CAST; i++) {
        all_ns += waits_ns[i];
        if (threads[i].link == NULL) continue;
        hw_attribution_copy(a, &threads[i], now, copy);
        CHECK_EQUAL(waits_ns[i], sum(copy));
        CHECK_EQUAL(waited_ns[i][0], copy[HW_SLOT_NOBODY]);
        for (unsigned slot = HW_SLOT_OTHERS + 1; slot < HW_SLOTS; slot++) {
            uint32_t number = a->owners[slot].number;
            if (number == 0) CHECK_EQUAL(0, copy[slot]);
            else if (exact) CHECK_EQUAL(waited_ns[i][number], copy[slot]);
        }
    }
    hw_attribution_sample(a, now);
    CHECK_EQUAL(all_ns, sum(a->caused_ns));
    CHECK_EQUAL(caused_ns[0], a->caused_ns[HW_SLOT_NOBODY]);
    if (!exact) return;
    for (unsigned slot = HW_SLOT_OTHERS + 1; slot < HW_SLOTS; slot++) {
        if (a->owners[slot].number) CHECK_EQUAL(caused_ns[a->owners[slot].number], a->caused_ns[slot]);
    }
}

static void
random_event(unsigned cast)
{
    struct hw_thread *thread = &threads[test_random(cast)];
    if (thread->link == NULL) return;
    switch (test_random(3)) {
      case 0: hw_scheduler_ready(&scheduler, thread, now, &orders); break;
      case 1: hw_scheduler_resumed(&scheduler, thread, now, &orders); break;
      default: hw_scheduler_suspended(&scheduler, thread, now, &orders);
    }
}

TEST(any_events_add_up)
{
    static const unsigned casts[] = { 1, 2, 3, 7, 40, HW_SLOTS - 2 };
    for (unsigned round = 0; round < test_effort(60); round++) {
        unsigned cast = casts[test_random(sizeof(casts) / sizeof(*casts))];
        start(cast);
        for (unsigned step = 0; step < 400; step++) {
            random_event(cast);
            pass(test_random(1000));
            if (test_random(20) == 0) check(true);
        }
        check(true);
        end();
    }
}

/* READY, RESUMED, SUSPENDED as a VM orders them, most of the time with nobody to wait for. */
TEST(a_quiet_thread_waits_for_nobody)
{
    start(3);
    for (unsigned round = 0; round < 100; round++) {
        hw_scheduler_ready(&scheduler, &threads[0], now, &orders);
        pass(5);
        hw_scheduler_resumed(&scheduler, &threads[0], now, &orders);
        pass(100);
        hw_scheduler_suspended(&scheduler, &threads[0], now, &orders);
        pass(50);
        CHECK(scheduler.attribution.alone == NULL);
    }
    CHECK_EQUAL(500, threads[0].waits.waited_ns[HW_SLOT_NOBODY]);
    check(true);
    end();
}

TEST(a_wait_is_split_among_its_holders)
{
    start(3);
    hw_scheduler_resumed(&scheduler, &threads[0], now, &orders);
    pass(10);
    hw_scheduler_ready(&scheduler, &threads[2], now, &orders);
    pass(30);
    hw_scheduler_suspended(&scheduler, &threads[0], now, &orders);
    pass(4);
    hw_scheduler_resumed(&scheduler, &threads[1], now, &orders);
    pass(60);
    hw_scheduler_suspended(&scheduler, &threads[1], now, &orders);
    pass(2);
    hw_scheduler_resumed(&scheduler, &threads[2], now, &orders);
    const uint64_t *waited = threads[2].waits.waited_ns;
    CHECK_EQUAL(6, waited[HW_SLOT_NOBODY]);
    CHECK_EQUAL(30, waited[threads[0].waits.slot]);
    CHECK_EQUAL(60, waited[threads[1].waits.slot]);
    check(true);
    end();
}

TEST(a_sample_weighs_the_waits_since_the_last_one)
{
    start(3);
    hw_scheduler_resumed(&scheduler, &threads[0], now, &orders);
    pass(10);
    CHECK_EQUAL(0, hw_attribution_sample(&scheduler.attribution, now));
    hw_scheduler_ready(&scheduler, &threads[1], now, &orders);
    pass(30);
    hw_scheduler_ready(&scheduler, &threads[2], now, &orders);
    pass(5);
    CHECK_EQUAL(40, hw_attribution_sample(&scheduler.attribution, now));
    pass(1);
    CHECK_EQUAL(2, hw_attribution_sample(&scheduler.attribution, now));
    hw_scheduler_suspended(&scheduler, &threads[0], now, &orders);
    pass(7);
    CHECK_EQUAL(0, hw_attribution_sample(&scheduler.attribution, now));
    hw_scheduler_resumed(&scheduler, &threads[1], now, &orders);
    pass(3);
    CHECK_EQUAL(3, hw_attribution_sample(&scheduler.attribution, now));
    end();
}

TEST(a_sample_is_late_if_somebody_waited_long_for_it)
{
    start(3);
    struct hw_attribution *a = &scheduler.attribution;
    hw_scheduler_resumed(&scheduler, &threads[0], now, &orders);
    pass(HW_LATE_NS);
    hw_scheduler_ready(&scheduler, &threads[1], now, &orders);
    pass(HW_LATE_NS - 1);
    hw_attribution_sample(a, now);
    CHECK_EQUAL(0, a->late_ns);
    pass(HW_LATE_NS);
    hw_attribution_sample(a, now);
    CHECK_EQUAL(HW_LATE_NS, a->late_ns);
    hw_scheduler_ready(&scheduler, &threads[2], now, &orders);
    pass(HW_LATE_NS - 1);
    hw_scheduler_suspended(&scheduler, &threads[0], now, &orders);
    hw_scheduler_resumed(&scheduler, &threads[1], now, &orders);
    pass(1);
    hw_attribution_sample(a, now); /* of another hold */
    CHECK_EQUAL(HW_LATE_NS, a->late_ns);
    end();
}

/* More threads than slots, which come and go. */
TEST(churn_adds_up)
{
    for (unsigned round = 0; round < test_effort(30); round++) {
        start(CAST);
        for (unsigned step = 0; step < 500; step++) {
            random_event(CAST);
            pass(test_random(1000));
            struct hw_thread *thread = &threads[test_random(CAST)];
            if (test_random(10) == 0 && thread->link) {
                hw_scheduler_remove(&scheduler, thread, now, &orders);
            }
            if (test_random(10) == 0 && thread->link == NULL && scheduler.numbers < CAST) {
                hw_scheduler_add(&scheduler, thread, HW_SUSPENDED, now);
            }
            if (test_random(20) == 0) check(false);
        }
        check(false);
        end();
    }
}

TEST(an_ended_threads_slot_is_used_again)
{
    start(HW_SLOTS);
    uint8_t slot = threads[0].waits.slot;
    CHECK_EQUAL(HW_SLOT_OTHERS, threads[HW_SLOTS - 1].waits.slot);
    hw_scheduler_resumed(&scheduler, &threads[0], now, &orders);
    hw_scheduler_ready(&scheduler, &threads[1], now, &orders);
    pass(100);
    hw_scheduler_remove(&scheduler, &threads[0], now, &orders);
    CHECK(hw_account_init(&threads[HW_SLOTS].account, 1));
    hw_scheduler_add(&scheduler, &threads[HW_SLOTS], HW_SUSPENDED, now);
    CHECK_EQUAL(slot, threads[HW_SLOTS].waits.slot);
    hw_scheduler_resumed(&scheduler, &threads[HW_SLOTS], now, &orders);
    pass(7);
    hw_scheduler_suspended(&scheduler, &threads[HW_SLOTS], now, &orders);
    hw_scheduler_resumed(&scheduler, &threads[1], now, &orders);
    CHECK_EQUAL(100, threads[1].waits.waited_ns[HW_SLOT_OTHERS]);
    CHECK_EQUAL(7, threads[1].waits.waited_ns[slot]);
    check(false);
    end();
}

TEST(a_reset_starts_at_zero_in_the_middle_of_a_wait)
{
    start(2);
    for (int alone = 0; alone < 2; alone++) {
        if (!alone) hw_scheduler_resumed(&scheduler, &threads[0], now, &orders);
        hw_scheduler_ready(&scheduler, &threads[1], now, &orders);
        pass(50);
        hw_attribution_reset(&scheduler.attribution, scheduler.threads, now);
        pass(8);
        hw_scheduler_suspended(&scheduler, &threads[0], now, &orders);
        hw_scheduler_resumed(&scheduler, &threads[1], now, &orders);
        uint8_t slot = alone ? HW_SLOT_NOBODY : threads[0].waits.slot;
        CHECK_EQUAL(8, threads[1].waits.waited_ns[slot]);
        CHECK_EQUAL(8, scheduler.attribution.caused_ns[slot]);
        hw_scheduler_suspended(&scheduler, &threads[1], now, &orders);
    }
    end();
}

TESTS({ "any_events_add_up", any_events_add_up },
      { "a_quiet_thread_waits_for_nobody", a_quiet_thread_waits_for_nobody },
      { "a_wait_is_split_among_its_holders", a_wait_is_split_among_its_holders },
      { "a_sample_weighs_the_waits_since_the_last_one", a_sample_weighs_the_waits_since_the_last_one },
      { "a_sample_is_late", a_sample_is_late_if_somebody_waited_long_for_it },
      { "churn_adds_up", churn_adds_up },
      { "an_ended_threads_slot_is_used_again", an_ended_threads_slot_is_used_again },
      { "a_reset_starts_at_zero_in_the_middle_of_a_wait", a_reset_starts_at_zero_in_the_middle_of_a_wait })
