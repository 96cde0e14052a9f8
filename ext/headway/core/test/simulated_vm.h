/* A VM in miniature, simulated: one GVL, a ready queue served first come first served, threads that compute and sleep, interrupt
 * checks every so often, the VM's own time slice, and the job of yield.c. It drives the real scheduler and measures what the
 * policy promises. */
#ifndef HW_TEST_SIMULATED_VM_H
#define HW_TEST_SIMULATED_VM_H

#include "world.h"

#include <math.h>

#define SWITCH_NS US(5)      /* from one holder to the next */
#define CHECKS_NS US(20)     /* between two interrupt checks at most */
#define WAKE_NS US(30)       /* until a native thread that was woken runs */
#define VM_SLICE_NS MS(100)
#define MOST 40

/* The GVL is free for so long at the most while somebody wants it. */
#define IDLE_NS (SWITCH_NS + 2 * WAKE_NS + 2 * hw_policy_default.linger_ns)

enum where { SLEEPS, QUEUES, RUNS, PARKS, ENDED };

struct actor {
    struct hw_thread *thread;
    enum where where;
    void (*begins)(struct actor *); /* it wakes: says in left_ns what it is about to compute */
    void (*ends)(struct actor *);   /* it has, and sleeps: says until when in at_ns */
    uint64_t cpu_ns, sleep_ns;  /* computes and sleeps by turns; sleep_ns 0: computes for ever */
    double spread;              /* 0: always so long; 1: exponentially distributed */
    uint64_t left_ns;           /* of its computation */
    uint64_t at_ns;             /* when it wakes, of its own accord or because it was woken */
    uint64_t job_ns;            /* when it runs the job; HW_NEVER */
    bool in_job;
    uint64_t ran_ns;
    uint64_t woke_ns;           /* when its piece of work began */
    struct hw_histogram *times; /* from then until it was done; NULL: nobody asks */
};

static struct vm {
    struct actor actors[MOST];
    unsigned count;
    struct actor *holder, *queue[MOST];
    unsigned queued;
    uint64_t running_since_ns, free_at_ns, tick_ns;
    uint64_t idle_ns, longest_idle_ns; /* the GVL was free although somebody wanted it */
    uint64_t forced, wakes;
    uint64_t outside_ns;        /* when something comes from outside; HW_NEVER */
    void (*outside)(void);
} vm;

static inline struct actor *
actor_of(struct hw_thread *thread)
{
    for (unsigned i = 0; i < vm.count; i++) {
        if (vm.actors[i].thread == thread) return &vm.actors[i];
    }
    CHECK(false, "a thread without an actor");
    return NULL;
}

static inline uint64_t
varied(uint64_t length_ns, double spread)
{
    if (spread == 0) return length_ns;
    double uniform = ((double)test_random(1000000) + 0.5) / 1e6;
    return (uint64_t)((double)length_ns * -log(uniform)) + 1;
}

static inline void
begins_to_compute(struct actor *actor)
{
    actor->woke_ns = world.now;
    actor->left_ns = actor->sleep_ns ? varied(actor->cpu_ns, actor->spread) : HW_NEVER / 2;
}

static inline void
falls_asleep(struct actor *actor)
{
    if (actor->times) hw_histogram_record(actor->times, world.now - actor->woke_ns);
    actor->at_ns = world.now + varied(actor->sleep_ns, actor->spread);
}

static inline struct actor *
enter_vm(uint64_t cpu_ns, uint64_t sleep_ns, double spread)
{
    CHECK(vm.count < MOST);
    struct actor *actor = &vm.actors[vm.count++];
    *actor = (struct actor){ .thread = world_thread(HW_SUSPENDED, false), .where = SLEEPS, .begins = begins_to_compute,
                             .ends = falls_asleep, .cpu_ns = cpu_ns, .sleep_ns = sleep_ns, .spread = spread, .job_ns = HW_NEVER };
    actor->at_ns = world.now + 1 + test_random(sleep_ns ? sleep_ns : MS(1));
    return actor;
}

static inline void
start_vm(enum hw_policy_kind kind)
{
    memset(&vm, 0, sizeof(vm));
    vm.tick_ns = vm.outside_ns = HW_NEVER;
    world_start(kind);
}

/* -- what the runtime would do ------------------------------------------------------------------------------------------ */

static inline void
carry_out(void)
{
    world_check();
    world_check_orders();
    if (world.orders.preempt) {
        struct actor *actor = actor_of(world.orders.preempt);
        CHECK(actor == vm.holder, "the signal must hit whoever has the GVL");
        if (actor->job_ns == HW_NEVER) actor->job_ns = world.now + 1 + test_random(CHECKS_NS);
    }
    if (world.orders.wake) {
        struct actor *actor = actor_of(world.orders.wake);
        CHECK(actor->where == PARKS);
        if (actor->at_ns > world.now + WAKE_NS) actor->at_ns = world.now + WAKE_NS;
        vm.wakes++;
    }
    if (world.orders.tick_ns < vm.tick_ns) vm.tick_ns = world.orders.tick_ns;
}

/* -- the GVL ------------------------------------------------------------------------------------------------------------ */

static inline void
enqueue(struct actor *actor)
{
    actor->where = QUEUES;
    vm.queue[vm.queued++] = actor;
    ready(actor->thread);
    carry_out();
}

static inline void
leave(struct actor *actor)
{
    uint64_t ran_ns = world.now - vm.running_since_ns;
    actor->ran_ns += ran_ns;
    actor->left_ns = ran_ns < actor->left_ns ? actor->left_ns - ran_ns : 1;
    actor->job_ns = HW_NEVER;
    vm.holder = NULL;
    vm.free_at_ns = world.now + SWITCH_NS;
    suspended(actor->thread);
    carry_out();
}

/* Shut: it waits to be woken, or spins while the gate lingers. */
static inline void
wait_at_gate(struct actor *actor)
{
    atomic_store(&actor->thread->open, false);
    actor->at_ns = hw_scheduler_lingers_until_ns(&world.scheduler, actor->thread);
}

static inline void
park(struct actor *actor)
{
    actor->in_job = true;
    actor->thread->yielding = true;
    leave(actor);
    vm.forced++;
    actor->thread->parked = true;
    atomic_store(&actor->thread->open, false);
    if (hw_scheduler_gate_open(&world.scheduler, actor->thread, world.now)) {
        actor->thread->parked = false;
        enqueue(actor);
        return;
    }
    actor->where = PARKS;
    wait_at_gate(actor);
}

static inline void
run_job(struct actor *actor)
{
    actor->job_ns = HW_NEVER;
    if (must_yield(actor->thread)) park(actor);
}

static inline void
take_gvl(void)
{
    struct actor *actor = vm.queue[0];
    memmove(vm.queue, vm.queue + 1, --vm.queued * sizeof(*vm.queue));
    vm.holder = actor;
    vm.running_since_ns = world.now;
    actor->where = RUNS;
    resumed(actor->thread);
    carry_out();
    actor->thread->yielding = false;
    if (actor->in_job) {
        /* As on_clean_entry's loop: look again. */
        actor->in_job = false;
        if (must_yield(actor->thread)) actor->job_ns = world.now + US(1);
    }
}

static inline void
vm_slice(struct actor *actor)
{
    leave(actor);
    enqueue(actor);
}

static inline void
finish_burst(struct actor *actor)
{
    actor->left_ns = 0;
    leave(actor);
    actor->where = SLEEPS;
    actor->ends(actor);
}

static inline void
wake(struct actor *actor)
{
    if (actor->where == PARKS) {
        if (!hw_scheduler_gate_open(&world.scheduler, actor->thread, world.now)) {
            wait_at_gate(actor);
            return;
        }
        actor->thread->parked = false;
    }
    else {
        actor->begins(actor);
    }
    actor->at_ns = HW_NEVER;
    enqueue(actor);
}

/* -- time --------------------------------------------------------------------------------------------------------------- */

static inline uint64_t
wakes_at(const struct actor *actor)
{
    if (actor->where == SLEEPS) return actor->at_ns;
    if (actor->where != PARKS) return HW_NEVER;
    uint64_t at_ns = hw_scheduler_starves_at_ns(&world.scheduler, actor->thread);
    hw_bring_forward(&at_ns, actor->at_ns);
    return at_ns;
}

static inline uint64_t
next_ns(void)
{
    uint64_t at_ns = hw_earlier_ns(vm.tick_ns, vm.outside_ns);
    for (unsigned i = 0; i < vm.count; i++) hw_bring_forward(&at_ns, wakes_at(&vm.actors[i]));
    if (vm.holder) {
        hw_bring_forward(&at_ns, vm.running_since_ns + vm.holder->left_ns);
        hw_bring_forward(&at_ns, vm.holder->job_ns);
        if (vm.queued) hw_bring_forward(&at_ns, vm.running_since_ns + VM_SLICE_NS);
    }
    else if (vm.queued) {
        hw_bring_forward(&at_ns, vm.free_at_ns);
    }
    return at_ns > world.now ? at_ns : world.now;
}

static inline bool
somebody_wants_the_gvl(void)
{
    for (unsigned i = 0; i < vm.count; i++) {
        if (vm.actors[i].where == QUEUES || vm.actors[i].where == PARKS) return true;
    }
    return false;
}

static inline void
pass_time_until(uint64_t at_ns)
{
    if (vm.holder == NULL && somebody_wants_the_gvl()) {
        vm.idle_ns += at_ns - world.now;
        if (vm.idle_ns > vm.longest_idle_ns) vm.longest_idle_ns = vm.idle_ns;
    }
    else {
        vm.idle_ns = 0;
    }
    world.now = at_ns;
}

static inline void
happen(void)
{
    if (world.now >= vm.tick_ns) {
        vm.tick_ns = HW_NEVER;
        tick();
        carry_out();
        return;
    }
    for (unsigned i = 0; i < vm.count; i++) {
        struct actor *actor = &vm.actors[i];
        if (world.now < wakes_at(actor)) continue;
        wake(actor);
        return;
    }
    if (world.now >= vm.outside_ns) {
        vm.outside();
        return;
    }
    struct actor *holder = vm.holder;
    if (holder == NULL) {
        if (vm.queued && world.now >= vm.free_at_ns) take_gvl();
    }
    else if (world.now >= vm.running_since_ns + holder->left_ns) finish_burst(holder);
    else if (world.now >= holder->job_ns) run_job(holder);
    else if (vm.queued && world.now >= vm.running_since_ns + VM_SLICE_NS) vm_slice(holder);
}

static inline void
simulate(uint64_t length_ns)
{
    uint64_t end_ns = world.now + length_ns, stuck = 0;
    while (world.now < end_ns) {
        uint64_t at_ns = next_ns();
        stuck = at_ns == world.now ? stuck + 1 : 0;
        CHECK(stuck < 1000, "time stands still");
        pass_time_until(at_ns < end_ns ? at_ns : end_ns);
        if (world.now < end_ns) happen();
    }
}

/* Threads that all compute and sleep for exponentially distributed times; what their pieces of work take goes into `times`, which is to
 * be freed. */
static inline void
simulate_pool(enum hw_policy_kind kind, unsigned threads, uint64_t cpu_ns, uint64_t sleep_ns, uint64_t length_ns, struct hw_histogram *times)
{
    CHECK(hw_histogram_init(times, 3));
    start_vm(kind);
    for (unsigned i = 0; i < threads; i++) enter_vm(cpu_ns, sleep_ns, 1)->times = times;
    simulate(length_ns);
    world_end();
}

#endif
