/* What the core keeps of one Ruby thread. Plain data: the scheduler's files and the runtime's change it under the runtime's lock, but for
 * what is atomic or said to be the thread's own. */
#ifndef HW_THREAD_H
#define HW_THREAD_H

#include "attribution.h"
#include "cpu_reading.h"
#include "histogram.h"
#include "pull.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* name, label */
#define HW_STATES(EACH)                                                                                                       \
    EACH(SUSPENDED, "suspended") /* blocked of its own accord, or in native code without the GVL */                           \
    EACH(READY, "ready")         /* wants the GVL: in the VM's ready queue or at the gate */                                  \
    EACH(RUNNING, "running")     /* holds the GVL */

enum hw_state {
#define EACH(name, label) HW_##name,
    HW_STATES(EACH)
#undef EACH
    HW_STATE_COUNT
};

extern const char *const hw_state_labels[HW_STATE_COUNT];

/* Blocks remembered to predict the next one's length. */
#define HW_NAP_HISTORY 4
#define HW_NAP_PATTERNS (1 << HW_NAP_HISTORY)

/* A class set by hand, for Headway.batch { } and Headway.interactive { }. */
enum hw_class { HW_CLASS_MEASURED, HW_CLASS_BATCH, HW_CLASS_INTERACTIVE };

/* Times and switches of a thread, of all threads that ended under one name, or of the process. */
struct hw_account {
    uint64_t time_ns[HW_STATE_COUNT];
    uint64_t voluntary, preempted; /* ends of a hold */
    struct hw_histogram wait;      /* ready to running */
    struct hw_histogram hold;      /* running to suspended (or to ready, when preempted) */
};

/* The account of all threads that ended under one name. */
struct hw_ended {
    struct hw_ended *next;
    char name[96];
    uint64_t threads;
    uint64_t caused_ns; /* waits of others while these held the GVL, but for ... */
    uint64_t untold;    /* ... so many of them, of which that isn't known: they shared a slot */
    struct hw_account account;
};

struct hw_thread {
    /* What its events look at and change, a line after the other: cache_line.h. A record that is reused is zeroed from `state` to before
     * `parked_cond`, and keeps the rest. */
    struct hw_account account;
    _Atomic uint64_t called_ns; /* when somebody last signalled parked_cond */

    enum hw_state state;
    uint32_t number;         /* unique in the process, from 1, never used again */
    uint64_t since_ns;       /* when it entered the state */
    uint64_t resumed_ns;     /* when it last got the GVL */
    uint64_t burst_from_ns;  /* the same, later by the time collections took since: they are done for everybody */
    uint64_t burst_ns;       /* run time since it last blocked, less what it slept; not counting the current hold */
    uint64_t piece_ns;       /* run time since it last blocked, up to the current hold: of its piece of work */
    uint64_t usual_piece_ns; /* what one takes, on average of the last ones: policy.h */
    uint64_t due_ns;         /* ready: it gave way, and goes before lower tiers from then on; HW_NEVER: it doesn't */
    uint64_t resumes;        /* the scheduler's resume number of its last hold */
    uint64_t away_ns;        /* recording: since when it has been blocked; 0: it isn't */
    bool batch;              /* its class as last judged */
    uint8_t tier;            /* and its tier among batch threads: the less service attained, the lower */
    uint8_t counts_as;       /* which of the scheduler's counts it is in: bits of enum hw_count */
    bool unborn;             /* has never run */
    bool fresh;              /* has never blocked of its own accord */
    bool asked;              /* a preemption is under way */
    atomic_bool yielding;    /* gives way right now: its SUSPENDED means READY */
    bool at_gate;            /* in one of the gate's queues: that of gate_tier */

    uint8_t gate_tier;
    bool alarmed;            /* recording: its wait, which lasts, has sounded the alarm */
    bool was_long_away;      /* recording: its stack is to be looked at, which is still that of the block that it is back from, or above */
    uint16_t back_depth;     /* how deep that stack was when it came back; its own thread's */
    bool ending;             /* its block is done: what the VM does now must not be torn apart */
    bool ractor_known;       /* it was seen running in the main Ractor */
    bool gave_processor;     /* it pulled whoever got the GVL after it; its own thread's */
    bool called_back;        /* it got the GVL with an interrupt pending: perhaps an exception; its own thread's */
    bool parked;             /* inside hw_runtime_park */
    bool sleeps;             /* there, in a wait that only runtime.lock lets it leave */
    atomic_bool open;        /* the gate was opened for it; until it has the GVL, or waits at it again */
    atomic_bool interrupted; /* the VM wants it back */
    atomic_bool late;        /* on the runtime's list of those that became ready during a fork: fork.c */
    uint8_t naps;            /* its last blocks, a bit each, newest lowest: 1 = shorter than the policy's linger_ns */
    uint8_t nap_follows[HW_NAP_PATTERNS]; /* how surely a nap follows a pattern of naps: 0 to 3 */
    uint8_t computes_free;   /* for how many times more it is thought to compute without the GVL once it gives that up */
    bool says_batch;         /* by its own word, and it hasn't blocked since */
    bool overtaken;          /* in its turn, which goes on when it is admitted again */
    pthread_t pthread;       /* valid while the thread holds the GVL */
    struct hw_thread **link; /* the scheduler's list of living threads */
    uintptr_t owner;         /* the VM's thread, which may outlive it: compared, never followed */
    int native_id;           /* of its native thread; 0: not known, or no such thing here */
    enum hw_class set_class;
    uint64_t protected_ns;   /* not preempted before this time: it starved, or may unwind */
    uint64_t turn_burst_ns;  /* its burst when its turn as the admitted thread began */
    uint64_t turn_ns;        /* for how long it was admitted in this turn, not counting the current admission */
    uint64_t free_cpu_from_ns; /* its CPU time when it gave up the GVL to one that was known to go on; 0: it didn't */
    struct hw_pull pull;
    struct hw_waits waits;   /* for whom it waits: attribution.c */

    struct hw_thread *next;
    struct hw_thread *gate_next, *gate_prev;
    struct hw_thread *late_next;
    struct hw_thread *owner_next; /* of those in one place of the runtime's table */
    uint64_t quantum_ns;     /* its own; 0 = the process's */
    uint64_t fresh_burst_ns; /* the burst it was born with */
    uint64_t asked_ns;
    uint64_t job_resume;     /* hold in which the job triggered itself, from where: see yield.c */
    uintptr_t job_frame;
    uint64_t opened_ns;      /* since when the gate is open for it */
    struct hw_cpu_reading cpu_reading; /* recording */
    bool main;               /* the process's main thread: it alone runs trap handlers */
    bool seen;               /* by the walk over Thread.list */
    struct hw_ended *ended;  /* where its account goes when it ends; NULL: nowhere */

    char name[96];           /* as Ruby last told it; empty: not yet: names.c */
    uint64_t told_session;   /* with the GVL: the last recording into whose stream Ruby wrote its name and site */
    uint32_t told_name;      /* a checksum of the name it had of its own then */

    pthread_cond_t parked_cond;
    atomic_uint calls_due;   /* threads that opened the gate for it and have yet to signal it */
};

#endif
