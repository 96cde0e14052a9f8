/* The gate: whose turn it is, and to whom it is handed on. */
#include "scenes.h"

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
        CHECK_EQUAL(world.now + MS(100), world.orders.tick_ns);
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

TEST(whom_the_vm_lets_run_before_its_turn_is_sent_back_to_its_place)
{
    world_start(HW_FAIR);
    struct hw_thread *owner = running_hog();
    gives_way(owner);
    struct hw_thread *other = parked_hog(), *last = parked_hog();
    other->parked = false; /* its park was bounded */
    resumed(other);
    other->yielding = false;
    check_all();
    CHECK(s->admitted == owner);
    CHECK(must_yield(other));
    gives_way(other);
    check_all();
    CHECK(other->parked && other->at_gate);
    comes_back(owner);
    blocks(owner);
    CHECK(s->admitted == other && last->at_gate);
    world_end();
}

/* A thread whose own time is measured, so that tiers can be told apart: it has run for so long since it last blocked. */
static struct hw_thread *
waiting(uint64_t burst_ns)
{
    struct hw_thread *thread = sleeper();
    thread->burst_ns = burst_ns;
    ready(thread);
    return thread;
}

TEST(who_is_overtaken_goes_on_with_its_turn_before_the_others_of_its_tier)
{
    world_start(HW_FAIR);
    struct hw_thread *owner = waiting(MS(50)), *other = waiting(MS(50));
    resumed(owner);
    CHECK(s->admitted == owner && other->at_gate);
    advance(MS(120));
    struct hw_thread *lower = waiting(MS(8));
    CHECK(s->admitted == lower && world.orders.preempt == owner);
    check_all();
    gives_way(owner);
    CHECK(s->admitted == lower && owner->at_gate);
    resumed(lower);
    advance(MS(5));
    blocks(lower);
    CHECK(s->admitted == owner && other->at_gate);
    check_all();
    comes_back(owner);
    tick();
    CHECK_EQUAL(world.now + TURN_NS - MS(120), world.orders.tick_ns);
    advance(TURN_NS - MS(120));
    CHECK(must_yield(owner));
    gives_way(owner);
    CHECK(s->admitted == other && owner->at_gate);
    check_all();
    world_end();
}

TEST(what_others_take_ahead_of_it_shortens_nobody_s_turn)
{
    world_start(HW_FAIR);
    struct hw_thread *io = sleeper(), *owner = waiting(MS(50)), *other = waiting(MS(50));
    resumed(owner);
    for (int ran_ms = 0; ran_ms < 180; ran_ms += 20) {
        advance(MS(20));
        ready(io);
        gives_way(owner);
        CHECK(s->admitted == owner && other->at_gate);
        resumed(io);
        advance(MS(4));
        blocks(io);
        advance(MS(10));
        comes_back(owner);
        check_all();
    }
    tick();
    CHECK_EQUAL(world.now + TURN_NS - MS(180), world.orders.tick_ns);
    world_end();
}

TEST(who_came_first_to_the_gate_overtakes_first)
{
    world_start(HW_FAIR);
    struct hw_thread *owner = waiting(MS(11)), *first = waiting(MS(10)), *other = waiting(MS(50));
    resumed(owner);
    CHECK(s->admitted == owner && first->at_gate && other->at_gate);
    advance(MS(9));
    struct hw_thread *second = waiting(MS(9));
    CHECK(owner->tier == other->tier && second->at_gate && s->admitted == owner);
    CHECK(must_yield(owner));
    gives_way(owner);
    CHECK(s->admitted == first);
    blocks(first);
    CHECK(s->admitted == second);
    blocks(second);
    CHECK(s->admitted == other && owner->at_gate, "who climbed goes behind the others of its tier");
    check_all();
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
    CHECK_EQUAL(world.now + TURN_NS, world.orders.tick_ns);
    world_end();
}

/* So a thread that has started others, and computed for some milliseconds over it, doesn't wait for a whole turn of each. */
TEST(who_has_just_turned_batch_goes_before_those_that_did_a_little_earlier)
{
    world_start(HW_FAIR);
    struct hw_thread *owner = waiting(MS(9)), *other = waiting(MS(9));
    resumed(owner);
    CHECK(s->admitted == owner && other->at_gate);
    struct hw_thread *starter = waiting(MS(5.5));
    CHECK(s->admitted == starter && world.orders.preempt == owner);
    gives_way(owner);
    resumed(starter);
    check_all();
    advance(MS(1));
    blocks(starter);
    CHECK(s->admitted == owner && other->at_gate);
    world_end();
}

TEST(who_waits_alone_in_a_higher_tier_has_its_turn_after_the_lower_one_s)
{
    world_start(HW_FAIR);
    struct hw_thread *shorter = waiting(MS(50)), *longer = waiting(MS(5000));
    resumed(shorter);
    CHECK(s->admitted == shorter && longer->at_gate && shorter->tier < longer->tier);
    for (int round = 0; round < 3; round++) { /* in a fourth turn it climbs to the other's tier */
        advance(TURN_NS);
        CHECK(must_yield(shorter));
        gives_way(shorter);
        check_all();
        CHECK(s->admitted == longer && shorter->at_gate);
        if (longer->parked) comes_back(longer);
        else resumed(longer);
        CHECK(!must_yield(longer));
        tick();
        CHECK_EQUAL(world.now + MS(100), world.orders.tick_ns);
        advance(MS(100));
        CHECK(must_yield(longer));
        gives_way(longer);
        check_all();
        CHECK(s->admitted == shorter && longer->at_gate && longer->parked);
        comes_back(shorter);
        CHECK(!must_yield(shorter));
    }
    world_end();
}

TEST(an_admission_as_long_as_its_turn_may_be_is_not_repaired)
{
    struct hw_policy policy = hw_policy_default;
    policy.quantum_ns = 2 * HW_NS_PER_S;
    world_start(HW_FAIR);
    hw_scheduler_set_policy(s, &policy, world.now);
    struct hw_thread *io = sleeper(), *owner = running_hog();
    gives_way(owner);
    struct hw_thread *other = parked_hog();
    ready(io);
    resumed(io);
    advance(HW_NS_PER_S * 10);
    blocks(io);
    CHECK(!hw_scheduler_repair(s, other, world.now));
    CHECK(s->admitted == owner);
    world_end();
}

TEST(an_owner_whose_time_is_up_hands_over_to_whom_the_vm_chose)
{
    struct hw_policy policy = hw_policy_default;
    policy.quantum_ns = MS(50);
    world_start(HW_FAIR);
    hw_scheduler_set_policy(s, &policy, world.now);
    struct hw_thread *owner = running_hog();
    advance(MS(51));
    gives_way(owner);
    CHECK(s->admitted == owner && !owner->parked);
    struct hw_thread *other = waiting(MS(5000));
    resumed(other);
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

/* It was let go from the gate, blocked, and has come back: it waits for the GVL as if it had never been there. */
TEST(an_owner_that_blocked_since_is_not_on_its_way)
{
    world_start(HW_FAIR);
    struct hw_thread *io = sleeper(), *other = sleeper(), *owner = running_hog();
    ready(io);
    gives_way(owner);
    resumed(io);
    blocks(io);
    CHECK(world.orders.wake == owner && owner->open);
    comes_back(owner);
    blocks(owner);
    runs(other, MS(2));
    owner->burst_ns = MS(5000);
    ready(owner);
    CHECK(s->admitted == owner && !other->batch);
    advance(MS(4));
    tick();
    check_all();
    CHECK(other->batch && s->admitted == other && owner->at_gate);
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

TESTS({ "repair", only_an_admission_that_nobody_holds_up_is_repaired }, { "rotation", rotation_skips_nobody },
      { "owner_blocks", admission_is_passed_on_when_its_owner_blocks },
      { "owner_ends", admission_is_passed_on_when_its_owner_ends },
      { "shut", the_gate_is_shut_while_interactive_threads_are_active },
      { "starving", a_starving_admitted_thread_runs_next_and_is_protected },
      { "before_turn", whom_the_vm_lets_run_before_its_turn_is_sent_back_to_its_place },
      { "goes_on", who_is_overtaken_goes_on_with_its_turn_before_the_others_of_its_tier },
      { "own_time", what_others_take_ahead_of_it_shortens_nobody_s_turn },
      { "first", who_came_first_to_the_gate_overtakes_first },
      { "behind", who_overtook_a_tier_goes_behind_it_on_entering_it },
      { "just_batch", who_has_just_turned_batch_goes_before_those_that_did_a_little_earlier },
      { "alone", who_waits_alone_in_a_higher_tier_has_its_turn_after_the_lower_one_s },
      { "long_turn", an_admission_as_long_as_its_turn_may_be_is_not_repaired },
      { "handover", an_owner_whose_time_is_up_hands_over_to_whom_the_vm_chose },
      { "keeps_turn", a_starving_owner_on_its_way_keeps_its_turn_whom_the_vm_may_let_run_before },
      { "came_back", an_owner_that_blocked_since_is_not_on_its_way },
      { "overtaken", being_overtaken_costs_a_starving_owner_nothing },
      { "no_service", what_others_run_ahead_of_the_admitted_thread_is_no_service_to_it })
