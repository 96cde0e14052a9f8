/* The scheduler: the state of every thread of the main Ractor, driven by the VM's thread events, and what has to be done after
 * each. No lock, no system call, no Ruby: the runtime (runtime.c) holds its lock around every call and carries out the orders.
 *
 * Invariants
 *   1. A thread's state is set, never counted: any event may be missing or come twice, and the next one puts things right.
 *   2. counts[] is the sum over all threads of counts_as, at every return.
 *   3. A thread is at the gate if and only if it is batch, ready and not admitted (policy fair only); but one that the VM lets run
 *      before its turn keeps its place there.
 *   4. `admitted` is NULL or a thread that is ready or running: the admission is passed on when its owner blocks or ends.
 *   5. running + ready + suspended of a thread add up to the time since it was added.
 *   6. Each state is left at the time the next one is entered; a clock that steps back counts as no time. */
#ifndef HW_SCHEDULER_H
#define HW_SCHEDULER_H

#include "gate.h"
#include "policy.h"

/* What threads are counted as; bits of hw_thread.counts_as. */
enum hw_count { HW_IS_READY, HW_IS_INTERACTIVE_READY, HW_IS_NEWBORN_READY, HW_IS_INTERACTIVE_ACTIVE, HW_COUNTS };

struct hw_scheduler {
    /* Changed by every event: cache_line.h. */
    struct hw_thread *holder;   /* NULL: nobody, or unknown after a missed event */
    struct hw_thread *admitted;
    unsigned counts[HW_COUNTS];
    uint64_t contended_ns;
    uint64_t interactive_ready_ns; /* since when interactive threads have been ready, and none had the GVL */
    struct hw_thread *interactive_first; /* the one that has been for longest; NULL: not known */
    uint64_t resumes;           /* numbers each hold */
    struct hw_thread *just_suspended; /* by the event before this one, while others were ready: */
    uint64_t just_suspended_burst_ns; /* what its burst was, */
    bool just_admitted;         /* whether it was admitted, */
    bool just_said_batch;       /* and what says_batch was of it */
    uint64_t linger_ns;         /* until then the gate stays shut for an interactive thread that is expected right back */
    const struct hw_thread *lingers_for; /* that one; compared, never followed */
    uint64_t lingers_from_ns;   /* since when it keeps the GVL free of somebody who wants it; 0: it doesn't */
    uint64_t interactive_ns;    /* held by interactive threads so far */
    uint64_t batch_ns;          /* run so far in bursts that had passed the limit, whatever classes were set by hand */
    uint64_t batch_waits_ns;    /* the same for each thread that was ready at the end of it: what of the waits fair cuts short, at most */
    uint64_t switches_paid_ns;  /* when the debt of forced switches is paid off */
    uint64_t lingers_paid_ns;   /* and that of lingering, if interactive threads held the GVL no more */
    uint64_t admitted_ns;
    uint8_t admitted_tier;      /* its tier at that time */
    bool turn;                  /* admitted ahead of a lower tier, which had its share: not to be overtaken */
    struct hw_gate gate;
    struct hw_account account;  /* of the process */
    struct hw_attribution attribution;

    struct hw_policy policy;
    struct hw_thread *threads;  /* all living ones */
    unsigned living;
    uint32_t numbers;           /* given to threads so far */
    uint64_t tier_ran_ns[HW_TIERS]; /* when an admitted thread of the tier last ended a hold worth the name */
    unsigned unborn;            /* threads that have never run */
    uint64_t newborn_ns;        /* since when newborn threads have been ready */
    uint64_t preemptions;       /* asked for */
    uint64_t retries;           /* asked for again because nothing came of it */
    uint64_t sampled_ns;        /* when the holder was last to be looked at, or was */
};

/* What the runtime has to do after an event. */
struct hw_orders {
    struct hw_thread *preempt; /* make it run the job: it must give way */
    bool self;                 /* ... and it is the thread this event runs on */
    bool again;                /* ... and was asked before, in the same hold */
    struct hw_thread *wake;    /* parked, and the gate is open for it */
    struct hw_thread *next;    /* goes on now that the thread this event runs on stops running, as far as is known: see pull.h */
    uint64_t tick_ns;          /* call hw_scheduler_tick at this time; HW_NEVER */
};

/* Whether or not the holder must give way, its stack is looked at every so often once somebody has waited for so long. */
#define HW_SAMPLE_NS (10 * HW_NS_PER_MS)

/* Whether somebody waits for somebody else: a thread that takes a free GVL doesn't. */
bool hw_scheduler_contended(const struct hw_scheduler *scheduler);

bool hw_scheduler_init(struct hw_scheduler *scheduler, const struct hw_policy *policy);
void hw_scheduler_free(struct hw_scheduler *scheduler);
void hw_scheduler_set_policy(struct hw_scheduler *scheduler, const struct hw_policy *policy, uint64_t now);

/* `thread` is zeroed but for its runtime fields and histograms. Adding a thread that is there already does nothing. */
void hw_scheduler_add(struct hw_scheduler *scheduler, struct hw_thread *thread, enum hw_state state, uint64_t now);
void hw_scheduler_revive(struct hw_scheduler *scheduler, struct hw_thread *thread, enum hw_state state, uint64_t now);
void hw_scheduler_remove(struct hw_scheduler *scheduler, struct hw_thread *thread, uint64_t now, struct hw_orders *orders);

void hw_scheduler_ready(struct hw_scheduler *scheduler, struct hw_thread *thread, uint64_t now, struct hw_orders *orders);
void hw_scheduler_resumed(struct hw_scheduler *scheduler, struct hw_thread *thread, uint64_t now, struct hw_orders *orders);
void hw_scheduler_suspended(struct hw_scheduler *scheduler, struct hw_thread *thread, uint64_t now, struct hw_orders *orders);
void hw_scheduler_tick(struct hw_scheduler *scheduler, uint64_t now, struct hw_orders *orders);
/* The VM calls it back while it waits for its turn: it goes first now, to handle a signal or to unwind. */
void hw_scheduler_called_back(struct hw_scheduler *scheduler, struct hw_thread *thread, uint64_t now, struct hw_orders *orders);

/* What was run so far, by all threads, once they had run for burst_ns without a block: the part of running that fair can cut short. */
uint64_t hw_scheduler_batch_ns(const struct hw_scheduler *scheduler, uint64_t now);
/* What was waited for them meanwhile, at most: who came in the middle of it counts as one who waited all the time. */
uint64_t hw_scheduler_batch_waits_ns(const struct hw_scheduler *scheduler, uint64_t now);

/* Whether it is a batch thread now. Its class as last judged is as old as the last event: who sleeps has been forgiven what it ran before,
 * and who has run alone meanwhile has turned batch. */
bool hw_scheduler_is_batch(const struct hw_scheduler *scheduler, const struct hw_thread *thread, uint64_t now);

/* How many batch threads want the GVL and wait for it. */
unsigned hw_scheduler_batch_ready(const struct hw_scheduler *scheduler);

/* By hand: of any thread. */
void hw_scheduler_set_class(struct hw_scheduler *scheduler, struct hw_thread *thread, enum hw_class set_class, uint64_t now);

/* Called by the running thread itself. */
void hw_scheduler_collected(struct hw_scheduler *scheduler, struct hw_thread *thread, uint64_t spent_ns);
/* It may unwind: not preempted until the time that is returned. */
uint64_t hw_scheduler_leave_alone(struct hw_scheduler *scheduler, struct hw_thread *thread, uint64_t now);
bool hw_scheduler_must_yield(struct hw_scheduler *scheduler, struct hw_thread *thread, uint64_t now);
/* Its stack is looked at: what the waits weigh that it has caused since the last time. */
uint64_t hw_scheduler_sample(struct hw_scheduler *scheduler, uint64_t now);

/* For the ticker: when the holder is to be looked at (HW_NEVER: nobody waits for it), and whether to ask for that now, which is true once. */
uint64_t hw_scheduler_sample_at_ns(const struct hw_scheduler *scheduler);
bool hw_scheduler_sample_due(struct hw_scheduler *scheduler, uint64_t now);

/* Whether a thread that gives way may leave the gate, and when it may at the latest (HW_NEVER: when its turn comes). */
bool hw_scheduler_gate_open(const struct hw_scheduler *scheduler, const struct hw_thread *thread, uint64_t now);
/* Nobody interactive wants the GVL, and the gate is shut until this time only; HW_NEVER: it isn't so. */
uint64_t hw_scheduler_lingers_until_ns(const struct hw_scheduler *scheduler, const struct hw_thread *thread);
uint64_t hw_scheduler_starves_at_ns(const struct hw_scheduler *scheduler, const struct hw_thread *thread);

/* The interactive thread that gets the GVL when the holder gives way, if somebody interactive waits for it; or NULL. */
struct hw_thread *hw_scheduler_goes_next(const struct hw_scheduler *scheduler);

/* For a parked thread whose wait ran out: repairs what a missed event may have left wrong. True when something was. */
bool hw_scheduler_repair(struct hw_scheduler *scheduler, struct hw_thread *thread, uint64_t now);

bool hw_account_init(struct hw_account *account, int digits);
void hw_account_reset(struct hw_account *account);
void hw_account_free(struct hw_account *account);
void hw_account_merge(struct hw_account *into, const struct hw_account *from);
/* The account with the time in the current state added up to now; histograms are borrowed. */
struct hw_account hw_account_at(const struct hw_thread *thread, uint64_t now);

#endif
