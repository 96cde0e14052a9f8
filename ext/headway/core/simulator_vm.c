/* One simulated process: the VM's ready queue and time slices as CRuby has them, and the job, the signal and the park as yield.c,
 * signal.c and park.c do them. What is decided, and when, is the scheduler's own code. */
#include "simulator_parts.h"

#define VM_TICK_NS (10 * HW_NS_PER_MS)
#define CHECK_NS (10 * HW_NS_PER_US)      /* from a signal to the job, at most twice that: the holder's next interrupt check */
#define WAKE_NS (30 * HW_NS_PER_US)       /* until a parked thread that is woken runs ... */
#define SPIN_NS (25 * HW_NS_PER_US)       /* ... unless it still spins */

static bool
scheduled(const struct sim *sim)
{
    return sim->set->policy.kind != HW_OBSERVE;
}

static struct sim_thread *
thread_of(struct hw_thread *record)
{
    return (struct sim_thread *)(void *)((char *)record - offsetof(struct sim_thread, record));
}

/* -- what the runtime does ----------------------------------------------------------------------------------------------- */

static void
carry_out(struct sim *sim, struct sim_process *p, const struct hw_orders *orders)
{
    if (orders->preempt) {
        struct sim_thread *holder = thread_of(orders->preempt);
        if (holder->job_ns == HW_NEVER) holder->job_ns = sim->now_ns + 1 + sim_random(&sim->random, 2 * CHECK_NS);
    }
    if (orders->wake) {
        struct sim_thread *woken = thread_of(orders->wake);
        bool spins = sim->now_ns - woken->parked_ns < SPIN_NS;
        hw_bring_forward(&woken->at_ns, sim->now_ns + (spins ? 1 : WAKE_NS));
        hw_bring_forward(&p->look_ns, woken->at_ns);
    }
    hw_bring_forward(&p->tick_ns, orders->tick_ns);
}

/* -- the GVL ------------------------------------------------------------------------------------------------------------- */

static void
set_burst_end(struct sim *sim, struct sim_thread *t)
{
    t->process->burst_end = sim->work + (double)t->left_ns;
}

static void
take_gvl(struct sim *sim, struct sim_process *p)
{
    struct sim_thread *t = p->head;
    p->head = t->next;
    if (!p->head) p->tail = NULL;
    p->holder = t;
    p->held_ns = sim->now_ns;
    if (p->last_holder != t) p->vm_ticks = 0;
    p->last_holder = t;
    if (!p->head) p->vm_tick_ns = HW_NEVER;
    else if (p->vm_tick_ns == HW_NEVER) p->vm_tick_ns = sim->now_ns + VM_TICK_NS;
    t->where = SIM_RUNS;
    t->wait_ns += sim->now_ns - t->ready_ns;
    sim_compute(sim, 1);
    set_burst_end(sim, t);
    if (!scheduled(sim)) return;

    struct hw_orders orders;
    hw_scheduler_resumed(&p->scheduler, &t->record, sim->now_ns, &orders);
    carry_out(sim, p, &orders);
    if (!t->in_job) return;
    /* As on_clean_entry's loop: look again. */
    atomic_store_explicit(&t->record.yielding, false, memory_order_relaxed);
    t->in_job = false;
    if (hw_scheduler_must_yield(&p->scheduler, &t->record, sim->now_ns)) t->job_ns = sim->now_ns + HW_NS_PER_US;
}

void
sim_want_gvl(struct sim *sim, struct sim_thread *t)
{
    struct sim_process *p = t->process;
    t->where = SIM_QUEUES;
    t->ready_ns = sim->now_ns;
    t->next = NULL;
    if (p->tail) p->tail->next = t;
    else p->head = t;
    p->tail = t;
    if (scheduled(sim)) {
        struct hw_orders orders;
        hw_scheduler_ready(&p->scheduler, &t->record, sim->now_ns, &orders);
        carry_out(sim, p, &orders);
    }
    if (!p->holder && p->head == t && p->free_ns <= sim->now_ns) take_gvl(sim, p);
    else if (p->vm_tick_ns == HW_NEVER) p->vm_tick_ns = sim->now_ns + VM_TICK_NS;
}

void
sim_run_on(struct sim *sim, struct sim_thread *t)
{
    set_burst_end(sim, t);
}

static uint64_t
handover_ns(struct sim *sim)
{
    const struct hw_workload *w = sim->set->workload;
    if (w->handover.count < HW_HANDOVERS_LEAST) return sim->set->handover_ns;
    uint32_t kept = w->handover.count < HW_HANDOVERS_KEPT ? (uint32_t)w->handover.count : HW_HANDOVERS_KEPT;
    return w->handovers_ns[sim_random(&sim->random, kept)];
}

void
sim_leave_gvl(struct sim *sim, struct sim_thread *t, enum sim_where where)
{
    struct sim_process *p = t->process;
    double left = p->burst_end - sim->work;
    t->left_ns = left >= 1 ? (uint64_t)left : 1;
    t->where = where;
    t->job_ns = HW_NEVER;
    sim_compute(sim, -1);
    sim->out->gvl_ns += sim->now_ns - p->held_ns;
    p->holder = NULL;
    p->free_ns = sim->now_ns + (p->head ? handover_ns(sim) : 0);
    if (!scheduled(sim)) return;
    struct hw_orders orders;
    hw_scheduler_suspended(&p->scheduler, &t->record, sim->now_ns, &orders);
    carry_out(sim, p, &orders);
}

/* -- the park ------------------------------------------------------------------------------------------------------------ */

static void
wait_at_gate(struct sim_process *p, struct sim_thread *t)
{
    atomic_store_explicit(&t->record.open, false, memory_order_relaxed);
    t->at_ns = hw_scheduler_lingers_until_ns(&p->scheduler, &t->record);
}

static void
find_next_look(struct sim_process *p)
{
    p->look_ns = HW_NEVER;
    for (const struct sim_thread *t = p->parked; t; t = t->next) hw_bring_forward(&p->look_ns, t->at_ns);
}

static void
run_job(struct sim *sim, struct sim_thread *t)
{
    struct sim_process *p = t->process;
    t->job_ns = HW_NEVER;
    if (!hw_scheduler_must_yield(&p->scheduler, &t->record, sim->now_ns)) return;
    t->in_job = true;
    atomic_store_explicit(&t->record.yielding, true, memory_order_relaxed);
    sim_leave_gvl(sim, t, SIM_PARKS);
    sim->out->forced++;
    if (hw_scheduler_gate_open(&p->scheduler, &t->record, sim->now_ns)) {
        sim_want_gvl(sim, t);
        return;
    }
    t->record.parked = true;
    t->parked_ns = t->ready_ns = sim->now_ns;
    t->next = p->parked;
    p->parked = t;
    wait_at_gate(p, t);
    hw_bring_forward(&p->look_ns, t->at_ns);
}

static uint64_t
starves_at_ns(const struct sim_process *p)
{
    const struct hw_thread *admitted = p->scheduler.admitted;
    return admitted && admitted->parked ? hw_scheduler_starves_at_ns(&p->scheduler, admitted) : HW_NEVER;
}

static void
look_at_gate(struct sim *sim, struct sim_process *p, struct sim_thread **link)
{
    struct sim_thread *t = *link;
    if (!hw_scheduler_gate_open(&p->scheduler, &t->record, sim->now_ns)) {
        wait_at_gate(p, t);
        find_next_look(p);
        return;
    }
    *link = t->next;
    find_next_look(p);
    t->record.parked = false;
    t->wait_ns += sim->now_ns - t->ready_ns;
    sim_want_gvl(sim, t);
}

/* -- what happens --------------------------------------------------------------------------------------------------------- */

/* With every tick the holder is charged a whole one, whatever really passed. */
static void
vm_tick(struct sim *sim, struct sim_process *p)
{
    p->vm_tick_ns = p->head ? sim->now_ns + VM_TICK_NS : HW_NEVER;
    struct sim_thread *t = p->holder;
    if (!t || !p->head || ++p->vm_ticks * VM_TICK_NS < sim->set->vm_slice_ns) return;
    p->vm_ticks = 0;
    sim->out->forced++;
    sim_leave_gvl(sim, t, SIM_QUEUES);
    sim_want_gvl(sim, t);
}

static bool
park_ends(struct sim *sim, struct sim_process *p)
{
    bool starves = sim->now_ns >= starves_at_ns(p);
    for (struct sim_thread **link = &p->parked; *link; link = &(*link)->next) {
        bool looks = sim->now_ns >= (*link)->at_ns || (starves && p->scheduler.admitted == &(*link)->record);
        if (!looks) continue;
        look_at_gate(sim, p, link);
        return true;
    }
    return false;
}

static void
happen_once(struct sim *sim, struct sim_process *p)
{
    struct sim_thread *holder = p->holder;
    if (sim->now_ns >= p->tick_ns) {
        struct hw_orders orders;
        p->tick_ns = HW_NEVER;
        hw_scheduler_tick(&p->scheduler, sim->now_ns, &orders);
        carry_out(sim, p, &orders);
    }
    else if (sim->now_ns >= p->gate_ns && park_ends(sim, p)) return;
    else if (!holder) {
        if (p->head && sim->now_ns >= p->free_ns) take_gvl(sim, p);
    }
    else if (sim->work >= p->burst_end - 0.5) {
        sim->out->bursts++;
        sim_go_on(sim, holder, true);
    }
    else if (sim->now_ns >= holder->job_ns) run_job(sim, holder);
    else if (sim->now_ns >= p->vm_tick_ns) vm_tick(sim, p);
}

void
sim_process_happen(struct sim *sim, struct sim_process *p)
{
    happen_once(sim, p);
    sim_process_look_ahead(sim, p);
}

void
sim_process_look_ahead(struct sim *sim, struct sim_process *p)
{
    p->gate_ns = p->look_ns;
    hw_bring_forward(&p->gate_ns, starves_at_ns(p));
    uint64_t at_ns = p->tick_ns;
    hw_bring_forward(&at_ns, p->gate_ns);
    if (p->holder) {
        hw_bring_forward(&at_ns, sim_done_ns(sim, p->burst_end - sim->work));
        hw_bring_forward(&at_ns, p->holder->job_ns);
        hw_bring_forward(&at_ns, p->vm_tick_ns);
    }
    else if (p->head) {
        hw_bring_forward(&at_ns, p->free_ns);
    }
    p->next_ns = hw_later_ns(at_ns, sim->now_ns);
}

bool
sim_process_init(struct sim *sim, struct sim_process *p)
{
    p->tick_ns = p->vm_tick_ns = p->look_ns = p->gate_ns = p->next_ns = HW_NEVER;
    if (!scheduled(sim)) return true;
    bool whole = hw_scheduler_init(&p->scheduler, &sim->set->policy);
    hw_account_free(&p->scheduler.account); /* its histograms: nobody reads them, and to fill them takes time */
    return whole;
}
