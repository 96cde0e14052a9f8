/* A scheduler with a clock of its own, and the invariants of scheduler.h checked the slow way. */
#ifndef HW_TEST_WORLD_H
#define HW_TEST_WORLD_H

#include "scheduler.h"
#include "test.h"
#include "times.h"

#define WORLD_THREADS 64

struct world {
    struct hw_scheduler scheduler;
    struct hw_thread threads[WORLD_THREADS];
    uint64_t unaccounted_ns[WORLD_THREADS]; /* of a thread's life: before it was added or revived */
    unsigned used;
    uint64_t gone_ns[HW_STATE_COUNT];       /* times of threads that were removed */
    uint64_t now;
    bool waits_may_differ; /* of account and attribution: the clock stepped back, or a waiting thread was revived */
    struct hw_orders orders;                /* of the last event */
};

static struct world world;

static inline void
world_end(void)
{
    for (unsigned i = 0; i < world.used; i++) hw_account_free(&world.threads[i].account);
    hw_scheduler_free(&world.scheduler);
}

static inline void
world_start(enum hw_policy_kind kind)
{
    struct hw_policy policy = hw_policy_default;
    policy.kind = kind;
    memset(&world, 0, sizeof(world));
    test_clean_up = world_end;
    world.now = MS(1000);
    CHECK(hw_scheduler_init(&world.scheduler, &policy));
}

static inline unsigned
world_number(const struct hw_thread *thread)
{
    return (unsigned)(thread - world.threads);
}

static inline struct hw_thread *
world_thread(enum hw_state state, bool fresh)
{
    CHECK(world.used < WORLD_THREADS);
    struct hw_thread *thread = &world.threads[world.used++];
    CHECK(hw_account_init(&thread->account, 1));
    thread->fresh = fresh;
    hw_scheduler_add(&world.scheduler, thread, state, world.now);
    world.unaccounted_ns[world_number(thread)] = world.now;
    return thread;
}

/* -- the slow recount --------------------------------------------------------------------------------------------------- */

static inline void
world_check_thread(const struct hw_thread *thread, unsigned counts[HW_COUNTS], uint64_t time_ns[HW_STATE_COUNT])
{
    const struct hw_scheduler *s = &world.scheduler;
    bool ready = thread->state == HW_READY, running = thread->state == HW_RUNNING;
    counts[HW_IS_READY] += ready;
    counts[HW_IS_INTERACTIVE_READY] += ready && !thread->batch && !thread->unborn;
    counts[HW_IS_NEWBORN_READY] += ready && !thread->batch && thread->unborn;
    counts[HW_IS_INTERACTIVE_ACTIVE] += (ready || running) && !thread->batch;

    bool belongs_at_gate = s->policy.kind == HW_FAIR && thread->batch && ready && s->admitted != thread;
    bool runs_before_its_turn = s->policy.kind == HW_FAIR && thread->batch && running && s->admitted != thread;
    CHECK(thread->at_gate == belongs_at_gate || runs_before_its_turn, "thread %u", world_number(thread));
    if (belongs_at_gate) CHECK(s->admitted != NULL, "nobody would open the gate");

    uint64_t sum_ns = 0;
    for (int state = 0; state < HW_STATE_COUNT; state++) {
        sum_ns += thread->account.time_ns[state];
        time_ns[state] += thread->account.time_ns[state];
    }
    CHECK_EQUAL(thread->since_ns - world.unaccounted_ns[world_number(thread)], sum_ns);
    uint64_t waited_ns = ready ? world.now - thread->waits.since_ns : 0;
    for (unsigned slot = 0; slot < HW_SLOTS; slot++) waited_ns += thread->waits.waited_ns[slot];
    CHECK(thread->waits.waiting == ready);
    if (!world.waits_may_differ) {
        uint64_t open_ns = ready ? world.now - thread->since_ns : 0;
        CHECK_EQUAL(thread->account.time_ns[HW_READY] + open_ns, waited_ns);
    }
    CHECK(thread->account.voluntary < UINT64_MAX / 2 && thread->account.preempted < UINT64_MAX / 2);
}

static inline unsigned
world_check_queue(const struct hw_gate_queue *queue, unsigned tier)
{
    unsigned length = 0;
    const struct hw_thread *before = NULL;
    for (const struct hw_thread *thread = queue->head; thread; thread = thread->gate_next) {
        CHECK(thread->at_gate && thread->link && thread->gate_prev == before && thread->gate_tier == tier);
        before = thread;
        CHECK(++length <= world.used);
    }
    CHECK(queue->tail == before);
    return length;
}

static inline void
world_check_gate(void)
{
    const struct hw_gate *gate = &world.scheduler.gate;
    unsigned length = 0, lowest = HW_TIERS;
    for (unsigned tier = HW_TIERS; tier-- > 0;) {
        unsigned waiting = world_check_queue(&gate->queues[tier], tier);
        if (waiting) lowest = tier;
        length += waiting;
    }
    CHECK_EQUAL(length, gate->length);
    CHECK_EQUAL(lowest, hw_gate_tier(gate));
}

static inline void
world_check(void)
{
    const struct hw_scheduler *s = &world.scheduler;
    unsigned living = 0, running_threads = 0, batch_ready = 0, counts[HW_COUNTS] = { 0 };
    uint64_t time_ns[HW_STATE_COUNT];
    memcpy(time_ns, world.gone_ns, sizeof(time_ns));

    for (struct hw_thread *const *link = &s->threads; *link; link = &(*link)->next) {
        CHECK((*link)->link == link);
        world_check_thread(*link, counts, time_ns);
        running_threads += (*link)->state == HW_RUNNING;
        batch_ready += (*link)->state == HW_READY && (*link)->batch;
        living++;
    }
    CHECK(running_threads == (s->holder != NULL));
    CHECK_EQUAL(counts[HW_IS_READY], s->attribution.waiting);
    CHECK_EQUAL(s->holder ? s->holder->waits.slot : HW_SLOT_NOBODY, s->attribution.holder);
    CHECK_EQUAL(living, s->living);
    for (int count = 0; count < HW_COUNTS; count++) CHECK_EQUAL(counts[count], s->counts[count]);
    CHECK_EQUAL(batch_ready, hw_scheduler_batch_ready(s));
    for (int state = 0; state < HW_STATE_COUNT; state++) CHECK_EQUAL(time_ns[state], s->account.time_ns[state]);
    world_check_gate();
    if (s->admitted) {
        CHECK(s->policy.kind == HW_FAIR);
        CHECK(s->admitted->link && s->admitted->batch && s->admitted->state != HW_SUSPENDED);
    }
    if (s->holder) CHECK(s->holder->link && s->holder->state == HW_RUNNING);
    uint64_t running_ns = s->account.time_ns[HW_RUNNING] + (s->holder ? hw_elapsed_ns(s->holder->since_ns, world.now) : 0);
    CHECK(hw_scheduler_batch_ns(s, world.now) <= running_ns);
}

/* What every event's orders promise. */
static inline void
world_check_orders(void)
{
    const struct hw_scheduler *s = &world.scheduler;
    const struct hw_orders *orders = &world.orders;
    CHECK(orders->tick_ns > world.now, "the ticker would spin");
    if (orders->preempt) {
        CHECK(orders->preempt == s->holder && s->policy.kind != HW_OBSERVE && s->counts[HW_IS_READY] > 0);
        CHECK(orders->tick_ns <= world.now + s->policy.retry_ns);
    }
    if (orders->wake) CHECK(orders->wake == s->admitted && orders->wake->parked && orders->wake->open);
    if (s->holder == NULL && s->counts[HW_IS_READY] > 1 && s->policy.kind != HW_OBSERVE) CHECK(orders->tick_ns != HW_NEVER);

    struct hw_thread *admitted = s->admitted;
    bool starves = admitted && world.now >= hw_scheduler_starves_at_ns(s, admitted); /* then it wakes by itself */
    if (admitted && admitted->parked && !starves && hw_scheduler_gate_open(s, admitted, world.now)) {
        CHECK(atomic_load(&admitted->open), "thread %u is parked before an open gate", world_number(admitted));
    }
}

/* -- events ------------------------------------------------------------------------------------------------------------- */

static inline void
ready(struct hw_thread *thread)
{
    hw_scheduler_ready(&world.scheduler, thread, world.now, &world.orders);
}

static inline void
resumed(struct hw_thread *thread)
{
    hw_scheduler_resumed(&world.scheduler, thread, world.now, &world.orders);
}

static inline void
suspended(struct hw_thread *thread)
{
    hw_scheduler_suspended(&world.scheduler, thread, world.now, &world.orders);
}

static inline void
tick(void)
{
    hw_scheduler_tick(&world.scheduler, world.now, &world.orders);
}

static inline void
removed(struct hw_thread *thread)
{
    hw_scheduler_remove(&world.scheduler, thread, world.now, &world.orders);
    for (int state = 0; state < HW_STATE_COUNT; state++) world.gone_ns[state] += thread->account.time_ns[state];
}

static inline bool
must_yield(struct hw_thread *thread)
{
    return hw_scheduler_must_yield(&world.scheduler, thread, world.now);
}

static inline void
advance(uint64_t ns)
{
    world.now += ns;
}

#endif
