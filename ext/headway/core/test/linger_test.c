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

/* A thread that does nothing but short round trips, for ever: the GVL isn't kept free for it all the time. */
TEST(lingering_takes_a_quarter_of_the_time_at_the_most)
{
    const uint64_t naps_ns[] = { US(5), US(30), US(100) };
    for (size_t nap = 0; nap < 3; nap++) {
        world_start(HW_FAIR);
        struct hw_thread *io = sleeper(), *hog = running_hog();
        uint64_t start_ns = world.now, lingered_ns = 0, held_ns = 0;
        while (world.now < start_ns + MS(2000)) {
            uint64_t before_ns = world.now, ran_ns = hog->account.time_ns[HW_RUNNING];
            round_trip(io, hog, US(10), naps_ns[nap]);
            if (hog->parked) lingered_ns += naps_ns[nap];
            held_ns += hog->account.time_ns[HW_RUNNING] - ran_ns;
            CHECK(world.now > before_ns);
        }
        uint64_t took_ns = world.now - start_ns;
        uint64_t most_ns = took_ns / hw_policy_default.linger_debt + hw_policy_default.credit_ns;
        CHECK(lingered_ns < most_ns, "%llu of %llu us", (unsigned long long)(lingered_ns / 1000), (unsigned long long)(took_ns / 1000));
        if (naps_ns[nap] > US(5)) CHECK(held_ns > took_ns / 4, "%llu of %llu us", (unsigned long long)(held_ns / 1000), (unsigned long long)(took_ns / 1000));

        advance(MS(500)); /* the debt is paid */
        for (int i = 0; i < 20; i++) round_trip(io, hog, US(10), naps_ns[nap]);
        CHECK(waited_for(io, hog));
        world_end();
    }
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
      { "quarter", lingering_takes_a_quarter_of_the_time_at_the_most }, { "alone", it_costs_nothing_while_nobody_is_kept_waiting })
