/* Lingering: the gate stays shut for a while behind an interactive thread that is expected right back. */
#include "scenes.h"

/* One round of a thread that works for `hold_ns` and blocks for `block_ns`, while somebody batch is parked or runs. */
static void
round_trip(struct hw_thread *io, struct hw_thread *hog, uint64_t hold_ns, uint64_t block_ns)
{
    ready(io);
    if (s->holder == hog) gives_way(hog);
    resumed(io);
    advance(hold_ns);
    blocks(io);
    check_all();
    uint64_t until_ns = world.now + block_ns;
    if (!hw_scheduler_gate_open(s, hog, world.now)) {
        uint64_t opens_ns = hw_scheduler_lingers_until_ns(s, hog);
        CHECK(opens_ns > world.now && opens_ns != HW_NEVER);
        if (opens_ns < until_ns) world.now = opens_ns;
    }
    if (world.now < until_ns && hw_scheduler_gate_open(s, hog, world.now)) {
        comes_back(hog);
        world.now = until_ns > world.now ? until_ns : world.now;
    }
    else {
        atomic_store(&hog->open, false); /* it was woken, to linger */
        world.now = until_ns;
    }
}

static bool
lingers(const struct hw_thread *hog)
{
    return hog->parked && !hw_scheduler_gate_open(s, hog, world.now);
}

/* Blocked as `round_trip` leaves it, the moment after it blocked: does the gate wait for it? */
static bool
waited_for(struct hw_thread *io, struct hw_thread *hog)
{
    ready(io);
    if (s->holder == hog) gives_way(hog);
    resumed(io);
    advance(US(10));
    blocks(io);
    return lingers(hog);
}

TEST(who_comes_right_back_is_waited_for)
{
    world_start(HW_FAIR);
    struct hw_thread *io = sleeper(), *hog = running_hog();
    for (int i = 0; i < 20; i++) round_trip(io, hog, US(10), US(30));
    CHECK(waited_for(io, hog));
    CHECK_EQUAL(world.now + hw_policy_default.linger_ns, hw_scheduler_lingers_until_ns(s, hog));
    CHECK(world.orders.wake == hog, "a thread that sleeps at the gate can't linger");
    advance(hw_policy_default.linger_ns);
    CHECK(!lingers(hog), "no longer than that");
    world_end();
}

TEST(who_stays_away_is_not)
{
    world_start(HW_FAIR);
    struct hw_thread *io = sleeper(), *hog = running_hog();
    for (int i = 0; i < 20; i++) round_trip(io, hog, US(10), MS(1));
    CHECK(!waited_for(io, hog));
    world_end();
}

TEST(a_pattern_of_naps_is_learned)
{
    world_start(HW_FAIR);
    struct hw_thread *io = sleeper(), *hog = running_hog();
    for (int i = 0; i < 100; i++) {
        round_trip(io, hog, US(10), US(30));
        round_trip(io, hog, US(10), US(30));
        round_trip(io, hog, US(10), MS(1));
    }
    CHECK(waited_for(io, hog));
    advance(US(30));
    CHECK(waited_for(io, hog));
    advance(US(30));
    CHECK(!waited_for(io, hog));
    world_end();
}

/* Somebody else wakes and blocks meanwhile: it is waited for all the same. */
TEST(others_that_block_meanwhile_change_nothing)
{
    world_start(HW_FAIR);
    struct hw_thread *io = sleeper(), *other = sleeper(), *hog = running_hog();
    for (int i = 0; i < 20; i++) round_trip(io, hog, US(10), US(30));
    CHECK(waited_for(io, hog));
    uint64_t until_ns = hw_scheduler_lingers_until_ns(s, hog), paid_ns = s->lingers_paid_ns;
    advance(US(5));
    runs(other, US(20));
    blocks(other);
    CHECK(lingers(hog));
    CHECK_EQUAL(until_ns, hw_scheduler_lingers_until_ns(s, hog));
    advance(US(10));
    CHECK(waited_for(io, hog));
    CHECK_EQUAL(paid_ns + hw_policy_default.linger_debt * US(5 + 10), s->lingers_paid_ns); /* not for the other's hold */
    world_end();
}

/* Threads that do nothing but short round trips, for ever: of the time they leave, the GVL is kept free for a quarter. */
static void
check_share(uint64_t hold_ns, uint64_t nap_ns)
{
    world_start(HW_FAIR);
    struct hw_thread *io = sleeper(), *hog = running_hog();
    hw_scheduler_set_class(s, io, HW_CLASS_INTERACTIVE, world.now);
    uint64_t start_ns = world.now, hog_ns = hog->account.time_ns[HW_RUNNING], lingered_ns = 0, left_ns = 0;
    while (world.now < start_ns + MS(4000)) {
        round_trip(io, hog, hold_ns, nap_ns);
        if (hog->parked) lingered_ns += nap_ns;
        left_ns += nap_ns;
    }
    ready(io); /* accounts for the hog's last hold */
    if (s->holder == hog) gives_way(hog);
    hog_ns = hog->account.time_ns[HW_RUNNING] - hog_ns;
    unsigned long long lingered_us = lingered_ns / 1000, hog_us = hog_ns / 1000, left_us = left_ns / 1000;
    uint64_t most_ns = (left_ns + 2 * hw_policy_default.credit_ns) / hw_policy_default.linger_debt;
    CHECK(lingered_ns <= most_ns, "lingered %llu of %llu us", lingered_us, left_us);
    CHECK(hog_ns > left_ns * 2 / 3, "ran %llu of %llu us", hog_us, left_us);
    resumed(io);
    blocks(io);

    advance(MS(500)); /* the debt is paid */
    for (int i = 0; i < 20; i++) round_trip(io, hog, US(10), US(30));
    CHECK(waited_for(io, hog));
    world_end();
}

TEST(lingering_takes_a_quarter_of_what_is_left_at_the_most)
{
    check_share(US(10), US(5));
    check_share(US(10), US(30));
    check_share(US(10), US(100));
    check_share(US(100), US(100));
    check_share(US(400), US(100));
}

/* Batch threads that run in between end no linger, and are no way around its price. */
TEST(others_that_are_batch_dont_make_it_free)
{
    world_start(HW_FAIR);
    struct hw_thread *io = sleeper(), *hog = running_hog(), *other = sleeper();
    hw_scheduler_set_class(s, other, HW_CLASS_BATCH, world.now);
    uint64_t lingered_ns = 0, start_ns = world.now;
    while (world.now < start_ns + MS(2000)) {
        round_trip(io, hog, US(10), US(1));
        bool kept_out = lingers(hog);
        if (hog->parked) {
            runs(other, US(1));
            blocks(other);
        }
        advance(US(50));
        if (kept_out && hog->parked) lingered_ns += US(50);
        if (s->holder != hog && hw_scheduler_gate_open(s, hog, world.now)) comes_back(hog);
    }
    CHECK(lingered_ns < MS(2000) / 3, "%llu us of 2 s", (unsigned long long)(lingered_ns / 1000));
    world_end();
}

TEST(it_costs_nothing_while_nobody_is_kept_waiting)
{
    world_start(HW_FAIR);
    struct hw_thread *io = sleeper();
    for (int i = 0; i < 20000; i++) {
        runs(io, US(10));
        blocks(io);
        advance(US(100));
    }
    CHECK_EQUAL(0, s->lingers_paid_ns);
    struct hw_thread *hog = running_hog();
    for (int i = 0; i < 20; i++) round_trip(io, hog, US(10), US(30));
    CHECK(waited_for(io, hog));
    world_end();
}

TESTS({ "nap", who_comes_right_back_is_waited_for }, { "away", who_stays_away_is_not }, { "pattern", a_pattern_of_naps_is_learned },
      { "others", others_that_block_meanwhile_change_nothing },
      { "quarter", lingering_takes_a_quarter_of_what_is_left_at_the_most },
      { "batch", others_that_are_batch_dont_make_it_free }, { "alone", it_costs_nothing_while_nobody_is_kept_waiting })
