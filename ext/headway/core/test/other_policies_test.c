/* The policies beside fair, and the changes between them. */
#include "scenes.h"

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

/* Whether or not it must give way: under fair those that compute have turns of many such times. */
TEST(the_holder_is_looked_at_while_somebody_has_waited_for_long)
{
    for (enum hw_policy_kind kind = 0; kind < HW_POLICY_COUNT; kind++) {
        world_start(kind);
        struct hw_thread *other = sleeper();
        hw_scheduler_set_class(s, other, HW_CLASS_BATCH, world.now);
        struct hw_thread *hog = running_hog();
        CHECK_EQUAL(HW_NEVER, hw_scheduler_sample_at_ns(s));
        ready(other);
        for (int sample = 0; sample < 3; sample++) {
            CHECK_EQUAL(world.now + HW_SAMPLE_NS, hw_scheduler_sample_at_ns(s));
            advance(HW_SAMPLE_NS - 1);
            CHECK(!hw_scheduler_sample_due(s, world.now));
            advance(1);
            CHECK(hw_scheduler_sample_due(s, world.now) && !hw_scheduler_sample_due(s, world.now));
        }
        CHECK_EQUAL(3 * HW_SAMPLE_NS, hw_scheduler_sample(s, world.now));
        advance(MS(3)); /* looked at as it gave way */
        CHECK_EQUAL(MS(3), hw_scheduler_sample(s, world.now));
        CHECK_EQUAL(world.now + HW_SAMPLE_NS, hw_scheduler_sample_at_ns(s));
        suspended(hog);
        CHECK_EQUAL(HW_NEVER, hw_scheduler_sample_at_ns(s));
        resumed(other);
        CHECK_EQUAL(HW_NEVER, hw_scheduler_sample_at_ns(s));
        world_end();
    }
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

/* Under stock Ruby's rules a thread that fourteen others are ahead of has its first turn after more than a second. */
TEST(who_never_ran_is_forgotten_only_when_it_could_have_run)
{
    for (int fair = 0; fair < 2; fair++) {
        world_start(fair ? HW_FAIR : HW_OBSERVE);
        running_hog();
        struct hw_thread *newborn = world_thread(HW_SUSPENDED, true);
        ready(newborn);
        advance(5 * HW_NS_PER_S);
        tick();
        check_all();
        CHECK_EQUAL(fair ? HW_SUSPENDED : HW_READY, newborn->state);
        advance(60 * HW_NS_PER_S);
        tick();
        check_all();
        CHECK_EQUAL(HW_SUSPENDED, newborn->state);
        world_end();
    }
}

TESTS({ "quantum", under_quantum_a_holder_has_its_quantum_from_when_somebody_waits },
      { "observe", under_observe_nobody_is_disturbed },
      { "sample", the_holder_is_looked_at_while_somebody_has_waited_for_long },
      { "policies", another_policy_empties_the_gate_and_fair_fills_it_again },
      { "never_ran", who_never_ran_is_forgotten_only_when_it_could_have_run })
