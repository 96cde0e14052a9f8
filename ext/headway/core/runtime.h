/* The runtime: carries out what the scheduler orders, on real threads. It owns the one lock, the ticker, the parked threads and
 * the signal; it knows nothing of Ruby but a function that makes the calling context run the job.
 *
 * Locks, in order:  the VM's scheduler lock, a Ruby thread's interrupt lock  →  runtime.lock.  runtime.lock is a leaf
 * but for the recorder's alarm_lock: while it is held nothing blocks, nothing is allocated and no Ruby function is called.
 *
 * Who calls what
 *   hw_runtime_event        VM event hooks; with or without the GVL, mostly under the VM's scheduler lock; from there, too:
 *                           hw_runtime_add, hw_runtime_discard, and hw_runtime_collected from the hook of the garbage collector
 *   hw_runtime_park         the job, inside rb_nogvl, on the thread that gives way; no GVL; so hw_runtime_await_switch
 *   hw_runtime_leave_alone  the job; with the GVL; so hw_runtime_pull_next
 *   hw_runtime_configure    Ruby methods, with the GVL, and the control socket's thread, under control.lock
 *   hw_runtime_unpark       the VM's unblock function; any thread, under the parked thread's interrupt lock
 *   hw_signal_handler       on the holder; takes no lock
 *   the ticker              its own native thread, all signals blocked; Ruby doesn't know it
 *   hw_runtime_set_class    Ruby methods, with the GVL, and the collector, which may be another Ractor's; so hw_runtime_find, as from hooks
 *   everything else         Ruby methods, with the GVL
 *
 * Invariants
 *   1. pthread_kill is called under runtime.lock with a thread whose SUSPENDED or EXITED has not been seen: it lives.
 *   2. Every park is a timed wait; one that finds its gate open without having been woken is counted in park_timeouts.
 *   3. After hw_runtime_stop no thread is parked for long, the ticker is gone and the signal's disposition is restored.
 *   4. Records are never freed, only reused: a late signal to a condition variable is harmless.
 *   5. After hw_runtime_stop every thread may run where it might before the start; until then a pulled one gives itself back what it had
 *      before anything else.
 *   6. In a forked child only the forking thread has a record, the lock is free, and no ticker runs until a second thread starts. */
#ifndef HW_RUNTIME_H
#define HW_RUNTIME_H

#include "cond.h"
#include "figures.h"
#include "recorder.h"
#include "scheduler.h"

enum hw_event { HW_EVENT_READY, HW_EVENT_RESUMED, HW_EVENT_SUSPENDED, HW_EVENT_EXITED };

/* name, label */
#define HW_PREEMPTS(EACH)                                                                                                      \
    EACH(SIGNAL, "signal") /* SIGURG to the holder, whose handler triggers the job: exact, microseconds */                    \
    EACH(POLL, "poll")     /* the ticker triggers it: no signals, but now and then a tick late */

enum hw_preempt {
#define EACH(name, label) HW_##name,
    HW_PREEMPTS(EACH)
#undef EACH
    HW_PREEMPT_COUNT
};

extern const char *const hw_preempt_labels[HW_PREEMPT_COUNT];

/* name, label: pieces of work that the binding tells of once they are done */
#define HW_WORK_KINDS_OF(EACH)                                                                                                 \
    EACH(REQUEST, "request")                                                                                                   \
    EACH(JOB, "job")

enum hw_work_kind {
#define EACH(name, label) HW_##name,
    HW_WORK_KINDS_OF(EACH)
#undef EACH
    HW_WORK_KINDS
};

extern const char *const hw_work_labels[HW_WORK_KINDS];

/* What the threads of all works of a kind did meanwhile. */
struct hw_works {
    uint64_t time_ns[HW_STATE_COUNT];
    struct hw_histogram wait; /* of one, in all */
};

#define HW_OWNED_BITS 8

struct hw_runtime {
    /* With the beginning of the scheduler, what every event looks at or changes: cache_line.h. */
    _Alignas(HW_CACHE_LINE) pthread_mutex_t lock;
    uint64_t tick_ns;       /* when the scheduler wants the next tick */
    uint64_t contended_ns;  /* when an event last left somebody waiting */
    atomic_uint ready;      /* copy of counts[HW_IS_READY], for Headway.pass without the lock; 0 after a stop */
    atomic_bool active;
    atomic_bool pulls;      /* threads are pulled: pull.h */
    atomic_bool forking;    /* the lock is held for long: fork.c */
    bool ticker_called;     /* the ticker is to be woken as soon as the lock is released: hw_runtime_unlock */
    struct hw_thread *bound; /* pulled, and not parked: it waits for the GVL, and only who has that looks here */
    struct hw_scheduler scheduler;

    struct hw_recorder recorder; /* fed under the lock: feed.c */
    enum hw_preempt preempt;
    void (*trigger)(void);

    struct hw_thread *_Atomic late; /* became ready during a fork, linked by late_next */
    struct hw_thread *owned[1 << HW_OWNED_BITS]; /* records by a hash of their owner, linked by owner_next */
    struct hw_thread *spare; /* records for reuse, linked by next */
    struct hw_ended *ended;

    pthread_t ticker;
    pthread_cond_t ticker_cond;
    bool ticker_runs, ticker_must_end, poll_due;
    bool sample_due;        /* the next job looks at its thread's stack, must it give way or not */
    uint64_t watch_ns;      /* when the ticker looks for waits that last too long: feed.c */
    uint64_t ticker_wake_ns;  /* when the ticker wakes by itself */

    uint64_t spin_ns;       /* how long a parking thread spins first; 0 on one core */
    uint64_t started_ns;
    uint64_t parks, park_timeouts;
    struct hw_works works[HW_WORK_KINDS];
    atomic_ullong pulled;   /* how often */
    bool signal_lost;       /* somebody replaced our handler: preemption polls since */
#ifdef HW_TEST
    unsigned drop_wakes;    /* swallow so many wake-ups */
    bool no_ticker;         /* the system has no thread for it */
#endif
};

bool hw_runtime_init(struct hw_runtime *runtime, void (*trigger)(void));
bool hw_runtime_start(struct hw_runtime *runtime, const struct hw_policy *policy, enum hw_preempt preempt, bool pulls);
void hw_runtime_stop(struct hw_runtime *runtime);
void hw_runtime_configure(struct hw_runtime *runtime, const struct hw_policy *policy, enum hw_preempt preempt);

/* A record for a new thread, or NULL when memory is short. Allocates: not from a hook under the VM's scheduler lock. */
struct hw_thread *hw_runtime_add(struct hw_runtime *runtime, enum hw_state state, bool fresh);
void hw_runtime_set_owner(struct hw_runtime *runtime, struct hw_thread *thread, uintptr_t owner);
/* The living record with that owner, NULL: none. For the hook that may not look at the VM's thread. */
struct hw_thread *hw_runtime_find(struct hw_runtime *runtime, uintptr_t owner);
/* Before a start: a record kept from an earlier one begins anew. */
void hw_runtime_revive(struct hw_runtime *runtime, struct hw_thread *thread, enum hw_state state);
/* Discards those not marked seen (stillborn: of these only who was announced and never seen running), and unmarks the rest. */
void hw_runtime_sweep(struct hw_runtime *runtime, bool stillborn);
void hw_runtime_discard(struct hw_runtime *runtime, struct hw_thread *thread);

/* Where the account of a thread with this name goes when it ends; names beyond a bound share one. Called with the GVL. */
struct hw_ended *hw_runtime_ended(struct hw_runtime *runtime, const char *name, size_t length);

/* A request or a job is finished, of which its thread did that. */
void hw_runtime_count_work(struct hw_runtime *runtime, enum hw_work_kind kind, const uint64_t time_ns[HW_STATE_COUNT]);
/* Of all that are: no holds, no switches. */
struct hw_figures hw_runtime_works(struct hw_runtime *runtime, enum hw_work_kind kind);

/* All times, counts and histograms start at zero again. */
void hw_runtime_reset(struct hw_runtime *runtime);
void hw_runtime_reset_locked(struct hw_runtime *runtime, uint64_t now); /* lock held */

/* What the thread is called, in full. */
void hw_runtime_set_name(struct hw_runtime *runtime, struct hw_thread *thread, const char *name, size_t length);

/* The current thread ends: it is not preempted any more. */
void hw_runtime_set_ending(struct hw_runtime *runtime, struct hw_thread *thread);

/* A class set by hand: the current thread's, or, by the collector, of a thread that was in a block that was dropped. */
void hw_runtime_set_class(struct hw_runtime *runtime, struct hw_thread *thread, enum hw_class set_class);

/* The thread, which runs, spent so long on a collection. */
void hw_runtime_collected(struct hw_runtime *runtime, struct hw_thread *thread, uint64_t spent_ns);

/* The current thread may unwind: it is not preempted for a while, and asked again then. */
void hw_runtime_leave_alone(struct hw_runtime *runtime, struct hw_thread *thread);

/* The current thread, which has the GVL, is about to give it up and to park: whoever gets it is to run here then; and: it kept it. */
void hw_runtime_pull_next(struct hw_runtime *runtime, struct hw_thread *thread);
void hw_runtime_pull_nobody(struct hw_runtime *runtime);

void hw_runtime_event(struct hw_runtime *runtime, struct hw_thread *thread, enum hw_event event);

/* Waits until the gate opens for the thread or it is unparked. Where there is no gate, not at all. */
void hw_runtime_park(struct hw_runtime *runtime, struct hw_thread *thread);
/* Until another thread has got the GVL since this one gave it up, or nobody wants it; a millisecond at most. */
void hw_runtime_await_switch(struct hw_runtime *runtime, struct hw_thread *thread);
void hw_runtime_unpark(struct hw_runtime *runtime, struct hw_thread *thread);

/* Releases the lock, after hw_ticker_at, _awake_by, _watch or _poll. */
void hw_runtime_unlock(struct hw_runtime *runtime);

/* Inside the runtime; the lock is held. finish releases it and does what must be done after that. */
void hw_runtime_preempt(struct hw_runtime *runtime, const struct hw_orders *orders);
void hw_runtime_carry_out(struct hw_runtime *runtime, struct hw_orders *orders, uint64_t now);
void hw_runtime_finish(struct hw_runtime *runtime, const struct hw_orders *orders);
void hw_park_end_all(struct hw_runtime *runtime);
void hw_park_look(struct hw_runtime *runtime, struct hw_thread *thread, uint64_t now); /* its class has changed: the gate may be open */
void hw_park_call(struct hw_thread *thread); /* with the lock or without it: its gate is open */
void hw_record_retire(struct hw_runtime *runtime, struct hw_thread *thread); /* off the scheduler's list: for reuse */
void hw_record_disown(struct hw_runtime *runtime, struct hw_thread *thread); /* not to be found by its owner any more */

/* ticker.c */
void hw_ticker_ensure(struct hw_runtime *runtime); /* starts it once there are two threads; lock not held, with the GVL */
void hw_ticker_end(struct hw_runtime *runtime);
/* Its work, once, where the system had no thread for it; the lock is held. */
void hw_ticker_stand_in(struct hw_runtime *runtime);
void hw_ticker_at(struct hw_runtime *runtime, uint64_t at_ns); /* lock held */
void hw_ticker_awake_by(struct hw_runtime *runtime, uint64_t at_ns); /* lock held; it then sees for itself what is due */
void hw_ticker_watch(struct hw_runtime *runtime, uint64_t at_ns); /* lock held */
void hw_ticker_poll(struct hw_runtime *runtime);               /* lock held */

/* signal.c */
bool hw_signal_install(void (*trigger)(void));
void hw_signal_restore(void);
bool hw_signal_installed(void); /* false when somebody has replaced the handler */
int hw_signal_number(void);

/* fork.c: handlers for pthread_atfork; and from a hook during a fork: the thread is told ready when that is over */
void hw_runtime_tell_later(struct hw_runtime *runtime, struct hw_thread *thread);
void hw_runtime_before_fork(struct hw_runtime *runtime);
void hw_runtime_after_fork_parent(struct hw_runtime *runtime);
void hw_runtime_after_fork_child(struct hw_runtime *runtime);

#endif
