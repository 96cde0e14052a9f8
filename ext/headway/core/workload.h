/* What a program's threads do, without the waits: bursts that need the GVL, CPU time without it, and delays. Taken from traces
 * (workload_trace.c) and given to the simulator, which lets other numbers of threads do the same under another policy.
 *
 * A request is what the program marked (Headway.mark, the outermost mark of its thread); drawn at random, any thread may do any. So is a
 * job, but not in a process that serves requests: there it goes on beside them, as what has no marks.
 * What threads without marks do is cut into cycles, a burst and the delay after it; a track is one thread's cycles in their order.
 * With requests, tracks are what goes on beside them; without, they are all there is. */
#ifndef HW_WORKLOAD_H
#define HW_WORKLOAD_H

#include "durations.h"
#include "trace_reader.h"
#include "trace_tables.h"

#include <stdatomic.h>

#define HW_CLASSES_MOST 64   /* of requests, and as many of threads beside them; further ones are one class */
#define HW_LOADS_MOST 255    /* delays that last at a time, as far as they are counted */
#define HW_CLASS_NAME_LONGEST 120
#define HW_HANDOVERS_KEPT 1024

/* name, label */
#define HW_STEPS(EACH)                                                                                                         \
    EACH(GVL, "gvl")     /* runs, needs the GVL */                                                                            \
    EACH(CPU, "cpu")     /* runs without the GVL */                                                                           \
    EACH(DELAY, "delay") /* neither: waits for something outside */

enum hw_step_kind {
#define EACH(name, label) HW_STEP_##name,
    HW_STEPS(EACH)
#undef EACH
    HW_STEP_KINDS
};

#define HW_STEP_LONGEST_NS (UINT64_C(1) << 53) /* a third of a year: what a step has room for, with some to add */

struct hw_step {
    uint64_t kind : 2, load : 8, length_ns : 54; /* load, of a delay: how many requests of the process were in one, it included */
};

struct hw_request {
    uint32_t first_step, steps;
    uint32_t class;
    uint32_t track;      /* of a cycle */
    uint64_t after_ns;   /* GVL the thread needs after it, before it takes the next */
    uint64_t latency_ns, wait_ns; /* as recorded; waiting for the GVL is part of no step */
};

struct hw_track {
    uint32_t first_request, requests; /* cycles */
    uint32_t class, process;
    uint64_t running_ns, lived_ns, start_ns, end_ns;
    uint32_t pause; /* place + 1 of its last step, when that is a delay; 0: it ran to the end, and had been there from the beginning */
    uint32_t paused; /* the request that it is the last step of */
};

struct hw_request_class {
    char name[HW_CLASS_NAME_LONGEST + 1]; /* any bytes, and a 0 behind them */
    size_t name_length;
    uint64_t count, time_ns[HW_STEP_KINDS], wait_ns, after_ns; /* sums over its requests */
    struct hw_durations latency;
    bool of_threads;
};

struct hw_workload_process {
    struct hw_trace_header header;
    struct hw_trace_damage damage;
    uint64_t events, dropped, first_event_ns, wall_ns;
    uint64_t running_ns, off_cpu_ns; /* with the GVL; of that, on no processor */
    uint64_t beside_ns;         /* from here on, where its first request begins, other threads go on beside them: a boot doesn't */
    uint64_t computed_ns;       /* by threads without requests, with the GVL or not */
    uint64_t jobs;              /* of the requests: so many are called that */
    uint64_t requests, busy_ns; /* busy: in requests, summed over threads */
    uint64_t first_ns, last_ns; /* of its requests: the first begins, the last ends */
    uint32_t under_way;         /* requests that its threads had begun by then and never ended */
    uint32_t workers;           /* threads that did requests, as many as there were at a time */
    uint32_t idle;              /* threads of the same names, but for digits, that did none as long as the trace lasts */
    uint32_t most_at_once;      /* requests */
};

struct hw_workload {
    struct hw_step *steps;
    struct hw_request *requests; /* those that were marked, then the cycles, track by track */
    struct hw_track *tracks;
    struct hw_request_class *classes;
    struct hw_workload_process *processes;
    uint32_t step_count, request_count, marked, track_count, class_count, process_count;
    uint32_t step_capacity, request_capacity, track_capacity, class_capacity;
    uint32_t typical_process;    /* with the most requests: what goes on beside them is taken from there; without any, that computes most */
    struct hw_durations latency; /* of all requests; where none was marked, of cycles */
    uint64_t forgotten_ns;       /* running time of threads and processes too idle to matter */
    uint64_t queued_ns;          /* in all, in front of the program */
    uint32_t queued;             /* of how many requests that is known */
    struct hw_durations handover; /* from the end of a hold to the begin of the next, when that was waited for ... */
    uint64_t handovers_ns[HW_HANDOVERS_KEPT]; /* ... and some of them, evenly chosen: `handover.count` of them or all */
    atomic_bool cancelled;       /* set by another thread: reading fails soon */
};

void hw_workload_init(struct hw_workload *workload);
void hw_workload_free(struct hw_workload *workload);

/* Building blocks, also for tests. A request is begun with its class and then given its steps; neighbours that both need the GVL
 * become one. UINT32_MAX, false: no memory. */
uint32_t hw_workload_class(struct hw_workload *workload, const char *name, size_t length);
uint32_t hw_workload_thread_class(struct hw_workload *workload, const char *name, size_t length); /* never a request's, whatever its name */
uint32_t hw_workload_request(struct hw_workload *workload, uint32_t class);
bool hw_workload_step(struct hw_workload *workload, enum hw_step_kind kind, uint64_t length_ns, uint32_t load);

bool hw_workload_handover(struct hw_workload *workload, uint64_t length_ns);

/* One more trace file, of which its first `longest` bytes. False: nothing of it could be read, and *damage says why. */
bool hw_workload_read(struct hw_workload *workload, const char *path, uint64_t longest, struct hw_trace_damage *damage);

/* After the last file or request: puts cycles after requests, in the order of their tracks, and sums up the classes. */
bool hw_workload_finish(struct hw_workload *workload);

/* Whether delays take longer the more of them last at a time. Each is compared with the mean of its like (the same place in
 * requests of the same class); *ratio is the mean of the half with the most others over that of the other half (1: no more than
 * chance would have it), *crowd_ratio how many more there were. False: they never differed enough to tell, or there are too few. */
bool hw_workload_delays_by_load(const struct hw_workload *workload, double *ratio, double *crowd_ratio);

#endif
