/* Threads whose holds are brief: when they are left alone, until when, and who is told. */
#include "scenes.h"

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
answers_for_long(struct hw_thread *server, struct hw_thread *io)
{
    while (!hw_policy_is_surely_brief(server)) answers(server, io);
}

/* In a pool that is busy somebody always is late by that, and to wake the ticker takes longer than the hold. */
TEST(the_ticker_is_not_woken_for_a_hold_that_surely_is_brief)
{
    world_start(HW_FAIR);
    struct hw_thread *io = sleeper(), *server = running_hog();
    answers_for_long(server, io);
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
    answers_for_long(server, io);
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

TESTS({ "brief", a_batch_thread_that_blocks_soon_is_left_alone },
      { "long", a_long_hold_after_brief_ones_ends_before_anybody_is_late },
      { "many", nobody_waits_for_many_brief_holds_in_a_row }, { "behind", nobody_is_late_for_having_waited_for_others_like_it },
      { "sure", the_ticker_is_not_woken_for_a_hold_that_surely_is_brief },
      { "kept", one_long_hold_leaves_a_thread_brief_that_was_for_long }, { "gate", who_is_brief_is_not_kept_at_the_gate },
      { "cut", a_hold_that_was_cut_short_may_have_been_brief },
      { "collection", a_hold_is_as_brief_without_the_collections_in_it })
