/* What traces say: per thread its times, waits and holds, whom it waited for, what its stacks made others wait; GC and marks.
 * One pass over each file, in the order of the events' times; memory depends on the threads, not on the events, unless lanes
 * are asked for.
 *
 * Identities, in nanoseconds and exact whatever the events are: a thread's running + ready + suspended is its end - start; what
 * it waited for whom sums to its ready time; a process's running + idle is its end - start.
 *
 * Times are of each process's own CLOCK_MONOTONIC; header.wall_ns - header.clock_ns takes them to the common clock. */
#ifndef HW_ANALYSIS_H
#define HW_ANALYSIS_H

#include "attribution.h"
#include "durations.h"
#include "lane.h"
#include "number_map.h"
#include "thread.h"
#include "trace_reader.h"
#include "trace_tables.h"

#include <stdatomic.h>

#define HW_ANALYSIS_THREADS_MOST 65536 /* of all files; further ones are left out and their events counted as unread */
#define HW_ANALYSIS_PRECISE_THREADS 4096 /* have histograms of two digits, further ones of one */
#define HW_ANALYSIS_MARKS_MOST 100000
#define HW_ANALYSIS_PAIRS_MOST (UINT32_C(1) << 21) /* of a waiter and whom it waited for */
#define HW_ANALYSIS_BLAMES_MOST (UINT32_C(1) << 20) /* of a thread and a stack */
#define HW_NOBODY UINT32_MAX

/* Bounds of the wait histogram's buckets: 0, then 1, 1.5, 2, 3, 5, 7 times every power of ten from 100 ns on. */
#define HW_WAIT_BUCKETS 103

#define HW_AT_WORK_MOST 128 /* threads; more count as so many */

#define HW_ANALYSIS_WORKS_MOST 65536 /* names of work, each process's for itself; further ones are left out */

#define HW_PLACES_OF_WORK 16 /* stacks of one piece of work; of further ones, the shortest aren't told */
#define HW_ANALYSIS_PLACES_MOST (UINT32_C(1) << 20) /* of a name of work and a stack */

/* Stacks, and for how long. */
struct hw_places {
    uint8_t count;
    struct {
        uint32_t stack;
        uint64_t ns;
    } at[HW_PLACES_OF_WORK];
};

/* What a thread is at; with depth 0 what it was at last, done: and the sums below have it. Until then times are as of its begin. */
struct hw_thread_work {
    uint32_t string, depth; /* depth: of marks of this very name */
    uint8_t span;           /* enum hw_span */
    uint64_t start_ns, time_ns, running_ns, ready_ns, computed_ns, blamed_ns;
    bool done;
    bool settled; /* no other name comes any more */
    bool any; /* it had work */
    bool of_pool; /* the process's at_work has it */
    bool was_queued;
    uint64_t queued_ns; /* before it began */
    struct hw_places blocked, behind; /* where it was; where holders were seen while it waited for the GVL, and how long by then */
    uint32_t blames; /* of its thread, that came to something in it: place + 1 of the last one, which leads on to the others; 0: none */
};

struct hw_analysed_thread {
    uint32_t process, number;
    enum hw_state state;
    bool started, exited; /* started: while it was recorded */
    uint64_t since_ns; /* in the state */
    uint64_t start_ns, end_ns;
    uint64_t time_ns[HW_STATE_COUNT];
    uint64_t off_cpu_ns;      /* of its running time, it was on no processor */
    uint64_t burst_ns;        /* as the policy counts it, of what it ran on a processor */
    uint64_t away_ns;         /* how long it was suspended last; 0: it is told where */
    uint64_t batch_ns;        /* of its running time, what it ran as a batch thread: fair would have let others go first */
    uint64_t batch_waits_ns;  /* what others waited meanwhile */
    uint64_t hold_off_cpu_ns; /* of the hold that is ending */
    uint32_t cpu_us;          /* its CPU clock as last read; 0: never */
    uint64_t cpu_read_ns;     /* when that was */
    uint64_t cpu_held_ns;     /* what it ran since, on a processor */
    uint64_t computed_ns;     /* what it computed without the GVL */
    struct hw_durations wait, hold; /* those that ended */
    uint64_t voluntary, preempted;
    struct hw_number_map caused, caused_at_boot; /* waiting thread -> how long it waited while this one held the GVL */
    uint64_t boot_ns[HW_STATE_COUNT], boot_batch_waits_ns; /* of its time, and of batch_waits_ns, what was its process's boot */
    uint64_t unassigned_ns;         /* what it waited beyond HW_ANALYSIS_PAIRS_MOST */
    struct hw_lane lane;            /* in units since the process's lane_origin_ns */

    uint32_t ready_place;           /* in the list of ready threads */
    uint64_t sampled_ns;            /* when its stack was last blamed */
    struct hw_number_map blamed;    /* stack -> place in blames */
    struct hw_number_map blocked;   /* as in hw_analysed_work, while its process has had no work yet */
    uint32_t open_mark;             /* the innermost; 0: none */
    uint32_t folded_marks;          /* open ones inside it that are not kept */
    uint32_t ended_mark;            /* the one that ended last; 0: none, or it isn't kept */
    struct hw_thread_work work;
    bool of_pool;                   /* some of it is, or was, its process's at_work's */
};

/* What came after the first work of a process began: a server's load, without its boot. */
struct hw_since_work {
    bool any;
    uint64_t start_ns, running_ns, off_cpu_ns, gc_count, gc_ns;
};

/* How many threads of a process were at work at once, and for how long. In one that serves requests jobs aren't counted, which have threads
 * of their own. */
struct hw_at_work {
    bool serves;
    uint32_t threads;
    uint64_t count, took_ns; /* of such work that ended, and of all of it */
    uint64_t since_ns, time_ns[HW_AT_WORK_MOST + 1];
};

/* The same work, as far as somebody said that it stood in a queue before a thread took it. */
struct hw_queued {
    uint64_t count, total_ns, max_ns;
};

struct hw_analysed_process {
    struct hw_trace_header header;
    struct hw_trace_damage damage;
    struct hw_tables tables;
    uint64_t start_ns, end_ns;        /* of the events; both the header's clock when there are none */
    uint64_t events, dropped, folded; /* folded: stacks the recorder didn't keep */
    struct hw_quota quota;
    uint64_t unread;                  /* events of threads beyond HW_ANALYSIS_THREADS_MOST */
    uint64_t idle_ns;                 /* nobody held the GVL */
    uint64_t gc_count, gc_ns, gc_max_ns;
    struct hw_since_work since_work;
    struct hw_at_work at_work;
    struct hw_queued queued;
    struct hw_number_map idle_caused, idle_at_boot; /* waiting thread -> how long it waited while nobody held the GVL */
    struct hw_lane gc_lane;
    uint64_t lane_origin_ns;          /* time 0 of its lanes: a whole number of units on the common clock */
};

/* Marks nest; one left open ends with its thread. */
struct hw_analysed_mark {
    uint32_t thread, string;
    uint64_t start_ns, end_ns; /* equal for an instant */
    bool instant;
    uint32_t outer;            /* place + 1 */
};

/* One piece of work. */
struct hw_single_work {
    uint32_t thread;
    uint64_t start_ns, time_ns, running_ns, ready_ns;
    struct hw_places behind;
};

/* The outermost marks of one name. */
struct hw_analysed_work {
    uint32_t process, string;
    uint8_t span; /* enum hw_span: what the last of them was */
    uint64_t count, time_ns, running_ns, ready_ns, computed_ns;
    uint64_t blamed_ns; /* weight of the blame samples in it */
    struct hw_number_map blocked, blamed; /* stack -> for how long it was blocked there; -> the weight of the samples of it */
    struct hw_single_work longest;        /* the one that waited longest for the GVL, if any did */
};

struct hw_analysed_blame {
    uint32_t thread, stack;
    uint64_t weight_ns, samples;
    uint64_t late_ns; /* of the weight, samples that somebody had waited HW_LATE_NS for: that code heeds no interrupt */
    uint64_t in_work_ns;   /* of the weight, what its thread's work has, */
    uint32_t next_in_work; /* and where else that is blamed: as `blames` of hw_thread_work */
};

struct hw_analysis {
    bool lanes;
    atomic_bool cancelled; /* set by another thread: the pass ends soon, and fails */
    struct hw_analysed_process *processes;
    struct hw_analysed_thread *threads;
    struct hw_analysed_mark *marks;
    struct hw_analysed_work *works;
    struct hw_analysed_blame *blames;
    uint32_t process_count, thread_count, mark_count, work_count, blame_count, pair_count, place_count;
    uint32_t thread_capacity, mark_capacity, work_capacity, blame_capacity;
    uint64_t marks_folded;
    uint64_t blame_samples, blame_ns, blames_folded; /* folded: samples beyond HW_ANALYSIS_BLAMES_MOST */
    struct hw_durations wait, hold;
    uint64_t wait_buckets[HW_WAIT_BUCKETS];
};

void hw_analysis_init(struct hw_analysis *analysis, bool lanes);
void hw_analysis_free(struct hw_analysis *analysis);

/* Reads one more file, of which its first `longest` bytes. False: nothing of it could be read, and *damage says why. Damage further on is in the process. */
bool hw_analysis_add(struct hw_analysis *analysis, const char *path, uint64_t longest, struct hw_trace_damage *damage);

/* Where a bucket of wait_buckets begins; `bucket` may be HW_WAIT_BUCKETS: where the last one ends. */
uint64_t hw_wait_bucket_from_ns(uint32_t bucket);

#endif
