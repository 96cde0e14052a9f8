/* Where requests come from, and what a thread does with one: see simulator.h. */
#include "simulator_parts.h"

/* -- requests ------------------------------------------------------------------------------------------------------------ */

static void
take(struct sim *sim, struct sim_thread *t, uint32_t request, uint64_t arrived_ns)
{
    t->request = &sim->set->workload->requests[request];
    t->step = &sim->set->workload->steps[t->request->first_step];
    t->end = t->step + t->request->steps;
    t->arrived_ns = arrived_ns;
    t->wait_ns = 0;
    t->after = false;
}

static uint32_t
draw(struct sim *sim)
{
    uint32_t place = sim_random(&sim->arrivals, sim->set->workload->marked);
    return sim->sample ? sim->sample[place] : place;
}

void
sim_start_measuring(struct sim *sim)
{
    struct hw_simulated *out = sim->out;
    sim->measuring = true;
    sim->measure_from_ns = sim->now_ns;
    out->gvl_ns = out->cpu_ns = 0;
    for (uint32_t i = 0; i < sim->set->processes; i++) sim->processes[i].held_ns = sim->now_ns;
}

static void
complete(struct sim *sim, struct sim_thread *t)
{
    bool counts = t->track == UINT32_MAX || sim->set->workload->marked == 0;
    if (counts) sim->completed++;
    if (sim->measuring) {
        struct hw_simulated_class *class = &sim->out->classes[t->request->class];
        uint64_t latency_ns = sim->now_ns - t->arrived_ns;
        hw_durations_add(&class->latency, latency_ns, 3);
        class->wait_ns += t->wait_ns;
        if (counts) {
            hw_durations_add(&sim->out->latency, latency_ns, 3);
            sim->out->requests++;
        }
    }
    if (!sim->measuring && sim->completed >= sim->set->warm_up) sim_start_measuring(sim);
}

bool
sim_take_next(struct sim *sim, struct sim_thread *t)
{
    if (t->track != UINT32_MAX) {
        const struct hw_track *track = &sim->set->workload->tracks[t->track];
        t->cycle = t->cycle + 1 < track->requests ? t->cycle + 1 : 0;
        take(sim, t, track->first_request + t->cycle, sim->now_ns);
    }
    else if (sim->set->rate_per_s == 0) take(sim, t, draw(sim), sim->now_ns);
    else if (sim->queued > 0) {
        take(sim, t, sim->queue[sim->queue_first].request, sim->queue[sim->queue_first].arrived_ns);
        sim->queue_first = (sim->queue_first + 1) % HW_SIMULATED_QUEUE_MOST;
        sim->queued--;
    }
    else return false;
    return true;
}

/* Threads that do the same begin at parts of it that are evenly spread (by the golden ratio, whichever of them are in a process): in
 * step they would complete nothing for long, and then all at once. */
#define GOLDEN UINT32_C(2654435769)

void
sim_skip_part(struct sim *sim, struct sim_thread *t)
{
    uint64_t length_ns = 0;
    for (const struct hw_step *step = t->step; step < t->end; step++) length_ns += step->length_ns;
    t->skipped_ns = (uint64_t)((double)length_ns * (sim->phase + t->place * GOLDEN) * 0x1p-32);
    while (t->step + 1 < t->end && t->skipped_ns >= t->step->length_ns) t->skipped_ns -= t->step++->length_ns;
}

/* -- what a thread does -------------------------------------------------------------------------------------------------- */

void
sim_become_idle(struct sim *sim, struct sim_thread *t, bool holds)
{
    struct sim_process *p = t->process;
    if (holds) sim_leave_gvl(sim, t, SIM_IDLE);
    t->where = SIM_IDLE;
    t->next = p->idle;
    p->idle = t;
    p->idle_count++;
}

static void
need_gvl(struct sim *sim, struct sim_thread *t, bool holds, uint64_t length_ns)
{
    t->left_ns = length_ns;
    if (holds) sim_run_on(sim, t);
    else sim_want_gvl(sim, t);
}

void
sim_begin_step(struct sim *sim, struct sim_thread *t, bool holds)
{
    const struct hw_step *step = t->step++;
    uint64_t length_ns = step->length_ns - t->skipped_ns;
    t->skipped_ns = 0;
    if (step->kind == HW_STEP_GVL) {
        need_gvl(sim, t, holds, length_ns);
        return;
    }
    if (holds) sim_leave_gvl(sim, t, SIM_AWAY);
    if (step->kind == HW_STEP_DELAY) {
        sim_away(t, &sim->delays, sim->now_ns + length_ns);
        return;
    }
    sim_compute(sim, 1);
    sim->out->cpu_ns += length_ns;
    sim_away(t, &sim->computations, (uint64_t)sim->work + length_ns);
}

void
sim_go_on(struct sim *sim, struct sim_thread *t, bool holds)
{
    if (t->step == t->end) {
        if (!t->after) complete(sim, t);
        if (!t->after && t->request->after_ns > 0) {
            t->after = true;
            need_gvl(sim, t, holds, t->request->after_ns);
            return;
        }
        if (!sim_take_next(sim, t)) {
            sim_become_idle(sim, t, holds);
            return;
        }
    }
    sim_begin_step(sim, t, holds);
}

/* -- arrivals ------------------------------------------------------------------------------------------------------------ */

static struct sim_process *
least_busy(struct sim *sim)
{
    struct sim_process *chosen = NULL;
    uint32_t equals = 0;
    for (uint32_t i = 0; i < sim->set->processes; i++) {
        struct sim_process *p = &sim->processes[i];
        if (p->idle_count == 0 || (chosen && p->idle_count < chosen->idle_count)) continue;
        if (!chosen || p->idle_count > chosen->idle_count) equals = 0;
        if (sim_random(&sim->random, ++equals) == 0) chosen = p;
    }
    return chosen;
}

void
sim_arrive(struct sim *sim)
{
    uint32_t request = draw(sim);
    struct sim_process *p = least_busy(sim);
    if (p) {
        struct sim_thread *t = p->idle;
        p->idle = t->next;
        p->idle_count--;
        take(sim, t, request, sim->now_ns);
        sim_begin_step(sim, t, false);
        sim_process_look_ahead(sim, p);
    }
    else if (sim->queued == HW_SIMULATED_QUEUE_MOST) sim->out->overloaded = true;
    else {
        uint32_t place = (sim->queue_first + sim->queued++) % HW_SIMULATED_QUEUE_MOST;
        sim->queue[place].request = request;
        sim->queue[place].arrived_ns = sim->now_ns;
        if (sim->queued > sim->out->queued_most) sim->out->queued_most = sim->queued;
    }
    sim->next_arrival_ns = sim->now_ns + sim_exponential_ns(&sim->arrivals, sim->set->rate_per_s);
}
