/* A VM in miniature, simulated: one GVL, a ready queue served first come first served, threads that compute and sleep, interrupt
 * checks every so often, the VM's own time slice, and the job of yield.c. It drives the real scheduler and measures what the
 * policy promises. */
#include "world.h"

#include <math.h>

#define SWITCH_NS US(5)      /* from one holder to the next */
#define CHECKS_NS US(20)     /* between two interrupt checks at most */
#define WAKE_NS US(30)       /* until a native thread that was woken runs */
#define FIRST_PARK_NS MS(5)  /* as in yield.c */
#define VM_SLICE_NS MS(100)
#define MOST 40

/* The GVL is free for so long at the most while somebody wants it. */
#define IDLE_NS (SWITCH_NS + 2 * WAKE_NS + 2 * hw_policy_default.linger_ns)

enum where { SLEEPS, QUEUES, RUNS, PARKS, ENDED };

struct actor {
    struct hw_thread *thread;
    enum where where;
    uint64_t cpu_ns, sleep_ns;  /* computes and sleeps by turns; sleep_ns 0: computes for ever */
    double spread;              /* 0: always so long; 1: exponentially distributed */
    uint64_t left_ns;           /* of its computation */
    uint64_t at_ns;             /* when it wakes, of its own accord or because it was woken */
    uint64_t bound_ns;          /* of its park */
    uint64_t job_ns;            /* when it runs the job; HW_NEVER */
    bool in_job;
    uint64_t clean_resume;
    uint64_t ran_ns;
};

static struct vm {
    struct actor actors[MOST];
    unsigned count;
    struct actor *holder, *queue[MOST];
    unsigned queued;
    uint64_t running_since_ns, free_at_ns, tick_ns;
    uint64_t idle_ns, longest_idle_ns; /* the GVL was free although somebody wanted it */
    uint64_t forced, wakes;
} vm;

static struct actor *
actor_of(struct hw_thread *thread)
{
    for (unsigned i = 0; i < vm.count; i++) {
        if (vm.actors[i].thread == thread) return &vm.actors[i];
    }
    CHECK(false, "a thread without an actor");
    return NULL;
}

static uint64_t
varied(uint64_t length_ns, double spread)
{
    if (spread == 0) return length_ns;
    double uniform = ((double)test_random(1000000) + 0.5) / 1e6;
    return (uint64_t)((double)length_ns * -log(uniform)) + 1;
}

static struct actor *
enter_vm(uint64_t cpu_ns, uint64_t sleep_ns, double spread)
{
    CHECK(vm.count < MOST);
    struct actor *actor = &vm.actors[vm.count++];
    *actor = (struct actor){ .thread = world_thread(HW_SUSPENDED, false), .where = SLEEPS, .cpu_ns = cpu_ns, .sleep_ns = sleep_ns,
                             .spread = spread, .job_ns = HW_NEVER };
    actor->at_ns = world.now + 1 + test_random(sleep_ns ? sleep_ns : MS(1));
    return actor;
}

static void
start_vm(enum hw_policy_kind kind)
{
    memset(&vm, 0, sizeof(vm));
    vm.tick_ns = HW_NEVER;
    world_start(kind);
}

/* -- what the runtime would do ------------------------------------------------------------------------------------------ */

static void
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

static void
enqueue(struct actor *actor)
{
    actor->where = QUEUES;
    vm.queue[vm.queued++] = actor;
    ready(actor->thread);
    carry_out();
}

static void
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
static void
wait_at_gate(struct actor *actor)
{
    atomic_store(&actor->thread->open, false);
    actor->at_ns = hw_scheduler_lingers_until_ns(&world.scheduler, actor->thread);
}

static void
park(struct actor *actor)
{
    bool clean = actor->clean_resume == actor->thread->resumes;
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
    actor->bound_ns = clean ? HW_NEVER : world.now + FIRST_PARK_NS;
    wait_at_gate(actor);
}

static void
run_job(struct actor *actor)
{
    actor->job_ns = HW_NEVER;
    if (must_yield(actor->thread)) park(actor);
}

static void
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
        /* As on_job's loop: look again; the second time round the entry is a clean one. */
        actor->in_job = false;
        if (must_yield(actor->thread)) {
            actor->clean_resume = actor->thread->resumes;
            actor->job_ns = world.now + US(1);
        }
    }
}

static void
vm_slice(struct actor *actor)
{
    leave(actor);
    enqueue(actor);
}

static void
finish_burst(struct actor *actor)
{
    actor->left_ns = 0;
    leave(actor);
    actor->where = SLEEPS;
    actor->at_ns = world.now + varied(actor->sleep_ns, actor->spread);
}

static void
wake(struct actor *actor)
{
    if (actor->where == PARKS) {
        bool bounded = world.now >= actor->bound_ns;
        if (!bounded && !hw_scheduler_gate_open(&world.scheduler, actor->thread, world.now)) {
            wait_at_gate(actor);
            return;
        }
        actor->thread->parked = false;
    }
    else {
        actor->left_ns = actor->sleep_ns ? varied(actor->cpu_ns, actor->spread) : HW_NEVER / 2;
    }
    actor->at_ns = HW_NEVER;
    enqueue(actor);
}

/* -- time --------------------------------------------------------------------------------------------------------------- */

static void
earlier(uint64_t *at_ns, uint64_t other_ns)
{
    if (other_ns < *at_ns) *at_ns = other_ns;
}

static uint64_t
wakes_at(const struct actor *actor)
{
    if (actor->where == SLEEPS) return actor->at_ns;
    if (actor->where != PARKS) return HW_NEVER;
    uint64_t at_ns = hw_scheduler_starves_at_ns(&world.scheduler, actor->thread);
    earlier(&at_ns, actor->at_ns);
    earlier(&at_ns, actor->bound_ns);
    return at_ns;
}

static uint64_t
next_ns(void)
{
    uint64_t at_ns = vm.tick_ns;
    for (unsigned i = 0; i < vm.count; i++) earlier(&at_ns, wakes_at(&vm.actors[i]));
    if (vm.holder) {
        earlier(&at_ns, vm.running_since_ns + vm.holder->left_ns);
        earlier(&at_ns, vm.holder->job_ns);
        if (vm.queued) earlier(&at_ns, vm.running_since_ns + VM_SLICE_NS);
    }
    else if (vm.queued) {
        earlier(&at_ns, vm.free_at_ns);
    }
    return at_ns > world.now ? at_ns : world.now;
}

static bool
somebody_wants_the_gvl(void)
{
    for (unsigned i = 0; i < vm.count; i++) {
        if (vm.actors[i].where == QUEUES || vm.actors[i].where == PARKS) return true;
    }
    return false;
}

static void
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

static void
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
    struct actor *holder = vm.holder;
    if (holder == NULL) {
        if (vm.queued && world.now >= vm.free_at_ns) take_gvl();
    }
    else if (world.now >= vm.running_since_ns + holder->left_ns) finish_burst(holder);
    else if (world.now >= holder->job_ns) run_job(holder);
    else if (vm.queued && world.now >= vm.running_since_ns + VM_SLICE_NS) vm_slice(holder);
}

static void
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

/* -- figures ------------------------------------------------------------------------------------------------------------ */

static double
wait_p99_ms(const struct actor *actor)
{
    return (double)hw_histogram_percentile(&actor->thread->account.wait, 99) / 1e6;
}

/* 1: all had the same; 1 / n: one had it all. */
static double
jain(struct actor *const *actors, unsigned count)
{
    double sum = 0, squares = 0;
    for (unsigned i = 0; i < count; i++) {
        double ran = (double)actors[i]->ran_ns;
        sum += ran;
        squares += ran * ran;
    }
    return sum * sum / ((double)count * squares);
}

static double
share_of(const struct actor *actor, uint64_t length_ns)
{
    return (double)actor->ran_ns / (double)length_ns;
}

/* -- promises ----------------------------------------------------------------------------------------------------------- */

static void
io_beside(unsigned hogs, double spread)
{
    enum { IO = 4 };
    const uint64_t warm_up_ns = MS(1000), length_ns = MS(200) * hogs * 5;
    struct actor *cpu[16], *io[IO];
    start_vm(HW_FAIR);
    for (unsigned i = 0; i < hogs; i++) cpu[i] = enter_vm(HW_NEVER, 0, 0);
    for (unsigned i = 0; i < IO; i++) io[i] = enter_vm(US(50), MS(5), spread);
    simulate(warm_up_ns);
    for (unsigned i = 0; i < vm.count; i++) {
        hw_histogram_reset(&vm.actors[i].thread->account.wait);
        vm.actors[i].ran_ns = 0;
    }
    vm.longest_idle_ns = 0;
    simulate(length_ns);

    for (unsigned i = 0; i < IO; i++) {
        CHECK(io[i]->thread->account.wait.count > length_ns / MS(5) / 2);
        CHECK(wait_p99_ms(io[i]) <= 1.0, "%u hogs: %.3f ms", hogs, wait_p99_ms(io[i]));
    }
    CHECK(jain(cpu, hogs) >= 0.95, "%u hogs: %.3f", hogs, jain(cpu, hogs));
    double share = 0;
    for (unsigned i = 0; i < hogs; i++) share += share_of(cpu[i], length_ns);
    CHECK(share >= 0.90, "%u hogs: %.3f", hogs, share);
    CHECK(vm.longest_idle_ns <= IDLE_NS, "%" PRIu64 " ns", vm.longest_idle_ns);
    world_end();
}

TEST(io_threads_hardly_wait_and_cpu_threads_share)
{
    static const unsigned hogs[] = { 1, 4, 16 };
    for (int i = 0; i < 3; i++) {
        io_beside(hogs[i], 0);
        io_beside(hogs[i], 1);
    }
}

TEST(cpu_threads_alone_share_by_the_quantum)
{
    struct actor *cpu[6];
    start_vm(HW_FAIR);
    for (int i = 0; i < 6; i++) cpu[i] = enter_vm(HW_NEVER, 0, 0);
    simulate(MS(6000));
    CHECK(jain(cpu, 6) >= 0.95, "%.3f", jain(cpu, 6));
    CHECK(vm.forced < 6 * 30, "%" PRIu64 " forced switches in 6 s", vm.forced);
    CHECK(vm.longest_idle_ns <= IDLE_NS);
    world_end();
}

TEST(under_quantum_all_have_slices_of_that_length)
{
    struct actor *cpu[4];
    struct hw_policy policy = hw_policy_default;
    policy.kind = HW_QUANTUM;
    policy.quantum_ns = MS(2);
    start_vm(HW_QUANTUM);
    hw_scheduler_set_policy(&world.scheduler, &policy, world.now);
    for (int i = 0; i < 4; i++) cpu[i] = enter_vm(HW_NEVER, 0, 0);
    simulate(MS(2000));
    CHECK(jain(cpu, 4) >= 0.95);
    for (int i = 0; i < 4; i++) {
        double hold_ms = (double)hw_histogram_percentile(&cpu[i]->thread->account.hold, 50) / 1e6;
        CHECK(hold_ms > 1.8 && hold_ms < 2.2, "%.3f ms", hold_ms);
    }
    CHECK(vm.longest_idle_ns <= SWITCH_NS);
    world_end();
}

/* Interactive threads alone would keep the GVL busy; the batch ones still get protection_ns every starvation_ns or so, and by
 * turns, whatever the quantum. */
static void
saturated(uint64_t quantum_ns, uint64_t interactive_ns, double least_share)
{
    enum { HOGS = 4 };
    struct actor *cpu[HOGS];
    struct hw_policy policy = hw_policy_default;
    policy.quantum_ns = quantum_ns;
    start_vm(HW_FAIR);
    hw_scheduler_set_policy(&world.scheduler, &policy, world.now);
    for (int i = 0; i < HOGS; i++) cpu[i] = enter_vm(HW_NEVER, 0, 0);
    for (int i = 0; i < 20; i++) enter_vm(interactive_ns, 10 * interactive_ns, 0.5);
    simulate(MS(10000));
    double share = 0;
    for (int i = 0; i < HOGS; i++) share += share_of(cpu[i], MS(10000));
    CHECK(share >= least_share && share <= 0.3, "%.3f", share);
    CHECK(jain(cpu, HOGS) >= 0.9, "quantum %" PRIu64 " us: %.3f, %.3f %.3f %.3f %.3f", quantum_ns / 1000, jain(cpu, HOGS),
          (double)cpu[0]->ran_ns / 1e9, (double)cpu[1]->ran_ns / 1e9, (double)cpu[2]->ran_ns / 1e9, (double)cpu[3]->ran_ns / 1e9);
    CHECK(vm.longest_idle_ns <= IDLE_NS, "%" PRIu64 " ns", vm.longest_idle_ns);
    world_end();
}

TEST(saturated_by_interactive_threads_batch_ones_have_their_protected_share)
{
    static const uint64_t quanta_ns[] = { MS(100), MS(50), MS(10), MS(2), MS(1) };
    for (int i = 0; i < 5; i++) {
        saturated(quanta_ns[i], MS(1), 0.015); /* some of their bursts make them batch for a moment, and they have turns, too */
        saturated(quanta_ns[i], US(50), 0.035);
    }
}

/* Whoever is admitted blocks or naps at once: the others must not lose the GVL's time. */
TEST(the_gvl_is_never_idle_while_somebody_is_ready)
{
    for (unsigned round = 0; round < test_effort(20); round++) {
        start_vm(HW_FAIR);
        unsigned threads = 2 + (unsigned)test_random(12);
        for (unsigned i = 0; i < threads; i++) {
            uint64_t cpu_ns = US(10) << test_random(14), sleep_ns = test_random(4) ? US(10) << test_random(12) : 0;
            enter_vm(cpu_ns, sleep_ns, (double)test_random(2));
        }
        simulate(MS(1500));
        CHECK(vm.longest_idle_ns <= IDLE_NS, "round %u: %" PRIu64 " ns", round, vm.longest_idle_ns);
        world_end();
    }
}

/* A heavy request every now and then on each of ten threads: light ones keep going. */
TEST(light_work_is_not_held_up_by_heavy_work)
{
    start_vm(HW_FAIR);
    struct actor *light[8];
    for (int i = 0; i < 8; i++) light[i] = enter_vm(MS(1), MS(20), 1);
    for (int i = 0; i < 2; i++) enter_vm(MS(150), MS(300), 1);
    simulate(MS(20000));
    for (int i = 0; i < 8; i++) CHECK(wait_p99_ms(light[i]) < 60, "%.3f ms", wait_p99_ms(light[i]));
    world_end();
}

TEST(without_competition_nothing_is_forced)
{
    start_vm(HW_FAIR);
    enter_vm(HW_NEVER, 0, 0);
    simulate(MS(5000));
    CHECK_EQUAL(0, vm.forced);
    CHECK_EQUAL(0, world.scheduler.preemptions);
    world_end();
}

TESTS({ "io", io_threads_hardly_wait_and_cpu_threads_share }, { "cpu", cpu_threads_alone_share_by_the_quantum },
      { "quantum", under_quantum_all_have_slices_of_that_length },
      { "saturated", saturated_by_interactive_threads_batch_ones_have_their_protected_share },
      { "idle", the_gvl_is_never_idle_while_somebody_is_ready }, { "light", light_work_is_not_held_up_by_heavy_work },
      { "alone", without_competition_nothing_is_forced })
