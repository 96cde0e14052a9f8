/* Between the files simulator*.c only: simulator.c has the time and the cores; simulator_work.c the requests and what threads do
 * with them; simulator_vm.c a process's GVL and what the policy makes of it. */
#ifndef HW_SIMULATOR_PARTS_H
#define HW_SIMULATOR_PARTS_H

#include "scheduler.h"
#include "simulator.h"

/* When a simulation begins. */
#define SIM_BEGIN_NS HW_NS_PER_S

enum sim_where { SIM_IDLE, SIM_AWAY, SIM_QUEUES, SIM_RUNS, SIM_PARKS };

struct sim_thread {
    struct hw_thread record; /* unused under observe */
    struct sim_process *process;
    uint32_t place;          /* in the simulation's threads */
    enum sim_where where;
    struct sim_thread *next; /* in the ready queue, or among the parked, or among the idle */

    const struct hw_request *request;
    const struct hw_step *step, *end; /* still to come */
    uint64_t skipped_ns;     /* of the next step, which it begins in the middle */
    bool after;              /* the request is done, what follows it isn't */
    uint64_t arrived_ns, wait_ns;
    uint64_t left_ns;        /* of a burst, when it next gets the GVL */

    uint32_t track, cycle;   /* a thread that repeats a track's cycles; UINT32_MAX: requests */

    uint64_t ready_ns;
    uint64_t at_ns;          /* parked: looks again */
    uint64_t parked_ns;
    uint64_t job_ns;         /* when it runs the job; HW_NEVER */
    bool in_job;
};

struct sim_process {
    struct hw_scheduler scheduler;
    struct sim_thread *holder, *head, *tail, *parked, *idle, *last_holder;
    uint32_t idle_count;
    uint64_t look_ns;        /* when the first of the parked looks at the gate of itself ... */
    uint64_t gate_ns;        /* ... or because it starves, as of the last look ahead */
    uint64_t free_ns;        /* the GVL was or will be there for the next one in the queue */
    uint64_t held_ns;        /* since when the holder has it */
    double burst_end;        /* of the holder, in work */
    uint64_t tick_ns;        /* the scheduler's */
    uint64_t vm_tick_ns;     /* the VM's timer's; HW_NEVER: nobody waits */
    unsigned vm_ticks;       /* that hit the holder */
    uint64_t next_ns;        /* when something happens here */
};

struct sim_timer {
    uint64_t at;
    uint32_t thread;
};

struct sim_timers {
    struct sim_timer *heap;
    uint32_t count;
};

struct sim {
    const struct hw_simulation *set;
    struct hw_simulated *out;
    uint64_t now_ns;
    uint64_t random, arrivals; /* states: of the machine; of what comes when, which is the same whatever the setting */
    uint32_t phase;          /* of the first thread in what it does first, of 2^32 */
    double work;             /* nanoseconds of CPU every computing thread has had: grows at `pace` */
    double pace;             /* of a thread: below 1 when more compute than there are cores */
    uint32_t computing;
    struct sim_process *processes;
    struct sim_thread *threads;
    uint32_t thread_count;
    uint32_t track;          /* without requests, the last that a thread was given */
    struct sim_timers delays, computations; /* ends: in time, in work */
    uint32_t *sample;        /* places of requests to draw from; NULL: all */
    uint64_t next_arrival_ns;
    struct { uint64_t arrived_ns; uint32_t request; } *queue;
    uint32_t queue_first, queued;
    uint64_t completed, measure_from_ns;
    bool measuring;
};

/* When `left` nanoseconds of work will be done. */
static inline uint64_t
sim_done_ns(const struct sim *sim, double left)
{
    if (left <= 0) return sim->now_ns;
    return sim->now_ns + (uint64_t)(sim->pace == 1 ? left + 0.999 : left / sim->pace + 0.999);
}

/* simulator.c */
uint32_t sim_random(uint64_t *state, uint32_t bound);
void sim_compute(struct sim *sim, int change); /* one more thread computes, or one less */
void sim_away(struct sim_thread *thread, struct sim_timers *timers, uint64_t at);
uint64_t sim_exponential_ns(uint64_t *state, double rate_per_s);

/* simulator_work.c */
bool sim_take_next(struct sim *sim, struct sim_thread *thread); /* false: there is nothing to do */
void sim_skip_part(struct sim *sim, struct sim_thread *thread); /* of what it has just taken */
void sim_start_measuring(struct sim *sim);
void sim_become_idle(struct sim *sim, struct sim_thread *thread, bool holds);
void sim_begin_step(struct sim *sim, struct sim_thread *thread, bool holds);
void sim_arrive(struct sim *sim);
/* The thread's burst is over and it holds the GVL, or what kept it away is over and it doesn't. */
void sim_go_on(struct sim *sim, struct sim_thread *thread, bool holds);

/* simulator_vm.c */
bool sim_process_init(struct sim *sim, struct sim_process *process);
void sim_want_gvl(struct sim *sim, struct sim_thread *thread);
void sim_run_on(struct sim *sim, struct sim_thread *thread); /* the holder's next burst follows at once */
void sim_leave_gvl(struct sim *sim, struct sim_thread *thread, enum sim_where where);
void sim_process_happen(struct sim *sim, struct sim_process *process);
void sim_process_look_ahead(struct sim *sim, struct sim_process *process);

#endif
