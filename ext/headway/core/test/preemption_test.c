/* Who is preempted by whom, when, and what too many forced switches cost. */
#include "scenes.h"

TEST(a_waking_interactive_thread_preempts_a_batch_holder_at_once)
{
    world_start(HW_FAIR);
    struct hw_thread *io = sleeper(), *hog = running_hog();
    ready(io);
    check_all();
    CHECK(hog->batch && !io->batch);
    CHECK(world.orders.preempt == hog && !world.orders.self);
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
    CHECK(world.orders.preempt == hog);
    CHECK_EQUAL(1, s->preemptions);
    CHECK_EQUAL(1, s->retries);
    world_end();
}

/* In native code, say. */
TEST(who_does_not_answer_is_passed_by)
{
    world_start(HW_FAIR);
    struct hw_thread *deaf = running_hog();
    gives_way(deaf);
    struct hw_thread *next = parked_hog(), *last = parked_hog();
    comes_back(deaf);
    advance(MS(100)); /* a quantum, and a turn in the last tier */
    tick();
    check_all();
    CHECK(world.orders.preempt == deaf && !world.orders.wake && s->admitted == deaf);
    advance(MS(99));
    tick();
    CHECK(!world.orders.wake, "it may be on its way");
    advance(MS(1));
    tick();
    check_all();
    CHECK(world.orders.wake == next && s->admitted == next && deaf->at_gate);
    next->parked = false;
    advance(MS(1000));
    tick();
    check_all();
    CHECK(!world.orders.wake && last->at_gate, "one is enough");
    gives_way(deaf); /* to go behind them */
    resumed(next);
    check_all();
    CHECK(deaf->at_gate && deaf->parked && s->gate.queues[deaf->tier].head == last);
    world_end();
}

TEST(who_is_ending_is_not_asked_but_passed_by)
{
    world_start(HW_FAIR);
    struct hw_thread *ending = running_hog();
    gives_way(ending);
    struct hw_thread *next = parked_hog();
    comes_back(ending);
    ending->ending = true;
    tick();
    CHECK(!world.orders.wake);
    advance(world.orders.tick_ns - world.now);
    tick();
    check_all();
    CHECK(!world.orders.preempt && world.orders.wake == next && s->admitted == next);
    CHECK(!must_yield(ending), "a job that was triggered before");
    ready(sleeper());
    CHECK(!world.orders.preempt);
    next->parked = false;
    removed(ending);
    check_all();
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
      { "unwinds", who_may_unwind_is_left_alone_for_a_while }, { "alone", alone_nothing_happens }, { "budget", forced_switches_in_debt_cost_granularity },
      { "next", it_is_known_who_goes_on_when_a_thread_stops_running },
      { "called", who_is_called_back_from_the_gate_goes_first }, { "deaf", who_does_not_answer_is_passed_by },
      { "ending", who_is_ending_is_not_asked_but_passed_by })
