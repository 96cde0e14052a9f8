/* Who is preempted by whom, when, and what too many forced switches cost. */
#include "scenes.h"

TEST(a_waking_interactive_thread_preempts_a_batch_holder_at_once)
{
    world_start(HW_FAIR);
    struct hw_thread *io = sleeper(), *hog = running_hog();
    ready(io);
    check_all();
    CHECK(hog->batch && !io->batch);
    CHECK(world.orders.preempt == hog && !world.orders.retry && !world.orders.self);
    CHECK_EQUAL(1, s->preemptions);
    CHECK(must_yield(hog));
    gives_way(hog);
    CHECK(hog->parked && s->admitted == hog);
    advance(US(10));
    resumed(io);
    CHECK(world.orders.preempt == NULL);
    CHECK_EQUAL(1, io->account.wait.count);
    CHECK_EQUAL(US(10), io->account.wait.max_ns);
    advance(US(50));
    blocks(io);
    check_all();
    CHECK(world.orders.wake == hog);
    CHECK_EQUAL(1, hog->account.preempted);
    world_end();
}

/* A signal or a kill must not wait for its turn. */
TEST(who_is_called_back_from_the_gate_goes_first)
{
    world_start(HW_FAIR);
    struct hw_thread *second = running_hog();
    gives_way(second);
    struct hw_thread *first = parked_hog();
    comes_back(second);
    check_all();
    CHECK(first->at_gate && world.orders.preempt == NULL);
    hw_scheduler_called_back(s, first, world.now, &world.orders);
    check_all();
    CHECK(!first->at_gate && !first->batch);
    CHECK_EQUAL(hw_policy_default.burst_ns - hw_policy_default.fresh_ns, first->burst_ns);
    CHECK(must_yield(second));
    gives_way(second);
    comes_back(first);
    advance(hw_policy_default.fresh_ns);
    tick();
    CHECK(first->batch, "for a moment only");
    hw_scheduler_called_back(s, first, world.now, &world.orders);
    CHECK(first->batch, "it is there already");
    world_end();
}

TEST(it_is_known_who_goes_on_when_a_thread_stops_running)
{
    world_start(HW_FAIR);
    struct hw_thread *io = sleeper(), *other = sleeper(), *hog = running_hog();
    CHECK(hw_scheduler_goes_next(s) == NULL);
    ready(io);
    CHECK(hw_scheduler_goes_next(s) == io);
    ready(other);
    CHECK(hw_scheduler_goes_next(s) == io, "first come, first served");
    gives_way(hog);
    resumed(io);
    CHECK(hw_scheduler_goes_next(s) == NULL, "who is next after the first is not kept");
    advance(US(50));
    blocks(io);
    CHECK(world.orders.next == NULL);
    resumed(other);
    advance(US(50));
    blocks(other);
    CHECK(world.orders.wake == hog && world.orders.next == hog);

    resumed(hog);
    ready(io);
    CHECK(hw_scheduler_goes_next(s) == io);
    advance(hw_policy_default.brief_ns);
    blocks(hog);
    CHECK(world.orders.next == io, "after a hold that wasn't brief");
    removed(io);
    CHECK(hw_scheduler_goes_next(s) == NULL);
    world_end();
}

TEST(a_creator_goes_on_for_a_moment_before_it_gives_way_to_a_newborn)
{
    world_start(HW_FAIR);
    struct hw_thread *hog = running_hog(), *newborn = world_thread(HW_SUSPENDED, true);
    ready(newborn);
    check_all();
    CHECK(world.orders.preempt == NULL);
    CHECK_EQUAL(world.now + hw_policy_default.newborn_ns, world.orders.tick_ns);
    CHECK(!must_yield(hog));
    advance(hw_policy_default.newborn_ns);
    tick();
    CHECK(world.orders.preempt == hog);
    gives_way(hog);
    resumed(newborn);
    blocks(newborn);
    ready(newborn);
    check_all();
    CHECK(world.orders.preempt == hog || s->holder != hog, "it is no newborn any more");
    world_end();
}

TEST(a_lost_preemption_is_asked_for_again)
{
    world_start(HW_FAIR);
    struct hw_thread *io = sleeper(), *hog = running_hog();
    ready(io);
    CHECK(world.orders.preempt == hog);
    CHECK_EQUAL(world.now + hw_policy_default.retry_ns, world.orders.tick_ns);
    advance(hw_policy_default.retry_ns / 2);
    tick();
    CHECK(world.orders.preempt == NULL);
    advance(hw_policy_default.retry_ns);
    tick();
    CHECK(world.orders.preempt == hog && world.orders.retry);
    CHECK_EQUAL(1, s->preemptions);
    CHECK_EQUAL(1, s->retries);
    world_end();
}

TEST(an_interactive_holder_keeps_its_burst)
{
    world_start(HW_FAIR);
    struct hw_thread *holder = sleeper(), *io = sleeper();
    runs(holder, MS(2));
    ready(io);
    CHECK(world.orders.preempt == NULL);
    CHECK_EQUAL(world.now + MS(3), world.orders.tick_ns);
    advance(MS(3));
    tick();
    check_all();
    CHECK(holder->batch && world.orders.preempt == holder);
    world_end();
}

/* Such as the threads of a server that answers as fast as it can: each computes more than it sleeps, none keeps the GVL for long. */
TEST(a_batch_thread_that_blocks_soon_is_left_alone)
{
    world_start(HW_FAIR);
    struct hw_thread *io = sleeper(), *server = running_hog();
    blocks(server);
    for (int hold = 0; hold < 50; hold++) {
        resumed(server);
        ready(io);
        check_all();
        CHECK(server->batch);
        CHECK((world.orders.preempt == server) == (hold < 2), "hold %d", hold);
        CHECK_EQUAL(world.now + (hold < 2 ? hw_policy_default.retry_ns : hw_policy_default.brief_wait_ns), world.orders.tick_ns);
        advance(US(100));
        blocks(server);
        resumed(io);
        blocks(io);
    }
    CHECK_EQUAL(2, s->preemptions);

    resumed(server);
    for (int slice = 0; slice < 2; slice++) {
        advance(hw_policy_default.brief_ns);
        ready(io);
        CHECK(world.orders.preempt == server, "this hold isn't brief");
        gives_way(server);
        resumed(io);
        blocks(io);
        comes_back(server);
    }
    ready(io);
    CHECK(world.orders.preempt == server, "nor is the rest of it");
    world_end();
}

/* The batch thread answers two short questions, while somebody interactive waits in turn, and is brief. */
static void
answers(struct hw_thread *server, struct hw_thread *io)
{
    for (int hold = 0; hold < 2; hold++) {
        blocks(server);
        resumed(io);
        blocks(io);
        ready(server);
        resumed(server);
        advance(US(50));
        if (hold == 0) ready(io);
    }
    blocks(server);
    CHECK(server->batch && hw_policy_is_brief(server));
}

TEST(a_long_hold_after_brief_ones_ends_before_anybody_is_late)
{
    for (int newborn = 0; newborn < 2; newborn++) {
        world_start(HW_FAIR);
        struct hw_thread *io = sleeper(), *server = running_hog();
        answers(server, io);
        resumed(server);
        advance(US(10));
        ready(newborn ? world_thread(HW_SUSPENDED, true) : io);
        CHECK_EQUAL(world.now + hw_policy_default.brief_wait_ns, world.orders.tick_ns);
        advance(hw_policy_default.brief_wait_ns);
        tick();
        CHECK(world.orders.preempt == server);
        world_end();
    }
}

/* They are in the VM's queue ahead of it. */
TEST(nobody_waits_for_many_brief_holds_in_a_row)
{
    world_start(HW_FAIR);
    struct hw_thread *io = sleeper(), *servers[8];
    for (int i = 0; i < 8; i++) {
        servers[i] = running_hog();
        servers[i]->set_class = HW_CLASS_BATCH;
        answers(servers[i], io);
    }
    resumed(servers[0]);
    for (int i = 1; i < 8; i++) ready(servers[i]);
    ready(io);
    uint64_t since_ns = world.now;
    for (int i = 0; i < 8; i++) {
        bool late = world.now - since_ns >= hw_policy_default.brief_wait_ns;
        CHECK((world.orders.preempt == servers[i]) == late, "hold %d", i);
        if (late) gives_way(servers[i]);
        else {
            advance(US(150));
            blocks(servers[i]);
        }
        if (i < 7) resumed(servers[i + 1]);
    }
    CHECK(world.now - since_ns <= hw_policy_default.brief_wait_ns + US(150));
    resumed(io);
    world_end();
}

/* Whoever is brief has waited as long for them, and was ahead in the VM's queue. */
TEST(nobody_is_late_for_having_waited_for_others_like_it)
{
    world_start(HW_FAIR);
    struct hw_thread *io = sleeper(), *second = sleeper(), *server = running_hog();
    answers(server, io);
    resumed(io);
    ready(server);
    ready(second);
    advance(2 * hw_policy_default.brief_wait_ns);
    blocks(io);
    resumed(server);
    CHECK(world.orders.preempt == NULL);
    CHECK_EQUAL(world.now + hw_policy_default.brief_wait_ns, world.orders.tick_ns);
    world_end();
}

static void
answers_so_often(struct hw_thread *server, struct hw_thread *io, unsigned holds)
{
    while (server->brief_holds < holds) answers(server, io);
}

/* In a pool that is busy somebody always is late by that, and to wake the ticker takes longer than the hold. */
TEST(the_ticker_is_not_woken_for_a_hold_that_surely_is_brief)
{
    world_start(HW_FAIR);
    struct hw_thread *io = sleeper(), *server = running_hog();
    answers_so_often(server, io, HW_SURELY_BRIEF_AFTER);
    resumed(server);
    advance(US(10));
    ready(io);
    CHECK_EQUAL(world.now + hw_policy_default.retry_ns, world.orders.tick_ns);
    advance(hw_policy_default.retry_ns);
    tick();
    CHECK(world.orders.preempt == server, "it wasn't, after all");
    world_end();
}

TEST(one_long_hold_leaves_a_thread_brief_that_was_for_long)
{
    world_start(HW_FAIR);
    struct hw_thread *io = sleeper(), *server = running_hog();
    answers_so_often(server, io, HW_SURELY_BRIEF_AFTER);
    for (int hold = 0; hold < 2; hold++) {
        CHECK(hw_policy_is_brief(server));
        resumed(server);
        advance(hw_policy_default.brief_ns);
        ready(io);
        CHECK(world.orders.preempt == server, "this one isn't");
        gives_way(server);
        CHECK(hw_policy_is_brief(server) == (hold == 0) && !hw_policy_is_surely_brief(server), "after %d long ones", hold + 1);
        resumed(io);
        blocks(io);
        comes_back(server);
        blocks(server);
    }
    world_end();
}

/* Kept at the gate it would wait until nobody interactive is left, which others like it are by turns: a tenth of a second. */
TEST(who_is_brief_is_not_kept_at_the_gate)
{
    world_start(HW_FAIR);
    struct hw_thread *io = sleeper(), *hog = running_hog(), *server = sleeper();
    ready(io);
    gives_way(hog);
    server->burst_ns = MS(5000);
    server->brief_holds = HW_BRIEF_AFTER * HW_BRIEF_KEPT;
    resumed(io);
    ready(server);
    blocks(io);
    resumed(server);
    advance(hw_policy_default.brief_ns);
    ready(io);
    CHECK(world.orders.preempt == server);
    gives_way(server);
    CHECK(s->admitted == hog && server->at_gate);
    CHECK(hog->parked && !server->parked);
    world_end();
}

TEST(a_hold_that_was_cut_short_may_have_been_brief)
{
    world_start(HW_FAIR);
    struct hw_thread *io = sleeper(), *server = running_hog();
    answers(server, io);
    ready(io);
    advance(hw_policy_default.brief_wait_ns);
    resumed(server);
    CHECK(world.orders.preempt == server, "somebody is late");
    gives_way(server);
    CHECK(hw_policy_is_brief(server));
    world_end();
}

TEST(a_hold_is_as_brief_without_the_collections_in_it)
{
    world_start(HW_FAIR);
    struct hw_thread *io = sleeper(), *server = running_hog();
    for (int hold = 0; hold < 3; hold++) {
        blocks(server);
        resumed(server);
        advance(MS(20));
        hw_scheduler_collected(s, server, MS(20));
    }
    ready(io);
    CHECK(server->batch && hw_policy_is_brief(server) && world.orders.preempt == NULL);
    world_end();
}

TEST(who_may_unwind_is_left_alone_for_a_while)
{
    static const enum hw_policy_kind kinds[] = { HW_FAIR, HW_QUANTUM };
    for (unsigned i = 0; i < 2; i++) {
        world_start(kinds[i]);
        struct hw_thread *io = sleeper(), *hog = running_hog();
        blocks(hog);
        hog->called_back = true;
        resumed(hog);
        ready(io);
        CHECK(world.orders.preempt == NULL && !must_yield(hog));
        CHECK_EQUAL(world.now + hw_policy_default.alone_ns, hog->protected_ns);

        advance(MS(200));
        tick();
        CHECK(world.orders.preempt == hog && must_yield(hog));
        hw_scheduler_leave_alone(s, hog, world.now);
        CHECK(!must_yield(hog));
        advance(hw_policy_default.alone_ns);
        CHECK(must_yield(hog));
        world_end();
    }
}

TEST(alone_nothing_happens)
{
    world_start(HW_FAIR);
    struct hw_thread *hog = sleeper();
    runs(hog, MS(5000));
    tick();
    CHECK(world.orders.preempt == NULL && world.orders.wake == NULL);
    CHECK_EQUAL(HW_NEVER, world.orders.tick_ns);
    CHECK(!must_yield(hog));
    world_end();
}

TEST(forced_switches_in_debt_cost_granularity)
{
    world_start(HW_FAIR);
    struct hw_thread *io = sleeper(), *hog = running_hog();
    uint64_t last_delay_ns = 0;
    unsigned switches = 0;
    uint64_t start_ns = world.now;
    while (world.now < start_ns + MS(2000)) {
        ready(io);
        last_delay_ns = 0;
        if (world.orders.preempt == NULL) {
            CHECK(world.orders.tick_ns <= s->holder->resumed_ns + hw_policy_default.granularity_ns);
            last_delay_ns = world.orders.tick_ns - world.now;
            advance(last_delay_ns);
            tick();
        }
        CHECK(world.orders.preempt == hog);
        gives_way(hog);
        resumed(io);
        advance(US(10));
        blocks(io);
        CHECK(world.orders.wake == hog);
        comes_back(hog);
        check_all();
        switches++;
        advance(US(10));
    }
    CHECK(last_delay_ns > 0);
    unsigned paid = (unsigned)(MS(2000) / hw_policy_default.switch_debt_ns);
    CHECK(switches < paid + paid / 4 && switches > paid * 3 / 4, "%u switches in 2 s", switches);

    advance(MS(1000)); /* the debt is paid */
    ready(io);
    CHECK(world.orders.preempt == hog);
    world_end();
}

TESTS({ "preempt", a_waking_interactive_thread_preempts_a_batch_holder_at_once },
      { "newborn", a_creator_goes_on_for_a_moment_before_it_gives_way_to_a_newborn },
      { "retry", a_lost_preemption_is_asked_for_again }, { "burst", an_interactive_holder_keeps_its_burst },
      { "brief", a_batch_thread_that_blocks_soon_is_left_alone },
      { "long", a_long_hold_after_brief_ones_ends_before_anybody_is_late },
      { "many", nobody_waits_for_many_brief_holds_in_a_row }, { "behind", nobody_is_late_for_having_waited_for_others_like_it },
      { "sure", the_ticker_is_not_woken_for_a_hold_that_surely_is_brief },
      { "kept", one_long_hold_leaves_a_thread_brief_that_was_for_long }, { "gate", who_is_brief_is_not_kept_at_the_gate },
      { "cut", a_hold_that_was_cut_short_may_have_been_brief },
      { "collection", a_hold_is_as_brief_without_the_collections_in_it },
      { "unwinds", who_may_unwind_is_left_alone_for_a_while }, { "alone", alone_nothing_happens }, { "budget", forced_switches_in_debt_cost_granularity },
      { "next", it_is_known_who_goes_on_when_a_thread_stops_running },
      { "called", who_is_called_back_from_the_gate_goes_first })
