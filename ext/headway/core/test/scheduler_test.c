/* The scheduler, event by event, on a clock of the test's own. */
#include "world.h"

static struct hw_scheduler *const s = &world.scheduler;

/* -- scenes ------------------------------------------------------------------------------------------------------------- */

/* The thread gets the GVL the ordinary way and keeps it for so long. */
static void
runs(struct hw_thread *thread, uint64_t ns)
{
    ready(thread);
    resumed(thread);
    advance(ns);
}

static void
blocks(struct hw_thread *thread)
{
    suspended(thread);
}

/* The holder's job gives way and the thread parks, unless the gate is open. */
static void
gives_way(struct hw_thread *thread)
{
    thread->yielding = true;
    suspended(thread);
    thread->parked = !hw_scheduler_gate_open(s, thread, world.now);
    atomic_store(&thread->open, false);
}

/* It comes back from the gate and gets the GVL. */
static void
comes_back(struct hw_thread *thread)
{
    thread->parked = false;
    ready(thread);
    resumed(thread);
    thread->yielding = false;
}

static struct hw_thread *
sleeper(void)
{
    return world_thread(HW_SUSPENDED, false);
}

/* A thread that has run for long, is in the last tier, and runs now. */
static struct hw_thread *
running_hog(void)
{
    struct hw_thread *hog = sleeper();
    runs(hog, MS(5000));
    tick();
    return hog;
}

static struct hw_thread *
parked_hog(void)
{
    struct hw_thread *hog = sleeper();
    hog->burst_ns = MS(5000);
    ready(hog);
    resumed(hog);
    CHECK(must_yield(hog));
    gives_way(hog);
    CHECK(hog->at_gate && hog->parked);
    return hog;
}

static void
check_all(void)
{
    world_check();
    world_check_orders();
}

/* -- wake-up preemption ------------------------------------------------------------------------------------------------- */

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

/* -- the gate ----------------------------------------------------------------------------------------------------------- */

/* `first` is admitted and waits while an interactive thread keeps the GVL; `second` is parked behind it. */
TEST(only_an_admission_that_nobody_holds_up_is_repaired)
{
    world_start(HW_FAIR);
    struct hw_thread *io = sleeper(), *first = running_hog();
    gives_way(first);
    struct hw_thread *second = parked_hog();
    ready(io);
    resumed(io);
    advance(HW_NS_PER_S * 10);
    CHECK(!hw_scheduler_repair(s, second, world.now), "somebody keeps the GVL");
    CHECK(s->admitted == first);
    blocks(io);
    CHECK(s->holder == NULL);
    CHECK(hw_scheduler_repair(s, second, world.now), "and now nobody does");
    CHECK(s->admitted == second && first->at_gate);
    second->parked = false; /* it goes */
    check_all();
    world_end();
}

TEST(rotation_skips_nobody)
{
    enum { HOGS = 5, ROUNDS = 4 };
    world_start(HW_FAIR);
    struct hw_thread *first = running_hog(), *hogs[HOGS] = { first };
    gives_way(first);
    for (int i = 1; i < HOGS; i++) hogs[i] = parked_hog();
    comes_back(first);
    CHECK(s->admitted == first);

    for (int turn = 0; turn < HOGS * ROUNDS; turn++) {
        struct hw_thread *hog = hogs[turn % HOGS];
        CHECK(s->holder == hog && s->admitted == hog, "turn %d", turn);
        tick();
        CHECK_EQUAL(s->admitted_ns + MS(100), world.orders.tick_ns);
        advance(world.orders.tick_ns - world.now);
        tick();
        CHECK(world.orders.preempt == hog);
        CHECK(must_yield(hog));
        gives_way(hog);
        check_all();
        CHECK(hog->at_gate && hog->parked);
        CHECK(world.orders.wake == hogs[(turn + 1) % HOGS]);
        comes_back(hogs[(turn + 1) % HOGS]);
        check_all();
    }
    world_end();
}

TEST(admission_is_passed_on_when_its_owner_blocks)
{
    world_start(HW_FAIR);
    struct hw_thread *owner = running_hog();
    tick();
    gives_way(owner);
    struct hw_thread *next = parked_hog();
    comes_back(owner);
    advance(MS(1));
    blocks(owner);
    check_all();
    CHECK(s->admitted == next && world.orders.wake == next);
    world_end();
}

TEST(admission_is_passed_on_when_its_owner_ends)
{
    world_start(HW_FAIR);
    struct hw_thread *owner = running_hog();
    gives_way(owner);
    struct hw_thread *next = parked_hog(), *last = parked_hog();
    comes_back(owner);
    removed(owner);
    check_all();
    CHECK(s->admitted == next && world.orders.wake == next);
    CHECK(owner->link == NULL && s->holder == NULL);
    CHECK_EQUAL(2, s->living);
    next->parked = false;
    removed(next);
    check_all();
    CHECK(s->admitted == last && world.orders.wake == last);
    removed(last);
    CHECK(s->admitted == NULL);
    CHECK_EQUAL(0, s->living);
    removed(last); /* does nothing */
    CHECK_EQUAL(0, s->living);
    world_end();
}

TEST(the_gate_is_shut_while_interactive_threads_are_active)
{
    world_start(HW_FAIR);
    struct hw_thread *a = sleeper(), *b = sleeper(), *hog = running_hog();
    ready(a);
    ready(b);
    gives_way(hog);
    CHECK(hog->parked);
    resumed(a);
    advance(US(50));
    blocks(a);
    check_all();
    CHECK(world.orders.wake == NULL && !hw_scheduler_gate_open(s, hog, world.now));
    resumed(b);
    advance(US(50));
    blocks(b);
    check_all();
    CHECK(world.orders.wake == hog);
    world_end();
}

TEST(a_starving_admitted_thread_runs_next_and_is_protected)
{
    world_start(HW_FAIR);
    struct hw_thread *io[] = { sleeper(), sleeper() }, *hog = running_hog();
    ready(io[0]);
    gives_way(hog);
    uint64_t from_ns = world.now;
    CHECK_EQUAL(from_ns + MS(100), hw_scheduler_starves_at_ns(s, hog));
    resumed(io[0]);

    /* Two of them, by turns, leave no gap. */
    for (int turn = 0; world.now < from_ns + MS(99); turn++) {
        advance(MS(1));
        ready(io[(turn + 1) % 2]);
        blocks(io[turn % 2]);
        check_all();
        CHECK(world.orders.wake == NULL && !atomic_load(&hog->open));
        resumed(io[(turn + 1) % 2]);
    }
    advance(MS(2));
    tick();
    CHECK(world.orders.wake == hog);
    hog->parked = false;
    ready(io[0]);
    blocks(s->holder);
    resumed(hog);
    hog->yielding = false;
    CHECK_EQUAL(world.now + MS(5), hog->protected_ns);
    CHECK(!must_yield(hog));
    advance(MS(4));
    tick();
    CHECK(world.orders.preempt == NULL);
    advance(MS(1));
    tick();
    CHECK(world.orders.preempt == hog);
    world_end();
}

TEST(whom_the_vm_lets_run_before_its_turn_is_sent_to_the_gate)
{
    world_start(HW_FAIR);
    struct hw_thread *owner = running_hog();
    gives_way(owner);
    struct hw_thread *other = parked_hog();
    other->parked = false; /* its park was bounded */
    resumed(other);
    other->yielding = false;
    check_all();
    CHECK(!other->at_gate && s->admitted == owner);
    CHECK(must_yield(other));
    gives_way(other);
    CHECK(other->parked && other->at_gate);
    world_end();
}

/* A request that computes doesn't wait till the one that came after it is done. */
TEST(who_overtook_a_tier_goes_behind_it_on_entering_it)
{
    world_start(HW_FAIR);
    struct hw_thread *first = sleeper(), *second = sleeper();
    runs(first, MS(60));
    ready(second);
    CHECK(world.orders.preempt == first);
    gives_way(first);
    resumed(second);
    advance(MS(5));
    tick();
    CHECK(second->batch && second->tier < first->tier);
    CHECK(s->admitted == second && first->at_gate && !must_yield(second));
    check_all();
    tick();
    CHECK_EQUAL(world.now + MS(15), world.orders.tick_ns);
    advance(MS(15));
    tick();
    CHECK(world.orders.preempt == second && must_yield(second));
    gives_way(second);
    CHECK(s->admitted == first && second->at_gate && second->tier == first->tier);
    check_all();
    comes_back(first);
    tick();
    CHECK_EQUAL(world.now + hw_policy_default.quantum_ns, world.orders.tick_ns);
    world_end();
}

TEST(an_owner_whose_time_is_up_hands_over_to_whom_the_vm_chose)
{
    struct hw_policy policy = hw_policy_default;
    policy.quantum_ns = MS(50);
    world_start(HW_FAIR);
    hw_scheduler_set_policy(s, &policy, world.now);
    struct hw_thread *owner = running_hog();
    gives_way(owner);
    struct hw_thread *other = parked_hog();
    owner->parked = false; /* on its way back */
    other->parked = false;
    advance(MS(51));
    resumed(other);
    other->yielding = false;
    check_all();
    CHECK(s->admitted == other && owner->at_gate);
    CHECK(!must_yield(other));
    world_end();
}

/* Interactive threads saturate the GVL; the owner has starved, was woken, and is in the VM's ready queue. */
static struct hw_thread *
starved_owner_on_its_way(void)
{
    struct hw_thread *io = sleeper(), *owner = running_hog();
    ready(io);
    gives_way(owner);
    resumed(io);
    advance(MS(101));
    io->set_class = HW_CLASS_INTERACTIVE;
    tick();
    CHECK(world.orders.wake == owner);
    owner->parked = false;
    ready(owner);
    return owner;
}

TEST(a_starving_owner_on_its_way_keeps_its_turn_whom_the_vm_may_let_run_before)
{
    world_start(HW_FAIR);
    struct hw_thread *other = sleeper(), *owner = starved_owner_on_its_way();
    other->burst_ns = MS(100000);
    ready(other);
    suspended(s->holder);
    resumed(other);
    check_all();
    CHECK(s->admitted == owner && world.orders.preempt == other);
    gives_way(other);
    resumed(owner);
    check_all();
    CHECK(owner->protected_ns == world.now + hw_policy_default.protection_ns);
    world_end();
}

TEST(being_overtaken_costs_a_starving_owner_nothing)
{
    world_start(HW_FAIR);
    struct hw_thread *other = sleeper(), *owner = starved_owner_on_its_way();
    other->set_class = HW_CLASS_BATCH;
    ready(other); /* less service, so a lower tier */
    check_all();
    CHECK(other->batch && other->tier < owner->tier);
    CHECK(s->admitted == owner && other->at_gate);
    world_end();
}

TEST(what_others_run_ahead_of_the_admitted_thread_is_no_service_to_it)
{
    world_start(HW_FAIR);
    struct hw_thread *io = sleeper(), *other = sleeper(), *hog = running_hog();
    other->burst_ns = MS(100000); /* of the hog's tier */
    ready(io);
    gives_way(hog);
    uint64_t from_ns = world.now;
    while (world.now < from_ns + MS(96)) {
        resumed(io);
        advance(MS(1));
        ready(other);
        CHECK(other->at_gate && other->tier == hog->tier);
        blocks(io);
        resumed(other);
        advance(MS(2));
        ready(io);
        blocks(other);
        check_all();
        CHECK(s->admitted == hog && world.orders.wake == NULL);
        other->burst_ns = MS(100000);
        atomic_store(&hog->open, false); /* woken when io blocked, it finds the gate shut again */
    }
    resumed(io);
    CHECK(world.orders.wake == NULL);
    world.now = from_ns + MS(100);
    tick();
    CHECK(world.orders.wake == hog);
    world_end();
}

/* -- class -------------------------------------------------------------------------------------------------------------- */

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
    CHECK(worker->batch);
    advance(MS(5));
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

/* -- budget ------------------------------------------------------------------------------------------------------------- */

TEST(forced_switches_over_the_budget_cost_granularity)
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
    CHECK(switches < 2 * hw_policy_default.switches_per_s + 500 && switches > 1500, "%u switches in 2 s", switches);

    advance(MS(1000)); /* the budget recovers */
    ready(io);
    CHECK(world.orders.preempt == hog);
    world_end();
}

/* -- other policies ----------------------------------------------------------------------------------------------------- */

TEST(under_quantum_a_holder_has_its_quantum_from_when_somebody_waits)
{
    world_start(HW_QUANTUM);
    struct hw_thread *waiter = sleeper(), *hog = running_hog();
    hog->quantum_ns = MS(7);
    advance(MS(500));
    ready(waiter);
    CHECK(world.orders.preempt == NULL);
    CHECK_EQUAL(world.now + MS(7), world.orders.tick_ns);
    advance(MS(7));
    tick();
    check_all();
    CHECK(world.orders.preempt == hog);
    gives_way(hog);
    CHECK(!hog->parked && s->gate.length == 0 && s->admitted == NULL);
    resumed(waiter);
    CHECK_EQUAL(world.now + MS(100), world.orders.tick_ns);
    world_end();
}

TEST(under_observe_nobody_is_disturbed)
{
    world_start(HW_OBSERVE);
    struct hw_thread *io = sleeper(), *hog = running_hog();
    ready(io);
    advance(MS(5000));
    tick();
    CHECK(world.orders.preempt == NULL && !must_yield(hog));
    world_end();
}

TEST(under_observe_the_holder_is_looked_at_while_somebody_has_waited_for_long)
{
    world_start(HW_OBSERVE);
    struct hw_thread *io = sleeper();
    running_hog();
    tick();
    CHECK(!world.orders.sample && world.orders.tick_ns == HW_NEVER);
    ready(io);
    CHECK_EQUAL(world.now + HW_SAMPLE_NS, world.orders.tick_ns);
    for (int sample = 0; sample < 5; sample++) {
        advance(HW_SAMPLE_NS - 2);
        tick();
        CHECK(!world.orders.sample);
        advance(2);
        tick();
        CHECK(world.orders.sample);
        CHECK_EQUAL(world.now + HW_SAMPLE_NS, world.orders.tick_ns);
    }
    suspended(s->holder);
    resumed(io);
    CHECK(!world.orders.sample && world.orders.tick_ns == HW_NEVER);
    world_end();
}

TEST(another_policy_empties_the_gate_and_fair_fills_it_again)
{
    world_start(HW_FAIR);
    struct hw_thread *owner = running_hog();
    gives_way(owner);
    struct hw_thread *parked[] = { parked_hog(), parked_hog(), parked_hog() };
    struct hw_policy policy = hw_policy_default;
    for (int round = 0; round < 4; round++) {
        policy.kind = round % 2 ? HW_FAIR : round == 0 ? HW_QUANTUM : HW_OBSERVE;
        hw_scheduler_set_policy(s, &policy, world.now);
        world_check();
        CHECK_EQUAL(policy.kind == HW_FAIR ? 3 : 0, s->gate.length);
        for (int i = 0; i < 3; i++) CHECK(policy.kind == HW_FAIR || hw_scheduler_gate_open(s, parked[i], world.now));
    }
    world_end();
}

/* -- what the VM may do to us ------------------------------------------------------------------------------------------- */

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

TESTS({ "preempt", a_waking_interactive_thread_preempts_a_batch_holder_at_once },
      { "newborn", a_creator_goes_on_for_a_moment_before_it_gives_way_to_a_newborn },
      { "repair", only_an_admission_that_nobody_holds_up_is_repaired },
      { "retry", a_lost_preemption_is_asked_for_again },
      { "burst", an_interactive_holder_keeps_its_burst }, { "alone", alone_nothing_happens },
      { "collection", a_collection_makes_nobody_batch }, { "fresh", a_fresh_thread_gives_way_to_nobody_until_it_is_batch },
      { "proven", a_thread_is_fresh_until_it_blocks_and_then_has_the_whole_burst }, { "rotation", rotation_skips_nobody },
      { "owner_blocks", admission_is_passed_on_when_its_owner_blocks }, { "owner_ends", admission_is_passed_on_when_its_owner_ends },
      { "shut", the_gate_is_shut_while_interactive_threads_are_active },
      { "starving", a_starving_admitted_thread_runs_next_and_is_protected },
      { "before_turn", whom_the_vm_lets_run_before_its_turn_is_sent_to_the_gate },
      { "behind", who_overtook_a_tier_goes_behind_it_on_entering_it }, { "handover", an_owner_whose_time_is_up_hands_over_to_whom_the_vm_chose }, { "keeps_turn", a_starving_owner_on_its_way_keeps_its_turn_whom_the_vm_may_let_run_before },
      { "overtaken", being_overtaken_costs_a_starving_owner_nothing }, { "naps", a_cpu_bound_thread_that_naps_stays_batch },
      { "no_service", what_others_run_ahead_of_the_admitted_thread_is_no_service_to_it },
      { "worker", a_worker_is_interactive_again_soon_after_heavy_work },
      { "class", a_class_set_by_hand_goes_before_what_was_measured }, { "budget", forced_switches_over_the_budget_cost_granularity },
      { "quantum", under_quantum_a_holder_has_its_quantum_from_when_somebody_waits }, { "observe", under_observe_nobody_is_disturbed },
      { "sample", under_observe_the_holder_is_looked_at_while_somebody_has_waited_for_long },
      { "policies", another_policy_empties_the_gate_and_fair_fills_it_again },
      { "vm_slice", the_vms_own_slice_is_no_voluntary_block }, { "twice", events_that_come_twice_count_once },
      { "missing", events_that_are_missing_are_made_up_for },
      { "job", the_job_makes_its_thread_the_holder_and_nobody_else_stays_one },
      { "clock", a_clock_that_steps_back_counts_as_no_time }, { "statistic", a_statistic_never_falls_below_zero },
      { "random", whatever_comes_the_invariants_hold })
