/* The simulated time, cores, and the whole: see simulator.h. */
#include "simulator_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX

/* -- chance -------------------------------------------------------------------------------------------------------------- */

/* xorshift64*, by Sebastiano Vigna. */
static uint64_t
random_bits(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(2685821657736338717);
}

static uint64_t
random_state(uint64_t seed)
{
    uint64_t state = seed * UINT64_C(0x9e3779b97f4a7c15) | 1;
    for (int i = 0; i < 8; i++) random_bits(&state);
    return state;
}

uint32_t
sim_random(uint64_t *state, uint32_t bound)
{
    uint64_t bits = random_bits(state);
    return (uint32_t)(((bits >> 32) * bound + ((bits & UINT32_MAX) * bound >> 32)) >> 32); /* bits * bound >> 64 */
}

uint64_t
sim_exponential_ns(uint64_t *state, double rate_per_s)
{
    double uniform = ((double)(random_bits(state) >> 11) + 0.5) * 0x1p-53;
    double ns = -log(uniform) / rate_per_s * 1e9;
    return ns < 1e18 ? (uint64_t)ns : (uint64_t)1e18;
}

/* -- ends of delays and of computations ------------------------------------------------------------------------------------ */

static void
push(struct sim_timers *timers, uint64_t at, uint32_t thread)
{
    uint32_t i = timers->count++;
    while (i > 0 && timers->heap[(i - 1) / 2].at > at) {
        timers->heap[i] = timers->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    timers->heap[i] = (struct sim_timer){ at, thread };
}

static uint32_t
pop(struct sim_timers *timers)
{
    uint32_t thread = timers->heap[0].thread, i = 0;
    struct sim_timer last = timers->heap[--timers->count];
    for (;;) {
        uint32_t child = 2 * i + 1;
        if (child >= timers->count) break;
        if (child + 1 < timers->count && timers->heap[child + 1].at < timers->heap[child].at) child++;
        if (timers->heap[child].at >= last.at) break;
        timers->heap[i] = timers->heap[child];
        i = child;
    }
    timers->heap[i] = last;
    return thread;
}

void
sim_away(struct sim_thread *t, struct sim_timers *timers, uint64_t at)
{
    t->where = SIM_AWAY;
    push(timers, at, t->place);
}

/* -- cores --------------------------------------------------------------------------------------------------------------- */

void
sim_compute(struct sim *sim, int change)
{
    sim->computing += (uint32_t)change;
    double pace = sim->computing > sim->set->cores ? (double)sim->set->cores / sim->computing : 1;
    if (pace == sim->pace) return;
    sim->pace = pace;
    for (uint32_t i = 0; i < sim->set->processes; i++) sim_process_look_ahead(sim, &sim->processes[i]);
}

/* -- time ---------------------------------------------------------------------------------------------------------------- */

static struct sim_process *
next_process(struct sim *sim)
{
    struct sim_process *next = &sim->processes[0];
    for (uint32_t i = 1; i < sim->set->processes; i++) {
        if (sim->processes[i].next_ns < next->next_ns) next = &sim->processes[i];
    }
    return next;
}

static uint64_t
next_computation_ns(const struct sim *sim)
{
    if (sim->computations.count == 0) return HW_NEVER;
    return sim_done_ns(sim, (double)sim->computations.heap[0].at - sim->work);
}

static void
pass_time(struct sim *sim, uint64_t at_ns)
{
    sim->work += (double)(at_ns - sim->now_ns) * sim->pace;
    sim->now_ns = at_ns;
}

/* The warm-up ends by requests; where few come, or take long, by the time: else it would be over before anything was measured. Not at
 * the next thing that happens, which may be what is counted. */
static void
pass_time_until(struct sim *sim, uint64_t at_ns)
{
    if (at_ns <= sim->now_ns) return;
    uint64_t warm_ns = SIM_BEGIN_NS + sim->set->longest_ns / 10;
    if (!sim->measuring && at_ns > warm_ns) {
        pass_time(sim, warm_ns);
        sim_start_measuring(sim);
    }
    pass_time(sim, at_ns);
}

static void
comes_back(struct sim *sim, struct sim_timers *timers)
{
    struct sim_thread *t = &sim->threads[pop(timers)];
    if (timers == &sim->computations) sim_compute(sim, -1);
    sim_go_on(sim, t, false);
    sim_process_look_ahead(sim, t->process);
}

/* False: nothing happens any more, as far as is simulated. */
static bool
step(struct sim *sim)
{
    struct sim_process *process = next_process(sim);
    uint64_t delay_ns = sim->delays.count ? sim->delays.heap[0].at : HW_NEVER;
    uint64_t computation_ns = next_computation_ns(sim);
    uint64_t others_ns = hw_earlier_ns(computation_ns, sim->next_arrival_ns);
    uint64_t at_ns = hw_earlier_ns(process->next_ns, hw_earlier_ns(delay_ns, others_ns));
    uint64_t end_ns = SIM_BEGIN_NS + sim->set->longest_ns;
    pass_time_until(sim, hw_earlier_ns(at_ns, end_ns));
    if (at_ns > end_ns) return false;
    if (process->next_ns == at_ns) sim_process_happen(sim, process);
    else if (delay_ns == at_ns) comes_back(sim, &sim->delays);
    else if (computation_ns == at_ns) comes_back(sim, &sim->computations);
    else sim_arrive(sim);
    return true;
}

/* -- the whole ----------------------------------------------------------------------------------------------------------- */

static void
add_thread(struct sim *sim, struct sim_process *p, uint32_t track)
{
    struct sim_thread *t = &sim->threads[sim->thread_count];
    t->process = p;
    t->place = sim->thread_count++;
    t->job_ns = HW_NEVER;
    t->track = track;
    /* Its account has no histograms: nobody reads them, and to fill them takes time. */
    if (sim->set->policy.kind != HW_OBSERVE) hw_scheduler_add(&p->scheduler, &t->record, HW_SUSPENDED, sim->now_ns);
}

static void
start_thread(struct sim *sim, struct sim_thread *t)
{
    if (t->track != NONE) t->cycle = sim_random(&sim->random, sim->set->workload->tracks[t->track].requests);
    if (!sim_take_next(sim, t)) {
        sim_become_idle(sim, t, false);
        return;
    }
    sim_skip_part(sim, t);
    sim_begin_step(sim, t, false);
}

static uint32_t
next_track(const struct hw_workload *w, uint32_t track)
{
    do track = track < w->track_count - 1 ? track + 1 : 0; /* NONE: the first */
    while (w->tracks[track].requests == 0);
    return track;
}

static bool
goes_on_beside(const struct hw_workload *w, uint32_t track)
{
    return w->marked > 0 && w->tracks[track].requests > 0 && w->tracks[track].process == w->typical_process;
}

/* Threads that do requests, and those of one recorded process that went on beside them; without requests the threads of all do
 * the tracks, in turn. */
static void
add_threads(struct sim *sim, struct sim_process *p)
{
    const struct hw_workload *w = sim->set->workload;
    for (uint32_t i = 0; i < sim->set->threads; i++) {
        if (!w->marked) sim->track = next_track(w, sim->track);
        add_thread(sim, p, w->marked ? NONE : sim->track);
    }
    for (uint32_t i = 0; i < w->track_count; i++) {
        if (goes_on_beside(w, i)) add_thread(sim, p, i);
    }
    p->scheduler.attribution.used = 0; /* who waited because of whom: nobody reads it, as the histograms, and to keep it takes time */
}

static bool
take_sample(struct sim *sim)
{
    uint32_t marked = sim->set->workload->marked;
    if (!sim->set->resample || marked == 0) return true;
    sim->sample = malloc(marked * sizeof(*sim->sample));
    if (!sim->sample) return false;
    for (uint32_t i = 0; i < marked; i++) sim->sample[i] = sim_random(&sim->arrivals, marked);
    return true;
}

static bool
prepare(struct sim *sim)
{
    const struct hw_simulation *set = sim->set;
    size_t beside = 0;
    for (uint32_t i = 0; i < set->workload->track_count; i++) beside += goes_on_beside(set->workload, i);
    size_t threads = set->processes * (set->threads + beside);
    if (threads == 0 || threads > HW_SIMULATED_THREADS_MOST || set->workload->request_count == 0) return false;
    sim->processes = calloc(set->processes, sizeof(*sim->processes));
    sim->threads = calloc(threads, sizeof(*sim->threads));
    sim->delays.heap = malloc(threads * sizeof(*sim->delays.heap));
    sim->computations.heap = malloc(threads * sizeof(*sim->computations.heap));
    sim->out->classes = calloc(set->workload->class_count, sizeof(*sim->out->classes));
    sim->out->class_count = set->workload->class_count;
    if (set->rate_per_s > 0) sim->queue = malloc(HW_SIMULATED_QUEUE_MOST * sizeof(*sim->queue));
    bool whole = sim->processes && sim->threads && sim->delays.heap && sim->computations.heap && sim->out->classes &&
        (sim->queue || set->rate_per_s == 0) && take_sample(sim);
    for (uint32_t i = 0; whole && i < set->processes; i++) {
        whole = sim_process_init(sim, &sim->processes[i]);
        if (whole) add_threads(sim, &sim->processes[i]);
    }
    return whole;
}

static bool
run(struct sim *sim, const atomic_bool *cancelled)
{
    const struct hw_simulation *set = sim->set;
    sim->phase = sim_random(&sim->random, UINT32_MAX);
    for (uint32_t i = 0; i < sim->thread_count; i++) start_thread(sim, &sim->threads[i]);
    for (uint32_t i = 0; i < set->processes; i++) sim_process_look_ahead(sim, &sim->processes[i]);
    if (set->rate_per_s > 0) sim->next_arrival_ns = sim->now_ns + sim_exponential_ns(&sim->arrivals, set->rate_per_s);
    for (uint64_t steps = 0; sim->out->requests < set->requests; steps++) {
        if (!step(sim) || sim->out->overloaded) break;
        if (steps % 4096 == 0 && cancelled && atomic_load_explicit(cancelled, memory_order_relaxed)) return false;
    }
    sim->out->elapsed_ns = sim->now_ns - sim->measure_from_ns;
    for (uint32_t i = 0; i < set->processes; i++) {
        if (sim->processes[i].holder) sim->out->gvl_ns += sim->now_ns - sim->processes[i].held_ns;
    }
    return true;
}

bool
hw_simulate(const struct hw_simulation *set, struct hw_simulated *simulated, const atomic_bool *cancelled)
{
    memset(simulated, 0, sizeof(*simulated));
    struct sim sim = { .set = set, .out = simulated, .now_ns = SIM_BEGIN_NS, .pace = 1, .next_arrival_ns = HW_NEVER, .track = NONE,
                       .random = random_state(2 * set->seed), .arrivals = random_state(2 * set->seed + 1) };
    bool whole = prepare(&sim) && run(&sim, cancelled);
    for (uint32_t i = 0; sim.processes && i < set->processes; i++) hw_scheduler_free(&sim.processes[i].scheduler);
    free(sim.processes);
    free(sim.threads);
    free(sim.delays.heap);
    free(sim.computations.heap);
    free(sim.sample);
    free(sim.queue);
    return whole;
}

void
hw_simulated_free(struct hw_simulated *simulated)
{
    for (uint32_t i = 0; i < simulated->class_count && simulated->classes; i++) hw_durations_free(&simulated->classes[i].latency);
    hw_durations_free(&simulated->latency);
    free(simulated->classes);
    memset(simulated, 0, sizeof(*simulated));
}
