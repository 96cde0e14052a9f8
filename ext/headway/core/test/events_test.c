/* What the VM may do to the scheduler: slices of its own, events that come twice, late or not at all. */
#include "scenes.h"

TEST(the_vms_own_slice_is_no_voluntary_block)
{
    world_start(HW_FAIR);
    struct hw_thread *other = sleeper(), *hog = running_hog();
    ready(other);
    advance(MS(80));
    suspended(hog);
    ready(hog);
    CHECK_EQUAL(0, hog->account.voluntary);
    CHECK_EQUAL(1, hog->account.preempted);
    CHECK_EQUAL(0, s->account.voluntary);
    check_all();

    resumed(other);
    advance(US(100));
    suspended(other);
    advance(US(5));
    ready(other);
    CHECK_EQUAL(1, other->account.voluntary);
    CHECK_EQUAL(0, other->account.preempted);
    world_end();
}

/* Nor does it pass for a block to who says that it computes, as it would then go ahead of who does. */
TEST(a_slice_of_the_vm_s_leaves_a_thread_its_word)
{
    world_start(HW_FAIR);
    struct hw_thread *owner = sleeper(), *says = sleeper();
    owner->burst_ns = MS(50);
    ready(owner);
    hw_scheduler_set_class(s, says, HW_CLASS_BATCH, world.now);
    runs(says, MS(10));
    suspended(says);
    ready(says);
    CHECK_EQUAL(2, says->tier);
    CHECK(s->admitted == owner && says->at_gate);
    check_all();

    resumed(says);
    advance(MS(1));
    suspended(says);
    ready(says);
    CHECK(says->tier < 2); /* it might have been a call without the GVL */
    world_end();
}

TEST(a_slice_of_the_vm_s_takes_neither_burst_nor_turn_from_the_admitted_thread)
{
    world_start(HW_FAIR);
    struct hw_thread *owner = sleeper(), *next = sleeper(), *io = sleeper();
    owner->burst_ns = next->burst_ns = MS(50);
    ready(owner);
    ready(next);
    resumed(owner);
    advance(MS(100));
    suspended(owner);
    CHECK(s->admitted == next && !owner->at_gate);
    ready(owner);
    CHECK_EQUAL(MS(150), owner->burst_ns);
    CHECK(s->admitted == owner && next->at_gate);
    check_all();
    resumed(next); /* it is the VM that chooses */
    CHECK(must_yield(next));
    gives_way(next);
    resumed(owner);
    ready(io);
    CHECK(world.orders.preempt == owner);
    gives_way_to(owner, io);
    tick();
    CHECK_EQUAL(world.now + TURN_NS - MS(100), world.orders.tick_ns);
    check_all();
    world_end();
}

TEST(the_vm_s_slice_at_the_end_of_a_turn_passes_the_admission_on)
{
    world_start(HW_FAIR);
    struct hw_thread *owner = running_hog(), *next = sleeper();
    next->burst_ns = MS(5000);
    ready(next);
    advance(MS(100));
    suspended(owner);
    ready(owner);
    CHECK(s->admitted == next && owner->at_gate && owner->tier == HW_TIERS - 1);
    check_all();
    world_end();
}

TEST(events_that_come_twice_count_once)
{
    world_start(HW_FAIR);
    struct hw_thread *thread = sleeper();
    ready(thread);
    advance(MS(1));
    ready(thread);
    advance(MS(1));
    resumed(thread);
    resumed(thread);
    advance(MS(1));
    resumed(thread);
    check_all();
    advance(MS(1));
    suspended(thread);
    suspended(thread);
    check_all();
    CHECK_EQUAL(1, thread->account.wait.count);
    CHECK_EQUAL(MS(2), thread->account.wait.max_ns);
    CHECK_EQUAL(1, thread->account.hold.count);
    CHECK_EQUAL(MS(2), thread->account.hold.max_ns);
    CHECK_EQUAL(1, thread->account.voluntary);
    world_end();
}

TEST(events_that_are_missing_are_made_up_for)
{
    world_start(HW_FAIR);
    struct hw_thread *a = sleeper(), *b = sleeper();
    ready(a);
    resumed(a);
    advance(MS(1));
    ready(b);
    resumed(b); /* no SUSPENDED of a */
    check_all();
    CHECK(s->holder == b && a->state == HW_SUSPENDED);
    advance(MS(1));
    ready(b); /* no SUSPENDED of b */
    check_all();
    CHECK(s->holder == NULL && b->state == HW_READY);
    resumed(a); /* no READY of a */
    check_all();
    CHECK(s->holder == a);
    world_end();
}

TEST(the_job_makes_its_thread_the_holder_and_nobody_else_stays_one)
{
    world_start(HW_FAIR);
    struct hw_thread *a = sleeper(), *b = sleeper();
    runs(a, MS(1));
    must_yield(b);
    world_check();
    CHECK(s->holder == b && a->state != HW_RUNNING);
    world_end();
}

TEST(a_clock_that_steps_back_counts_as_no_time)
{
    world_start(HW_FAIR);
    struct hw_thread *a = sleeper(), *b = sleeper();
    runs(a, MS(10));
    ready(b);
    world.now -= MS(8);
    world.waits_may_differ = true;
    suspended(a);
    check_all();
    resumed(b);
    world.now -= MS(1);
    ready(a);
    check_all();
    CHECK(!b->batch);
    advance(MS(1));
    suspended(b);
    check_all();
    world_end();
}

/* Two threads that wait by Thread.pass. */
TEST(who_gives_up_the_gvl_and_wants_it_back_at_once_has_not_slept)
{
    world_start(HW_FAIR);
    struct hw_thread *passers[] = { sleeper(), sleeper() }, *hog = running_hog();
    for (int i = 0; i < 2; i++) ready(passers[i]);
    gives_way(hog);
    resumed(passers[0]);
    for (int round = 0; round < 10000; round++) {
        struct hw_thread *passes = passers[round % 2], *other = passers[(round + 1) % 2];
        advance(US(2));
        suspended(passes);
        advance(US(1));
        ready(passes);
        resumed(other);
    }
    check_all();
    CHECK(passers[0]->batch && passers[1]->batch);
    CHECK_EQUAL(MS(10), passers[0]->burst_ns); /* it did give up the GVL, and goes before who computes */
    world_end();
}

/* Bookkeeping of the VM's slices must survive records that are reset between two events. */
TEST(a_statistic_never_falls_below_zero)
{
    world_start(HW_FAIR);
    struct hw_thread *other = sleeper(), *hog = running_hog();
    ready(other);
    suspended(hog);
    removed(hog);
    hw_account_reset(&hog->account);
    hw_scheduler_add(s, hog, HW_SUSPENDED, world.now);
    advance(MS(50));
    hog->since_ns = world.now;
    ready(hog);
    CHECK(hog->account.voluntary < UINT64_MAX / 2);
    world_end();
}

TEST(what_is_run_beyond_the_limit_of_a_burst_is_summed)
{
    world_start(HW_OBSERVE);
    struct hw_thread *brief = sleeper(), *heavy = sleeper();
    for (int i = 0; i < 10; i++) {
        runs(brief, MS(2));
        blocks(brief);
        advance(MS(1));
    }
    CHECK_EQUAL(0, hw_scheduler_batch_ns(s, world.now));
    runs(heavy, MS(4));
    gives_way(heavy);
    comes_back(heavy);
    advance(MS(3));
    CHECK_EQUAL(MS(2), hw_scheduler_batch_ns(s, world.now));
    CHECK_EQUAL(0, hw_scheduler_batch_waits_ns(s, world.now));
    comes_back(brief);
    CHECK_EQUAL(MS(2), hw_scheduler_batch_waits_ns(s, world.now));
    blocks(heavy);
    CHECK_EQUAL(MS(2), hw_scheduler_batch_ns(s, world.now));
    CHECK_EQUAL(MS(2), hw_scheduler_batch_waits_ns(s, world.now));

    runs(brief, MS(20));
    s->batch_ns = 0; /* as all is set to zero, */
    hw_account_reset(&s->account);
    brief->since_ns = world.now; /* in the middle of a hold */
    advance(MS(1));
    CHECK_EQUAL(MS(1), hw_scheduler_batch_ns(s, world.now));
    blocks(brief);
    CHECK_EQUAL(MS(1), hw_scheduler_batch_ns(s, world.now));
    world_end();
}

/* -- at random ---------------------------------------------------------------------------------------------------------- */

static void
random_time(void)
{
    static const uint64_t scales_ns[] = { US(1), US(50), MS(1), MS(10), MS(150) };
    advance(test_random(scales_ns[test_random(5)]));
    if (test_random(2000) != 0) return;
    world.now -= test_random(MS(3));
    world.waits_may_differ = true;
}

static void
random_policy(void)
{
    struct hw_policy policy = hw_policy_default;
    policy.kind = (enum hw_policy_kind)(test_random(3) ? HW_FAIR : test_random(HW_POLICY_COUNT));
    policy.quantum_ns = test_random(3) ? MS(1 + test_random(200)) : UINT64_C(4294967) * HW_NS_PER_MS;
    hw_scheduler_set_policy(s, &policy, world.now);
}

static void
replace(struct hw_thread *thread)
{
    removed(thread);
    world_check();
    struct hw_account account = thread->account;
    memset(thread, 0, sizeof(*thread));
    thread->account = account;
    hw_account_reset(&thread->account);
    thread->fresh = test_random(2);
    hw_scheduler_add(s, thread, test_random(3) ? HW_SUSPENDED : HW_READY, world.now);
    world.unaccounted_ns[world_number(thread)] = world.now;
    tick();
}

static void
revive(struct hw_thread *thread)
{
    uint64_t known_ns = 0;
    if (thread->state == HW_READY) world.waits_may_differ = true;
    hw_scheduler_revive(s, thread, test_random(2) ? HW_SUSPENDED : HW_RUNNING, world.now);
    for (int state = 0; state < HW_STATE_COUNT; state++) known_ns += thread->account.time_ns[state];
    world.unaccounted_ns[world_number(thread)] = world.now - known_ns;
    tick();
}

/* Events in any order for any thread: nothing here ever happens as it should. */
static void
random_event(struct hw_thread *thread)
{
    uint64_t what = test_random(16);
    if (getenv("HW_TEST_TRACE")) printf("event %d thread %u now %llu\n", (int)what, world_number(thread), (unsigned long long)world.now);
    switch (what) {
      case 0: case 1: case 2:
        ready(thread);
        break;
      case 3: case 4: case 5:
        resumed(thread);
        break;
      case 6: case 7:
        suspended(thread);
        break;
      case 8: case 9:
        thread->yielding = true;
        suspended(thread);
        if (test_random(2)) thread->yielding = false;
        break;
      case 10:
        thread->yielding = false;
        must_yield(thread);
        tick();
        break;
      case 11:
        thread->parked = thread->state == HW_READY && test_random(2);
        atomic_store(&thread->open, false);
        tick();
        break;
      case 12:
        hw_scheduler_set_class(s, thread, (enum hw_class)test_random(3), world.now);
        tick();
        break;
      case 13:
        if (test_random(4) == 0) random_policy();
        tick();
        break;
      case 14:
        if (test_random(3) == 0) replace(thread);
        else if (test_random(8) == 0) revive(thread);
        else tick();
        break;
      default:
        tick();
    }
}

TEST(whatever_comes_the_invariants_hold)
{
    enum { THREADS = 7 };
    for (unsigned round = 0; round < test_effort(100); round++) {
        world_start(HW_FAIR);
        for (int i = 0; i < THREADS; i++) world_thread(i == 0 ? HW_RUNNING : HW_SUSPENDED, test_random(2));
        for (int event = 0; event < 2000; event++) {
            random_time();
            random_event(&world.threads[test_random(THREADS)]);
            check_all();
        }
        world_end();
    }
}

TESTS({ "vm_slice", the_vms_own_slice_is_no_voluntary_block }, { "word", a_slice_of_the_vm_s_leaves_a_thread_its_word },
      { "slice_turn", a_slice_of_the_vm_s_takes_neither_burst_nor_turn_from_the_admitted_thread },
      { "slice_over", the_vm_s_slice_at_the_end_of_a_turn_passes_the_admission_on },
      { "pass", who_gives_up_the_gvl_and_wants_it_back_at_once_has_not_slept },
      { "twice", events_that_come_twice_count_once },
      { "missing", events_that_are_missing_are_made_up_for },
      { "job", the_job_makes_its_thread_the_holder_and_nobody_else_stays_one },
      { "clock", a_clock_that_steps_back_counts_as_no_time }, { "statistic", a_statistic_never_falls_below_zero },
      { "batch", what_is_run_beyond_the_limit_of_a_burst_is_summed },
      { "random", whatever_comes_the_invariants_hold })
