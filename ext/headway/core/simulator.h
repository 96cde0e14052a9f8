/* Lets a workload run on simulated processes: threads, a GVL each, cores they share, and time that passes as fast as it can be
 * computed. Under Headway's policies the very scheduler that schedules is driven, event by event, with the simulated clock.
 *
 * The VM: a ready queue served first come first served, a timer that ticks every 10 ms while somebody waits and takes the GVL from
 * whoever had it for a time slice of ticks. Cores are shared evenly by all that compute. Arrivals are closed (each thread takes the
 * next request at once, and begins in the middle of one) or open (Poisson; those that find no idle thread queue up in front of the
 * pool, and their latency counts from the arrival). Of several processes with idle threads the one with the most takes the next
 * request. */
#ifndef HW_SIMULATOR_H
#define HW_SIMULATOR_H

#include "policy.h"
#include "workload.h"

#define HW_SIMULATED_THREADS_MOST 4096
#define HW_HANDOVERS_LEAST 20
#define HW_SIMULATED_QUEUE_MOST 100000 /* requests in front of the pool: it doesn't keep up */

struct hw_simulation {
    const struct hw_workload *workload;
    uint64_t seed;           /* the same one, the same outcome */
    bool resample;           /* draws from a bootstrap sample of the requests instead of from all */
    uint32_t processes, threads, cores; /* threads: that do requests, in each process */
    struct hw_policy policy; /* observe: the VM alone */
    uint64_t vm_slice_ns;    /* the VM's own; 100 ms unless RUBY_THREAD_TIMESLICE says otherwise */
    uint64_t handover_ns;    /* from a hold's end to the begin of the next, when the next thread waited; as recorded, if enough were */
    double rate_per_s;       /* of open arrivals; 0: closed */
    uint64_t requests;       /* to be measured, after a warm-up of warm_up, or a tenth of longest_ns ... */
    uint64_t warm_up;
    uint64_t longest_ns;     /* ... or until the simulated time is so much */
};

struct hw_simulated_class {
    struct hw_durations latency;
    uint64_t wait_ns;        /* for the GVL, sum */
};

struct hw_simulated {
    struct hw_simulated_class *classes; /* as many as the workload has, then those of tracks beside requests */
    uint32_t class_count;
    struct hw_durations latency; /* of all requests */
    uint64_t elapsed_ns, requests;
    uint64_t gvl_ns, cpu_ns;     /* somebody held a GVL, ran without one: summed over processes, threads */
    uint64_t bursts, forced;     /* of the whole simulation; switches forced by the policy or the VM's slice */
    uint64_t queued_most;
    bool overloaded;             /* more arrivals than the pool can serve */
};

/* False: no memory, or cancelled. `simulated` is to be freed in any case. */
bool hw_simulate(const struct hw_simulation *simulation, struct hw_simulated *simulated, const atomic_bool *cancelled);
void hw_simulated_free(struct hw_simulated *simulated);

#endif
