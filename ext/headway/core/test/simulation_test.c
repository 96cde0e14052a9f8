/* What the scheduler promises, kept in the simulated VM. */
#include "simulated_vm.h"

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
io_beside(unsigned hogs, uint64_t cpu_ns, uint64_t nap_ns, double spread)
{
    enum { IO = 4 };
    const uint64_t warm_up_ns = MS(1000), length_ns = MS(200) * hogs * 5;
    struct actor *cpu[16], *io[IO];
    start_vm(HW_FAIR);
    for (unsigned i = 0; i < hogs; i++) cpu[i] = enter_vm(cpu_ns, nap_ns, 0);
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
    for (int i = 0; i < (test_in_brief() ? 1 : 3); i++) {
        io_beside(hogs[i], HW_NEVER, 0, 0);
        io_beside(hogs[i], HW_NEVER, 0, 1);
        io_beside(hogs[i], MS(21), US(20), 0); /* writes to a log in between */
        io_beside(hogs[i], MS(3), US(20), 0);
        io_beside(hogs[i], MS(2), US(20), 0);
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
    uint64_t time_ns = MS(10000) + 400 * quantum_ns; /* each has many turns */
    simulate(time_ns);
    double share = 0;
    for (int i = 0; i < HOGS; i++) share += share_of(cpu[i], time_ns);
    CHECK(share >= least_share && share <= 0.3, "%.3f", share);
    CHECK(jain(cpu, HOGS) >= 0.9, "quantum %" PRIu64 " us: %.3f, %.3f %.3f %.3f %.3f", quantum_ns / 1000, jain(cpu, HOGS),
          (double)cpu[0]->ran_ns / 1e9, (double)cpu[1]->ran_ns / 1e9, (double)cpu[2]->ran_ns / 1e9, (double)cpu[3]->ran_ns / 1e9);
    CHECK(vm.longest_idle_ns <= IDLE_NS, "%" PRIu64 " ns", vm.longest_idle_ns);
    world_end();
}

TEST(saturated_by_interactive_threads_batch_ones_have_their_protected_share)
{
    static const uint64_t quanta_ns[] = { MS(100), MS(50), MS(10), MS(2), MS(1) };
    for (int i = test_in_brief() ? 4 : 0; i < 5; i++) {
        saturated(quanta_ns[i], MS(1), 0.015); /* some of their bursts make them batch for a moment, and they have turns, too */
        if (!test_in_brief()) saturated(quanta_ns[i], US(50), 0.035);
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

/* Batch and interactive by turns, as a server's threads are when there is more to do than they can: nobody pays for being the first whose
 * burst is long. */
static void
busy_pool(uint64_t cpu_ns, uint64_t nap_ns)
{
    enum { THREADS = 6 };
    struct actor *pool[THREADS];
    start_vm(HW_FAIR);
    for (int i = 0; i < THREADS; i++) pool[i] = enter_vm(cpu_ns, nap_ns, 1);
    simulate(MS(5000));
    uint64_t holds = 0;
    for (int i = 0; i < THREADS; i++) {
        struct hw_histogram *wait = &pool[i]->thread->account.wait;
        holds += wait->count;
        CHECK(hw_histogram_percentile(wait, 99.9) < MS(5), "%d: %" PRIu64 " ns", i, hw_histogram_percentile(wait, 99.9));
    }
    CHECK(jain(pool, THREADS) >= 0.99, "%.3f", jain(pool, THREADS));
    CHECK(vm.forced < holds / 50, "%" PRIu64 " of %" PRIu64, vm.forced, holds);
    world_end();
}

TEST(threads_of_a_busy_pool_are_served_in_turn)
{
    static const uint64_t naps_ns[] = { US(5), US(40), US(300) };
    for (int i = 0; i < (test_in_brief() ? 1 : 3); i++) {
        busy_pool(US(40), naps_ns[i]);
        busy_pool(US(80), naps_ns[i]);
    }
}

/* A pool's pieces of work under fair, and in the VM's queue as it is. */
struct pool_figures {
    double fair_p99_ns, fifo_p99_ns;
    double done;   /* as a part of those done in the VM's queue */
    double forced; /* switches for each */
};

static struct pool_figures
pool_of_six(uint64_t cpu_ns, uint64_t nap_ns)
{
    struct hw_histogram fifo, fair;
    simulate_pool(HW_OBSERVE, 6, cpu_ns, nap_ns, MS(20000), &fifo);
    simulate_pool(HW_FAIR, 6, cpu_ns, nap_ns, MS(20000), &fair);
    struct pool_figures figures = {
        .fair_p99_ns = (double)hw_histogram_percentile(&fair, 99),
        .fifo_p99_ns = (double)hw_histogram_percentile(&fifo, 99),
        .done = (double)fair.count / (double)fifo.count,
        .forced = (double)vm.forced / (double)fair.count,
    };
    hw_histogram_free(&fifo);
    hw_histogram_free(&fair);
    return figures;
}

/* Whom a pool's threads keep waiting are others like them: nothing is gained by cutting them short. */
TEST(the_pieces_of_a_busy_pool_take_as_long_as_first_come_first_served)
{
    static const uint64_t cpu_ns[] = { US(100), US(300), US(600) }, naps_ns[] = { US(5), US(300), MS(1) };
    for (int i = test_in_brief() ? 8 : 0; i < 9; i++) {
        struct pool_figures pool = pool_of_six(cpu_ns[i / 3], naps_ns[i % 3]);
        CHECK(pool.forced < 0.2, "%d: %.3f", i, pool.forced);
        CHECK(pool.done > 0.98, "%d: %.3f", i, pool.done);
        CHECK(pool.fair_p99_ns < 1.5 * pool.fifo_p99_ns, "%d: %.0f ns, %.0f", i, pool.fair_p99_ns, pool.fifo_p99_ns);
    }
}

/* Those go first that had least, and the GVL is never free: yet nobody waits until all others are done. */
TEST(the_longest_pieces_of_a_busy_pool_are_not_put_off_for_ever)
{
    struct pool_figures pool = pool_of_six(MS(3), US(40));
    CHECK(pool.fair_p99_ns < 7 * pool.fifo_p99_ns, "%.0f ns, %.0f", pool.fair_p99_ns, pool.fifo_p99_ns);
}

TEST(nor_is_who_computes_for_ever_beside_a_busy_pool)
{
    const uint64_t length_ns = MS(10000);
    start_vm(HW_FAIR);
    for (int i = 0; i < 6; i++) enter_vm(MS(2), US(20), 1);
    struct actor *hog = enter_vm(HW_NEVER, 0, 0);
    simulate(length_ns);
    CHECK(share_of(hog, length_ns) > 0.05, "%.3f", share_of(hog, length_ns));
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
      { "pool", threads_of_a_busy_pool_are_served_in_turn },
      { "pieces", the_pieces_of_a_busy_pool_take_as_long_as_first_come_first_served },
      { "longest", the_longest_pieces_of_a_busy_pool_are_not_put_off_for_ever },
      { "hog", nor_is_who_computes_for_ever_beside_a_busy_pool }, { "alone", without_competition_nothing_is_forced })
