/* Who is batch, interactive or fresh. */
#include "scenes.h"

TEST(a_fresh_thread_gives_way_to_nobody_until_it_is_batch)
{
    world_start(HW_FAIR);
    struct hw_thread *fresh = world_thread(HW_SUSPENDED, true), *io = sleeper();
    runs(fresh, US(10));
    ready(io);
    check_all();
    CHECK(world.orders.preempt == NULL);
    CHECK_EQUAL(world.now - US(10) + hw_policy_default.fresh_ns, world.orders.tick_ns);
    world.now = world.orders.tick_ns;
    hw_scheduler_tick(s, world.now, &world.orders);
    check_all();
    CHECK(fresh->batch && world.orders.preempt == fresh);
    world_end();
}

TEST(a_collection_makes_nobody_batch)
{
    world_start(HW_FAIR);
    struct hw_thread *thread = sleeper(), *io = sleeper();
    runs(thread, MS(3));
    ready(io);
    CHECK_EQUAL(world.now + MS(2), world.orders.tick_ns);
    advance(MS(7));
    tick();
    CHECK(world.orders.preempt == thread); /* it looks like computing until the collection is over */
    hw_scheduler_collected(s, thread, MS(7));
    hw_scheduler_collected(s, io, MS(70)); /* doesn't run, and isn't heard */
    CHECK(!must_yield(thread) && !thread->batch);
    check_all();
    advance(MS(2));
    CHECK(must_yield(thread) && thread->batch);
    blocks(thread);
    CHECK_EQUAL(MS(5), thread->burst_ns);
    check_all();
    world_end();
}

TEST(a_thread_is_fresh_until_it_blocks_and_then_has_the_whole_burst)
{
    world_start(HW_FAIR);
    struct hw_thread *thread = world_thread(HW_SUSPENDED, true);
    runs(thread, US(400));
    blocks(thread);
    CHECK(!thread->fresh);
    CHECK_EQUAL(US(400), thread->burst_ns);
    check_all();

    struct hw_thread *hog = world_thread(HW_SUSPENDED, true);
    runs(hog, MS(2));
    tick();
    CHECK(hog->batch);
    world_end();
}

TEST(threads_that_are_never_born_leave_others_their_first_time)
{
    world_start(HW_FAIR);
    struct hw_thread *announced = NULL;
    for (int i = 0; i < 20; i++) announced = world_thread(HW_READY, true);
    advance(MS(2000));
    tick();
    check_all();
    CHECK_EQUAL(0, s->unborn);
    struct hw_thread *thread = world_thread(HW_SUSPENDED, true);
    CHECK_EQUAL(hw_policy_fresh_burst_ns(&s->policy, 0), thread->burst_ns);
    resumed(announced); /* it was alive after all */
    check_all();
    CHECK_EQUAL(1, s->unborn);
    world_end();
}

TEST(a_cpu_bound_thread_that_naps_stays_batch)
{
    world_start(HW_FAIR);
    struct hw_thread *napper = sleeper();
    for (int i = 0; i < 1000; i++) {
        runs(napper, MS(1));
        blocks(napper);
        check_all();
        advance(US(1));
        if (i > 10) CHECK(napper->batch, "after %d naps", i);
    }
    world_end();
}

TEST(a_worker_is_interactive_again_soon_after_heavy_work)
{
    world_start(HW_FAIR);
    struct hw_thread *worker = sleeper();
    runs(worker, MS(150));
    blocks(worker);
    CHECK(worker->batch && hw_scheduler_is_batch(s, worker, world.now));
    advance(MS(5));
    CHECK(!hw_scheduler_is_batch(s, worker, world.now)); /* it is told so before it wakes */
    ready(worker);
    check_all();
    CHECK(!worker->batch);
    world_end();
}

TEST(a_class_set_by_hand_goes_before_what_was_measured)
{
    world_start(HW_FAIR);
    struct hw_thread *io = sleeper(), *hog = running_hog();
    hw_scheduler_set_class(s, hog, HW_CLASS_INTERACTIVE, world.now);
    ready(io);
    world_check();
    CHECK(world.orders.preempt == NULL && !hog->batch);
    hw_scheduler_set_class(s, hog, HW_CLASS_MEASURED, world.now);
    tick();
    check_all();
    CHECK(world.orders.preempt == hog);
    hw_scheduler_set_class(s, io, HW_CLASS_BATCH, world.now);
    world_check();
    CHECK(io->batch && s->admitted == io); /* it has attained less service */
    world_end();
}

/* It would be ahead of who has run for 20 ms, until it has, too. */
TEST(who_says_that_it_computes_interrupts_nobody_who_does)
{
    for (bool says = false;; says = true) {
        world_start(HW_FAIR);
        struct hw_thread *first = sleeper(), *other = sleeper();
        runs(first, MS(50));
        other->burst_ns = MS(5);
        other->since_ns = world.now; /* it has not slept that off */
        if (says) hw_scheduler_set_class(s, other, HW_CLASS_BATCH, world.now);
        ready(other);
        CHECK(other->batch && other->at_gate == says);
        CHECK((world.orders.preempt == first) == !says);
        world_end();
        if (says) break;
    }
}

/* As between queries: each would wait for all that compute. */
TEST(who_says_that_it_computes_and_blocks_is_taken_at_its_word_no_more)
{
    world_start(HW_FAIR);
    struct hw_thread *other = sleeper(), *hog = sleeper();
    hw_scheduler_set_class(s, other, HW_CLASS_BATCH, world.now);
    ready(other);
    CHECK_EQUAL(2, other->tier);
    resumed(other);
    advance(MS(1));
    blocks(other);
    runs(hog, MS(50));
    ready(other);
    CHECK(other->batch && other->tier == 0 && !other->at_gate);
    CHECK(world.orders.preempt == hog);
    world_end();
}

TESTS({ "collection", a_collection_makes_nobody_batch }, { "fresh", a_fresh_thread_gives_way_to_nobody_until_it_is_batch },
      { "proven", a_thread_is_fresh_until_it_blocks_and_then_has_the_whole_burst },
      { "naps", a_cpu_bound_thread_that_naps_stays_batch }, { "worker", a_worker_is_interactive_again_soon_after_heavy_work },
      { "class", a_class_set_by_hand_goes_before_what_was_measured },
      { "says", who_says_that_it_computes_interrupts_nobody_who_does },
      { "blocks", who_says_that_it_computes_and_blocks_is_taken_at_its_word_no_more },
      { "stillborn", threads_that_are_never_born_leave_others_their_first_time })
