/* Threads whose pieces of work are brief: when they are left alone, until when, and who is told. */
#include "scenes.h"

/* The batch thread answers so many questions, all of them short, and somebody interactive waits meanwhile. */
static void
answers(struct hw_thread *server, struct hw_thread *io, int questions)
{
    while (questions-- > 0) {
        ready(server);
        resumed(server);
        ready(io);
        advance(US(50));
        blocks(server);
        resumed(io);
        blocks(io);
    }
}

/* Such as a thread of a server that answers as fast as it can: each computes more than it sleeps, none keeps the GVL for long. */
static struct hw_thread *
brief_server(struct hw_thread *io)
{
    struct hw_thread *server = running_hog();
    blocks(server);
    answers(server, io, 4 * HW_PIECES_AVERAGED);
    CHECK(server->batch && hw_policy_is_brief(&s->policy, server));
    return server;
}

TEST(who_is_brief_is_left_alone_and_the_ticker_is_not_woken)
{
    world_start(HW_FAIR);
    struct hw_thread *io = sleeper(), *server = running_hog();
    blocks(server);
    bool was_brief = false;
    for (int piece = 0; piece < 50; piece++) {
        resumed(server);
        ready(io);
        check_all();
        bool brief = hw_policy_is_brief(&s->policy, server);
        CHECK(server->batch && brief >= was_brief);
        CHECK((world.orders.preempt == NULL) == brief, "piece %d", piece);
        CHECK_EQUAL(world.now + hw_policy_default.retry_ns, world.orders.tick_ns);
        advance(US(100));
        blocks(server);
        resumed(io);
        blocks(io);
        was_brief = brief;
    }
    CHECK(was_brief && s->preemptions > 0);
    world_end();
}

TEST(a_long_piece_after_brief_ones_ends_soon_after_somebody_is_late)
{
    for (int newborn = 0; newborn < 2; newborn++) {
        world_start(HW_FAIR);
        struct hw_thread *server = brief_server(sleeper());
        resumed(server);
        advance(US(10));
        struct hw_thread *other = newborn ? world_thread(HW_SUSPENDED, true) : sleeper();
        ready(other);
        for (uint64_t late_ns = world.now + hw_policy_default.brief_wait_ns; world.orders.preempt == NULL; tick()) {
            CHECK(world.orders.tick_ns <= late_ns + hw_policy_default.retry_ns);
            advance(world.orders.tick_ns - world.now);
        }
        gives_way(server);
        resumed(other);
        world_end();
    }
}

/* They are in the VM's queue ahead of it. */
TEST(nobody_waits_for_many_brief_pieces_in_a_row)
{
    enum { SERVERS = 8 };
    const uint64_t piece_ns = hw_policy_default.brief_wait_ns / 3;
    world_start(HW_FAIR);
    struct hw_thread *io = sleeper(), *servers[SERVERS];
    for (int i = 0; i < SERVERS; i++) {
        servers[i] = brief_server(io);
        servers[i]->set_class = HW_CLASS_BATCH;
    }
    ready(servers[0]);
    resumed(servers[0]);
    for (int i = 1; i < SERVERS; i++) ready(servers[i]);
    ready(io);
    uint64_t since_ns = world.now;
    for (int i = 0; i < SERVERS; i++) {
        bool late = world.now - since_ns >= hw_policy_default.brief_wait_ns;
        CHECK((world.orders.preempt == servers[i]) == late, "piece %d", i);
        if (late) gives_way(servers[i]);
        else {
            advance(piece_ns);
            blocks(servers[i]);
        }
        if (i < SERVERS - 1) resumed(servers[i + 1]);
    }
    CHECK(world.now - since_ns <= hw_policy_default.brief_wait_ns + piece_ns);
    resumed(io);
    world_end();
}

/* Whoever is brief has waited as long for them, and was ahead in the VM's queue. */
TEST(nobody_is_late_for_having_waited_for_others_like_it)
{
    world_start(HW_FAIR);
    struct hw_thread *io = sleeper(), *second = sleeper(), *server = brief_server(io);
    ready(io);
    resumed(io);
    ready(server);
    ready(second);
    advance(2 * hw_policy_default.brief_wait_ns);
    blocks(io);
    resumed(server);
    CHECK(world.orders.preempt == NULL);
    world_end();
}

/* Kept at the gate it would wait until nobody interactive is left, which others like it are by turns: a tenth of a second. */
TEST(who_is_brief_is_not_kept_at_the_gate)
{
    world_start(HW_FAIR);
    struct hw_thread *io = sleeper(), *server = brief_server(io), *hog = running_hog();
    ready(io);
    gives_way(hog);
    resumed(io);
    blocks(io);
    server->set_class = HW_CLASS_BATCH;
    ready(server);
    resumed(server);
    ready(io);
    advance(hw_policy_default.brief_wait_ns);
    tick();
    CHECK(world.orders.preempt == server && s->admitted == hog);
    gives_way(server);
    CHECK(server->at_gate);
    CHECK(hog->parked && !server->parked);
    world_end();
}

/* A heavy request among light ones: from then on it is one of those that wait at the gate. */
TEST(nobody_is_brief_in_the_midst_of_a_long_piece)
{
    world_start(HW_FAIR);
    struct hw_thread *io = sleeper(), *server = brief_server(io);
    ready(server);
    resumed(server);
    for (uint64_t ran_ns = 0; ran_ns < hw_policy_default.brief_most_ns; ran_ns += hw_policy_default.brief_wait_ns) {
        CHECK(hw_policy_is_brief(&s->policy, server));
        ready(io);
        advance(hw_policy_default.brief_wait_ns);
        tick();
        CHECK(world.orders.preempt == server);
        gives_way_to(server, io);
    }
    ready(io);
    CHECK(world.orders.preempt == server);
    gives_way(server);
    CHECK(server->parked && !hw_policy_is_brief(&s->policy, server));
    resumed(io);
    blocks(io);
    comes_back(server);
    blocks(server);
    CHECK(hw_policy_is_brief(&s->policy, server), "the next one mostly is, again");
    world_end();
}

TEST(a_piece_is_as_long_however_often_it_was_cut)
{
    world_start(HW_FAIR);
    struct hw_thread *io = sleeper(), *server = running_hog();
    for (int piece = 0; piece < 4 * HW_PIECES_AVERAGED; piece++) {
        blocks(server);
        ready(server);
        resumed(server);
        for (int cut = 0; cut < 5; cut++) {
            ready(io);
            advance(US(300));
            if (world.orders.preempt != server) tick();
            gives_way_to(server, io);
        }
        CHECK(!hw_policy_is_brief(&s->policy, server));
    }
    world_end();
}

TEST(a_piece_is_as_brief_without_the_collections_in_it)
{
    world_start(HW_FAIR);
    struct hw_thread *io = sleeper(), *server = brief_server(io);
    for (int piece = 0; piece < 4; piece++) {
        ready(server);
        resumed(server);
        advance(MS(20));
        hw_scheduler_collected(s, server, MS(20));
        ready(io);
        CHECK(world.orders.preempt == NULL && hw_policy_is_brief(&s->policy, server));
        blocks(server);
        resumed(io);
        blocks(io);
    }
    world_end();
}

/* It looks like a slice of the VM's: a collection, and a write within microseconds. */
TEST(what_looks_like_a_slice_is_no_more_than_a_long_piece)
{
    world_start(HW_FAIR);
    struct hw_thread *other = sleeper(), *server = brief_server(other);
    ready(server);
    resumed(server);
    advance(MS(20));
    hw_scheduler_collected(s, server, MS(20));
    ready(other);
    suspended(server);
    ready(server);
    CHECK(hw_policy_is_brief(&s->policy, server));
    world_end();
}

/* One of many threads that do the same, with somewhat more to do this time, while interactive ones saturate the GVL. */
TEST(who_blocks_often_but_was_cut_short_waits_for_a_few_times_what_it_had)
{
    world_start(HW_FAIR);
    struct hw_thread *io = sleeper(), *thread = sleeper();
    thread->burst_ns = MS(6);
    thread->usual_piece_ns = HW_OFTEN * hw_policy_default.brief_ns;
    ready(thread);
    resumed(thread);
    advance(MS(3));
    ready(io);
    CHECK(world.orders.preempt == thread);
    gives_way(thread);
    resumed(io);
    uint64_t starves_ns = world.now + hw_policy_default.starvation_pieces * MS(3);
    CHECK_EQUAL(starves_ns, hw_scheduler_starves_at_ns(s, thread));
    advance(starves_ns - world.now);
    CHECK(hw_scheduler_gate_open(s, thread, world.now));
    blocks(io);
    comes_back(thread);
    CHECK_EQUAL(world.now + hw_policy_default.brief_ns, thread->protected_ns);

    /* Who has just woken had nothing of its piece yet, and who had much waits no longer than others do. */
    blocks(thread);
    ready(thread);
    CHECK_EQUAL(world.now + hw_policy_default.starvation_ns, hw_scheduler_starves_at_ns(s, thread));
    resumed(thread);
    advance(MS(300));
    ready(io);
    gives_way(thread);
    CHECK_EQUAL(world.now + hw_policy_default.starvation_ns, hw_scheduler_starves_at_ns(s, thread));
    world_end();
}

TESTS({ "alone", who_is_brief_is_left_alone_and_the_ticker_is_not_woken },
      { "long", a_long_piece_after_brief_ones_ends_soon_after_somebody_is_late },
      { "many", nobody_waits_for_many_brief_pieces_in_a_row }, { "behind", nobody_is_late_for_having_waited_for_others_like_it },
      { "gate", who_is_brief_is_not_kept_at_the_gate }, { "midst", nobody_is_brief_in_the_midst_of_a_long_piece },
      { "cut", a_piece_is_as_long_however_often_it_was_cut }, { "collection", a_piece_is_as_brief_without_the_collections_in_it },
      { "slice", what_looks_like_a_slice_is_no_more_than_a_long_piece },
      { "starving", who_blocks_often_but_was_cut_short_waits_for_a_few_times_what_it_had })
