/* The policy: who is batch, who must give way and when. Pure functions over plain structs with the clock passed in; they know
 * neither locks nor Ruby, and whoever simulates a schedule calls these very functions. */
#ifndef HW_POLICY_H
#define HW_POLICY_H

#include "clock.h"
#include "thread.h"

#include <stdbool.h>
#include <stdint.h>

/* name, label */
#define HW_POLICIES(EACH)                                                                                                      \
    EACH(FAIR, "fair")       /* wake-up preemption, and a gate for batch threads */                                           \
    EACH(QUANTUM, "quantum") /* time slices only, as Ruby does, but shorter ones, too */                                        \
    EACH(OBSERVE, "observe") /* hooks only */

enum hw_policy_kind {
#define EACH(name, label) HW_##name,
    HW_POLICIES(EACH)
#undef EACH
    HW_POLICY_COUNT
};

/* Among batch threads least attained service goes first, in tiers within which the first to come is the first served: a thread
 * that turned batch for a moment (a garbage collection, a big response) doesn't wait behind those that compute for ever, and
 * pieces of work of similar size are still done one after the other. */
#define HW_TIERS 4

struct hw_policy {
    enum hw_policy_kind kind;
    uint64_t quantum_ns;     /* batch against batch; Ruby's own is 100 ms */
    uint64_t vm_slice_ns;    /* the VM's own time slice, from which on `quantum` leaves it to the VM: that one heeds Thread#priority,
                                which nobody else can read while threads run; 0: unknown */
    uint64_t burst_ns;       /* run time since the last voluntary block from which a thread is batch */
    uint64_t fresh_ns;       /* run time a new thread gets before it is batch: it has proven nothing yet. Not less, though: others
                                take a thread that gave way for one that sleeps, and wait for just that after starting one. Threads
                                started together share it, down to an eighth each: the VM runs them one after the other, and whoever
                                wakes meanwhile waits for them all */
    uint64_t newborn_ns;     /* a thread that has never run waits so long before a batch thread gives way to it: the creator may go on
                                to where its child expects it, asleep as a rule, before the child looks */
    uint64_t tier_ns[HW_TIERS - 1]; /* attained service from which a batch thread is in the second tier, the third and so on */
    unsigned turn_quanta[HW_TIERS]; /* a turn of the admitted thread lasts so many quanta of its own time. Work that takes longer than a
                                turn, and work like it, is done slice by slice, all of it late: so as long a turn as a request that
                                computes may take, but for threads that compute for ever */
    unsigned patience;       /* a tier that waits is passed over for so many quanta (see hw_policy_patience_ns) at the most, and so many
                                times what a turn is to last it lasts at the most, with what others take ahead of it */
    uint64_t starvation_ns;  /* when no batch thread of its tier ran for so long the admitted one runs next, whatever waits */
    uint64_t protection_ns;  /* and for so long at least */
    unsigned starvation_pieces; /* who blocks often, but gave way, is due after so many times what it had of its piece: it is admitted before
                                lower tiers, and once it is runs next, too, for brief_ns at least. Of many that are alike one isn't put off
                                until all others are done */
    uint64_t brief_ns;       /* a thread whose pieces of work take no longer on average is brief: it is left alone, and not kept at the gate,
                                as two switches cost more than others gain by them. Threads of a pool that all do the same are batch and
                                interactive by turns */
    uint64_t brief_most_ns;  /* but for so much of a piece at the most: then it isn't like the others */
    uint64_t brief_wait_ns;  /* nor once somebody interactive is late: waited for so long, and no interactive thread ran. Brief pieces come
                                one after the other, and a long one may follow */
    uint64_t pull_ns;        /* a hold that takes so long is worth a pull of whoever comes next */
    uint64_t alone_ns;       /* who may have been called back for an exception is left alone for so long: yield.c says why */
    uint64_t granularity_ns; /* upper bound of the run time kept before a forced switch, once they are in debt */
    uint64_t linger_ns;      /* the GVL is kept free for so long when an interactive thread is expected right back; 0: never. About
                                what two forced switches take on a virtual machine */
    /* Forced switches and lingering are at the cost of batch threads, so both run into debt, which time pays off, a nanosecond each:
     * for lingering the time that interactive threads leave. */
    uint64_t switch_debt_ns; /* for a forced switch: 2,500 a second are free of granularity, about a tenth of the time */
    unsigned linger_debt;    /* for each nanosecond lingered: the GVL is kept free for a quarter of that at the most */
    uint64_t credit_ns;      /* a debt of up to this costs nothing yet */
    uint64_t free_cpu_ns;    /* who uses the processor for so long without the GVL doesn't leave it to whom it gives that up: it
                                computes there (compresses, hashes); less is the way into a block and out of it */
    uint64_t retry_ns;       /* a preemption that nothing came of is asked for again after so long; the pace of the ticker while threads
                                compete, and so the soonest that it looks at a brief holder. Below burst_ns: else whoever gets the GVL,
                                and is to give it up when its burst is that long, would have to wake the ticker for it */
};

/* A slept nanosecond takes this many off the burst, and a burst is remembered up to this many times the limit: so a CPU-bound
 * thread that naps for a microsecond stays batch, and a worker of a pool is interactive again 5 ms after a heavy request. */
#define HW_SLEEP_CREDIT 2
#define HW_FRESH_SHARES 8
#define HW_BURST_MEMORY 2
#define HW_FREE_CPU_MEMORY 16

/* Who says that it computes, with Headway.batch { }, needn't first prove it at the cost of those that have: a piece that is known to be
 * long and goes ahead for its first 20 ms is no sooner done, and the one it interrupts is later. Until it blocks: then its next piece may be
 * short, as between two queries, and to have each of them wait for all others' turns would be worse than on stock Ruby. */
#define HW_BATCH_FROM_TIER 2

/* What a piece of work takes, from one block to the next, is averaged over about so many; one counts as this many times brief_ns at the
 * most. So a long one among brief ones is soon forgotten: it says nothing of the next. */
#define HW_PIECES_AVERAGED 8
#define HW_LONGEST_PIECE 4

/* Whose pieces take up to so many times brief_ns on average blocks often. */
#define HW_OFTEN 3

extern const struct hw_policy hw_policy_default;
extern const char *const hw_policy_labels[HW_POLICY_COUNT];

/* Everything about the others that bears on the holder. */
struct hw_rivals {
    unsigned ready;             /* threads that want the GVL, at the gate or not */
    unsigned interactive_ready; /* of these: interactive, and not for the first time */
    uint64_t interactive_ready_ns; /* since when, and none had the GVL meanwhile */
    uint64_t newborn_ns;        /* since when some have waited to run for the first time; HW_NEVER: there are none */
    uint8_t admitted_tier;      /* the holder's when it was admitted */
    uint8_t waiting_tier;       /* the lowest with batch threads that wait to be admitted; HW_TIERS: none */
    bool turn;                  /* the holder was admitted ahead of lower tiers: they wait till its turn is over */
    uint64_t turn_ends_ns;      /* its turn is over then, however little of it the holder had */
    bool other_admitted;        /* the admission is another thread's */
    uint64_t contended_ns;      /* when somebody first wanted the GVL after nobody did */
    uint64_t granularity_ns;    /* in force now */
};

uint64_t hw_policy_quantum_ns(const struct hw_policy *policy, const struct hw_thread *thread);
uint64_t hw_policy_patience_ns(const struct hw_policy *policy);

/* A turn of the admitted thread: its own time counts, not what others take ahead of it; but with theirs it lasts no longer than
 * `patience` times that, and ahead of lower tiers no longer than a quantum (hw_admission_turn_ends_ns). */
uint64_t hw_policy_turn_ns(const struct hw_policy *policy, const struct hw_thread *admitted);

/* What counts as burst of a new thread from the start, when so many others have yet to run. */
uint64_t hw_policy_fresh_burst_ns(const struct hw_policy *policy, unsigned unborn);

/* The burst of a thread that is called back from where it waits for its turn, for a signal or an exception. */
uint64_t hw_policy_burst_called_back_ns(const struct hw_policy *policy, uint64_t burst_ns);

/* The burst of a thread that blocks, and of one that was blocked for `slept_ns`. */
uint64_t hw_policy_burst_at_block_ns(const struct hw_policy *policy, uint64_t burst_ns);
uint64_t hw_policy_burst_after_sleep_ns(uint64_t burst_ns, uint64_t slept_ns);

/* Many blocks last microseconds (a connect on the same host, a name lookup): to hand the GVL to a batch thread and take it back
 * would cost both more than it brings. Blocks come in patterns, request after request, so the next one's length is predicted as
 * processors predict branches: by what followed the last few the time before. */
bool hw_policy_expects_nap(const struct hw_thread *thread);
void hw_policy_learn_nap(struct hw_thread *thread, bool nap);

/* Whether a thread that gives up the GVL may go on computing without it: it did one of the last times. These are many, as an event loop
 * that compresses also looks for events. To take one that does for one that blocks costs more than the other way round. */
bool hw_policy_computes_free(const struct hw_thread *thread);
void hw_policy_learn_free_cpu(const struct hw_policy *policy, struct hw_thread *thread, uint64_t spent_ns);

/* What a new thread's pieces of work are taken to be: it has proven nothing yet. */
uint64_t hw_policy_longest_piece_ns(const struct hw_policy *policy);

/* What its pieces of work take, after one of that length. */
uint64_t hw_policy_usual_piece_ns(const struct hw_policy *policy, const struct hw_thread *thread, uint64_t piece_ns);

/* From when on a thread that gives way now goes before lower tiers; HW_NEVER: it doesn't. At once, who is but sent from the VM's queue to
 * the gate as another is admitted: among threads that are alike whoever comes first is served first. */
uint64_t hw_policy_due_ns(const struct hw_policy *policy, const struct hw_thread *thread, uint64_t now);

/* The last tier to which the admitted thread may climb while batch threads of the tier `waiting` wait: who was admitted ahead of them
 * goes behind them as soon as it has had as much. */
uint8_t hw_policy_last_tier(uint8_t admitted, uint8_t waiting);

/* When the holder must give way, or be judged again because it turns batch: HW_NEVER, or a time that may have passed. */
uint64_t hw_policy_yield_at_ns(const struct hw_policy *policy, const struct hw_thread *holder, const struct hw_rivals *rivals);

/* A time slice as it is in force: of a policy that schedules nothing the VM's own. */
uint64_t hw_policy_slice_ns(const struct hw_policy *policy);

/* Until when there is a debt, once one is added to it. */
uint64_t hw_policy_in_debt_until_ns(uint64_t until_ns, uint64_t debt_ns, uint64_t now);

/* The granularity while the debt of forced switches is that. */
uint64_t hw_policy_granularity_ns(const struct hw_policy *policy, uint64_t switches_debt_ns);

/* -- asked at every event ----------------------------------------------------------------------------------------------- */

static inline uint64_t
hw_policy_burst_ns(const struct hw_thread *thread, uint64_t now)
{
    return thread->burst_ns + (thread->state == HW_RUNNING && now > thread->burst_from_ns ? now - thread->burst_from_ns : 0);
}

static inline void
hw_policy_set_class(struct hw_thread *thread, enum hw_class set_class)
{
    thread->set_class = set_class;
    thread->says_batch = set_class == HW_CLASS_BATCH;
}

static inline bool
hw_policy_is_batch(const struct hw_policy *policy, const struct hw_thread *thread, uint64_t now)
{
    if (thread->set_class != HW_CLASS_MEASURED) return thread->set_class == HW_CLASS_BATCH;
    return hw_policy_burst_ns(thread, now) >= policy->burst_ns;
}

/* Of what a thread ran last, up to a burst of that length, what it ran beyond the limit. */
static inline uint64_t
hw_policy_ran_as_batch_ns(const struct hw_policy *policy, uint64_t burst_ns, uint64_t ran_ns)
{
    return burst_ns > policy->burst_ns ? hw_earlier_ns(ran_ns, burst_ns - policy->burst_ns) : 0;
}

static inline bool
hw_policy_is_brief(const struct hw_policy *policy, const struct hw_thread *thread)
{
    return thread->usual_piece_ns <= policy->brief_ns && thread->piece_ns < policy->brief_most_ns;
}

static inline uint8_t
hw_policy_tier(const struct hw_policy *policy, const struct hw_thread *thread, uint64_t now)
{
    uint64_t attained_ns = hw_policy_burst_ns(thread, now);
    uint8_t tier = thread->says_batch ? HW_BATCH_FROM_TIER : 0;
    while (tier < HW_TIERS - 1 && attained_ns >= policy->tier_ns[tier]) tier++;
    return tier;
}

#endif
