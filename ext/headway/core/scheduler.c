#include "scheduler.h"

#include "admission.h"
#include "orders.h"

#include <string.h>

#define ORDERS_NONE ((struct hw_orders){ .tick_ns = HW_NEVER })

/* -- counts ------------------------------------------------------------------------------------------------------------- */

static uint8_t
counts_as(const struct hw_thread *thread)
{
    uint8_t bits = 0;
    bool ready = thread->state == HW_READY;
    if (ready) bits |= 1 << HW_IS_READY;
    if (!thread->batch) {
        if (ready) bits |= 1 << (thread->unborn ? HW_IS_NEWBORN_READY : HW_IS_INTERACTIVE_READY);
        if (ready || thread->state == HW_RUNNING) bits |= 1 << HW_IS_INTERACTIVE_ACTIVE;
    }
    return bits;
}

static void
recount(struct hw_scheduler *s, struct hw_thread *thread, uint8_t bits, uint64_t now)
{
    uint8_t changed = bits ^ thread->counts_as;
    if (changed == 0) return;
    if ((changed & bits & (1 << HW_IS_READY)) && s->counts[HW_IS_READY] == 0) s->contended_ns = now;
    if ((changed & bits & (1 << HW_IS_NEWBORN_READY)) && s->counts[HW_IS_NEWBORN_READY] == 0) s->newborn_ns = now;
    if ((changed & bits & (1 << HW_IS_INTERACTIVE_READY)) && s->counts[HW_IS_INTERACTIVE_READY] == 0) {
        s->interactive_ready_ns = now;
        s->interactive_first = thread;
    }
    if ((changed & ~bits & (1 << HW_IS_INTERACTIVE_READY)) && s->interactive_first == thread) s->interactive_first = NULL;
    for (int count = 0; count < HW_COUNTS; count++) {
        if (changed & (1 << count)) s->counts[count] += (bits & (1 << count)) ? 1u : -1u;
    }
    thread->counts_as = bits;
}

bool
hw_scheduler_is_batch(const struct hw_scheduler *s, const struct hw_thread *thread, uint64_t now)
{
    if (thread->state != HW_SUSPENDED || thread->set_class != HW_CLASS_MEASURED) return hw_policy_is_batch(&s->policy, thread, now);
    return hw_policy_burst_after_sleep_ns(thread->burst_ns, hw_elapsed_ns(thread->since_ns, now)) >= s->policy.burst_ns;
}

unsigned
hw_scheduler_batch_ready(const struct hw_scheduler *s)
{
    return s->counts[HW_IS_READY] - s->counts[HW_IS_INTERACTIVE_READY] - s->counts[HW_IS_NEWBORN_READY];
}

/* -- states ------------------------------------------------------------------------------------------------------------- */

/* Judges the class anew. */
static void
judge(struct hw_scheduler *s, struct hw_thread *thread, uint64_t now)
{
    thread->batch = hw_policy_is_batch(&s->policy, thread, now);
    thread->tier = hw_policy_tier(&s->policy, thread, now);
    recount(s, thread, counts_as(thread), now);
}

/* And puts the admission right. */
static void
settle(struct hw_scheduler *s, struct hw_thread *thread, uint64_t now)
{
    judge(s, thread, now);
    hw_admission_place(s, thread, now);
}

static void
enter(struct hw_scheduler *s, struct hw_thread *thread, enum hw_state state, uint64_t now)
{
    uint64_t spent_ns = hw_elapsed_ns(thread->since_ns, now);
    thread->account.time_ns[thread->state] += spent_ns;
    s->account.time_ns[thread->state] += spent_ns;
    if (thread->state == HW_READY && state != HW_READY) hw_attribution_wait_ends(&s->attribution, thread, now);
    if (thread->state != HW_READY && state == HW_READY) hw_attribution_wait_starts(&s->attribution, thread, now);
    thread->state = state;
    thread->since_ns = hw_later_ns(thread->since_ns, now);
}

/* The running thread turns batch with the passing of time alone: every event looks at it first. */
static void
judge_holder(struct hw_scheduler *s, uint64_t now)
{
    struct hw_thread *holder = s->holder;
    if (holder) holder->tier = hw_policy_tier(&s->policy, holder, now);
    if (holder && !holder->batch && hw_policy_is_batch(&s->policy, holder, now)) settle(s, holder, now);
}

/* The counters of a duration are seldom at hand: asked for as soon as it is known, they are counted up when all else is done. */
static void
fetch_counters(const struct hw_histogram *own, const struct hw_histogram *all, uint64_t duration_ns)
{
    hw_histogram_fetch(own, duration_ns);
    hw_histogram_fetch(all, duration_ns);
}

static void
count(struct hw_histogram *own, struct hw_histogram *all, uint64_t duration_ns)
{
    hw_histogram_record(own, duration_ns);
    hw_histogram_record(all, duration_ns);
}

/* Of what it ran in this hold, what counts: in the middle of it all may have been set to zero. */
static uint64_t
counted_ns(const struct hw_thread *thread, uint64_t ran_ns, uint64_t now)
{
    return hw_earlier_ns(ran_ns, hw_elapsed_ns(thread->since_ns, now));
}

/* What it returns is yet to be counted. */
static uint64_t
end_hold(struct hw_scheduler *s, struct hw_thread *thread, uint64_t now)
{
    uint64_t hold_ns = hw_elapsed_ns(thread->resumed_ns, now);
    fetch_counters(&thread->account.hold, &s->account.hold, hold_ns);
    uint64_t ran_ns = hw_elapsed_ns(thread->burst_from_ns, now);
    thread->burst_ns += ran_ns;
    thread->piece_ns += ran_ns;
    uint64_t batch_ns = hw_policy_ran_as_batch_ns(&s->policy, thread->burst_ns, counted_ns(thread, ran_ns, now));
    s->batch_ns += batch_ns;
    s->batch_waits_ns += batch_ns * s->counts[HW_IS_READY];
    thread->asked = false;
    /* The admitted thread alone: what others take ahead of it, new threads in their first millisecond say, is no service to it. */
    if (s->admitted == thread && hold_ns >= s->policy.granularity_ns) s->tier_ran_ns[thread->tier] = now;
    if (!thread->batch) {
        s->interactive_ns += hold_ns;
        s->interactive_ready_ns = now;
    }
    if (s->holder == thread) {
        s->holder = NULL;
        hw_attribution_hold_ends(&s->attribution, now);
    }
    return hold_ns;
}

static void
cut_hold(struct hw_scheduler *s, struct hw_thread *thread, uint64_t now)
{
    count(&thread->account.hold, &s->account.hold, end_hold(s, thread, now));
}

/* The thread runs, so whoever was thought to run doesn't: an event was missed. */
static void
take_hold(struct hw_scheduler *s, struct hw_thread *thread, uint64_t now)
{
    struct hw_thread *missed = s->holder;
    if (missed && missed != thread) {
        cut_hold(s, missed, now);
        enter(s, missed, HW_SUSPENDED, now);
        settle(s, missed, now);
    }
    if (thread->unborn) {
        thread->unborn = false;
        s->unborn--;
    }
    s->holder = thread;
    hw_attribution_hold_starts(&s->attribution, thread, now);
    thread->resumed_ns = thread->burst_from_ns = now;
    thread->resumes = ++s->resumes;
    thread->due_ns = HW_NEVER;
    atomic_store_explicit(&thread->open, false, memory_order_relaxed);
    thread->asked = false;
}

/* -- events ------------------------------------------------------------------------------------------------------------- */

/* The VM's own time slice ends a hold with SUSPENDED and READY in one breath, after one tick of its timer at least. Nothing was
 * voluntary then. (A short native call while others wait can look the same; then a statistic is off by one.) */
#define HW_VM_TICK_NS (8 * HW_NS_PER_MS)

static void
recognise_vm_slice(struct hw_scheduler *s, struct hw_thread *thread)
{
    thread->burst_ns = s->just_suspended_burst_ns;
    thread->says_batch = s->just_said_batch;
    thread->account.voluntary--;
    thread->account.preempted++;
    s->account.voluntary--;
    s->account.preempted++;
}

/* Nothing is known of the thread, or what was is void. */
static void
know_nothing(struct hw_scheduler *s, struct hw_thread *thread, enum hw_state state, uint64_t now)
{
    thread->state = state;
    thread->since_ns = thread->resumed_ns = thread->burst_from_ns = now;
    thread->burst_ns = thread->piece_ns = thread->protected_ns = thread->free_cpu_from_ns = 0;
    thread->usual_piece_ns = hw_policy_longest_piece_ns(&s->policy);
    thread->due_ns = HW_NEVER;
    thread->asked = false;
}

void
hw_scheduler_add(struct hw_scheduler *s, struct hw_thread *thread, enum hw_state state, uint64_t now)
{
    if (thread->link) return;
    thread->next = s->threads;
    thread->link = &s->threads;
    thread->number = ++s->numbers;
    if (s->threads) s->threads->link = &thread->next;
    hw_attribution_add(&s->attribution, thread, s->threads);
    s->threads = thread;
    s->living++;

    know_nothing(s, thread, state, now);
    if (thread->fresh) {
        thread->burst_ns = thread->fresh_burst_ns = hw_policy_fresh_burst_ns(&s->policy, s->unborn);
        thread->unborn = true;
        s->unborn++;
    }
    if (state == HW_READY) hw_attribution_wait_starts(&s->attribution, thread, now);
    if (state == HW_RUNNING) take_hold(s, thread, now);
    settle(s, thread, now);
}

/* After a time without events: of what was known of the thread the class set by hand and its own quantum remain. */
void
hw_scheduler_revive(struct hw_scheduler *s, struct hw_thread *thread, enum hw_state state, uint64_t now)
{
    hw_attribution_wait_void(&s->attribution, thread, now);
    know_nothing(s, thread, state, now);
    if (state == HW_RUNNING) take_hold(s, thread, now);
    else if (s->holder == thread) {
        s->holder = NULL;
        hw_attribution_hold_ends(&s->attribution, now);
    }
    if (state == HW_READY) hw_attribution_wait_starts(&s->attribution, thread, now);
    settle(s, thread, now);
}

void
hw_scheduler_remove(struct hw_scheduler *s, struct hw_thread *thread, uint64_t now, struct hw_orders *orders)
{
    *orders = ORDERS_NONE;
    if (thread->link == NULL) return;
    if (s->just_suspended == thread) s->just_suspended = NULL;
    if (thread->unborn) s->unborn--;
    if (thread->state == HW_RUNNING) cut_hold(s, thread, now);
    enter(s, thread, HW_SUSPENDED, now);
    settle(s, thread, now);
    hw_attribution_remove(&s->attribution, thread);
    *thread->link = thread->next;
    if (thread->next) thread->next->link = thread->link;
    thread->link = NULL;
    s->living--;
    hw_orders_give(s, now, orders);
}

void
hw_scheduler_ready(struct hw_scheduler *s, struct hw_thread *thread, uint64_t now, struct hw_orders *orders)
{
    *orders = ORDERS_NONE;
    hw_admission_linger_ends(s, now);
    judge_holder(s, now);
    if (thread->state == HW_RUNNING) cut_hold(s, thread, now);
    /* Nobody else ran meanwhile. For this no sleep is credited: threads that wait by Thread.pass would stay interactive for ever, and leave
     * whom they wait for, if that computes, no more than its protected share. */
    bool at_once = s->just_suspended == thread;
    bool sliced = at_once && hw_elapsed_ns(thread->resumed_ns, thread->since_ns) >= HW_VM_TICK_NS;
    s->just_suspended = NULL;
    if (sliced) {
        recognise_vm_slice(s, thread);
    }
    else if (thread->state == HW_SUSPENDED) {
        uint64_t slept_ns = at_once ? 0 : hw_elapsed_ns(thread->since_ns, now);
        thread->burst_ns = hw_policy_burst_after_sleep_ns(thread->burst_ns, slept_ns);
        hw_policy_learn_nap(thread, slept_ns < s->policy.linger_ns);
    }
    if (thread->state != HW_READY) enter(s, thread, HW_READY, now);
    judge(s, thread, now);
    if (sliced && s->just_admitted) hw_admission_take_back(s, thread, now);
    hw_admission_place(s, thread, now);
    hw_orders_give(s, now, orders);
}

uint64_t
hw_scheduler_leave_alone(struct hw_scheduler *s, struct hw_thread *thread, uint64_t now)
{
    return thread->protected_ns = hw_later_ns(thread->protected_ns, now + s->policy.alone_ns);
}

void
hw_scheduler_resumed(struct hw_scheduler *s, struct hw_thread *thread, uint64_t now, struct hw_orders *orders)
{
    *orders = ORDERS_NONE;
    if (thread->state == HW_RUNNING && s->holder == thread) return;
    hw_admission_linger_ends(s, now);
    s->just_suspended = NULL;

    bool waited = thread->state == HW_READY;
    uint64_t waited_ns = hw_elapsed_ns(thread->since_ns, now);
    if (waited) {
        fetch_counters(&thread->account.wait, &s->account.wait, waited_ns);
        uint64_t starves_ns = hw_scheduler_starves_at_ns(s, thread);
        if (now >= starves_ns) thread->protected_ns = now + (starves_ns == thread->due_ns ? s->policy.brief_ns : s->policy.protection_ns);
    }
    if (thread->called_back) hw_scheduler_leave_alone(s, thread, now);
    enter(s, thread, HW_RUNNING, now);
    take_hold(s, thread, now);

    hw_admission_hand_over(s, thread, now);
    settle(s, thread, now);
    hw_orders_give(s, now, orders);
    orders->self = orders->preempt == thread;
    if (waited) count(&thread->account.wait, &s->account.wait, waited_ns);
}

void
hw_scheduler_suspended(struct hw_scheduler *s, struct hw_thread *thread, uint64_t now, struct hw_orders *orders)
{
    *orders = ORDERS_NONE;
    hw_admission_linger_ends(s, now);
    judge_holder(s, now);
    bool held = thread->state == HW_RUNNING;
    uint64_t hold_ns = held ? end_hold(s, thread, now) : 0;

    if (thread->yielding) {
        thread->account.preempted++;
        s->account.preempted++;
        thread->due_ns = hw_policy_due_ns(&s->policy, thread, now);
        s->switches_paid_ns = hw_policy_in_debt_until_ns(s->switches_paid_ns, s->policy.switch_debt_ns, now);
        enter(s, thread, HW_READY, now);
        if (s->admitted == thread) hw_admission_rotate(s, now);
    }
    else if (thread->state != HW_SUSPENDED) {
        thread->account.voluntary++;
        s->account.voluntary++;
        thread->usual_piece_ns = hw_policy_usual_piece_ns(&s->policy, thread, thread->piece_ns);
        thread->piece_ns = 0;
        if (s->counts[HW_IS_READY] > 0) {
            s->just_suspended = thread;
            s->just_suspended_burst_ns = thread->burst_ns;
            s->just_admitted = s->admitted == thread;
            s->just_said_batch = thread->says_batch;
        }
        thread->says_batch = false;
        thread->burst_ns = hw_policy_burst_at_block_ns(&s->policy, thread->burst_ns);
        if (thread->fresh) {
            /* It blocked: the credit it lacked for being new is given to it. */
            thread->fresh = false;
            thread->burst_ns = hw_elapsed_ns(thread->fresh_burst_ns, thread->burst_ns);
        }
        enter(s, thread, HW_SUSPENDED, now);
    }
    settle(s, thread, now);
    hw_admission_linger(s, thread, now);
    hw_orders_give(s, now, orders);
    /* After a short hold it isn't worth a pull, but of who is parked: that one was on this processor before. */
    bool worth_it = thread->yielding || hw_elapsed_ns(thread->resumed_ns, now) >= s->policy.pull_ns;
    orders->next = orders->wake ? orders->wake : worth_it ? hw_scheduler_goes_next(s) : NULL;
    if (held) count(&thread->account.hold, &s->account.hold, hold_ns);
}

/* A thread whose creation failed was announced, as ready even on Ruby 3.3, and never heard of again. One that does run after all
 * is put right by its RESUMED. Under fair it is all the while in the way of others, and a thread that is alive runs long before;
 * elsewhere that takes a quantum for each thread ahead. */
#define STILLBORN_NS HW_NS_PER_S
#define STILLBORN_UNFAIR_NS (60 * HW_NS_PER_S)

static void
forget_stillborn(struct hw_scheduler *s, uint64_t now)
{
    uint64_t after_ns = s->policy.kind == HW_FAIR ? STILLBORN_NS : STILLBORN_UNFAIR_NS;
    unsigned unborn = s->unborn; /* mostly the first of the list, of perhaps thousands */
    for (struct hw_thread *thread = s->threads; thread && unborn > 0; thread = thread->next) {
        if (!thread->unborn) continue;
        unborn--;
        if (thread->state != HW_READY || hw_elapsed_ns(thread->since_ns, now) < after_ns) continue;
        thread->unborn = false;
        s->unborn--; /* or those to come would share their first time with it */
        enter(s, thread, HW_SUSPENDED, now);
        settle(s, thread, now);
    }
}

void
hw_scheduler_tick(struct hw_scheduler *s, uint64_t now, struct hw_orders *orders)
{
    *orders = ORDERS_NONE;
    if (s->unborn > 0) forget_stillborn(s, now);
    judge_holder(s, now);
    /* In native code, in a finalizer, where the VM serves no job, or as it ends. Whoever is next goes where it would be without a gate: the
     * holder may be waiting for that very thread, and pass the GVL on to who wants it. */
    if (s->admitted == s->holder && hw_orders_unanswered(s, now)) hw_admission_rotate(s, now);
    hw_orders_give(s, now, orders);
}

void
hw_scheduler_called_back(struct hw_scheduler *s, struct hw_thread *thread, uint64_t now, struct hw_orders *orders)
{
    *orders = ORDERS_NONE;
    if (thread->state != HW_READY) return;
    thread->burst_ns = hw_policy_burst_called_back_ns(&s->policy, thread->burst_ns);
    settle(s, thread, now);
    hw_orders_give(s, now, orders);
}

/* -- asked by the running thread ---------------------------------------------------------------------------------------- */

bool
hw_scheduler_must_yield(struct hw_scheduler *s, struct hw_thread *thread, uint64_t now)
{
    /* The caller runs, whatever events said. */
    if (thread->state != HW_RUNNING || s->holder != thread) {
        enter(s, thread, HW_RUNNING, now);
        take_hold(s, thread, now);
    }
    thread->asked = false;
    settle(s, thread, now);
    return !thread->ending && hw_orders_yield_at_ns(s, thread, now) <= now;
}

void
hw_scheduler_collected(struct hw_scheduler *s, struct hw_thread *thread, uint64_t spent_ns)
{
    if (s->holder != thread) return;
    thread->burst_from_ns += spent_ns;
    thread->protected_ns += spent_ns;
}

struct hw_thread *
hw_scheduler_goes_next(const struct hw_scheduler *s)
{
    return s->policy.kind == HW_FAIR ? s->interactive_first : NULL;
}

/* In the hold that goes on. */
static uint64_t
holder_batch_ns(const struct hw_scheduler *s, uint64_t now)
{
    const struct hw_thread *holder = s->holder;
    if (holder == NULL) return 0;
    uint64_t ran_ns = hw_elapsed_ns(holder->burst_from_ns, now);
    return hw_policy_ran_as_batch_ns(&s->policy, holder->burst_ns + ran_ns, counted_ns(holder, ran_ns, now));
}

uint64_t
hw_scheduler_batch_ns(const struct hw_scheduler *s, uint64_t now)
{
    return s->batch_ns + holder_batch_ns(s, now);
}

uint64_t
hw_scheduler_batch_waits_ns(const struct hw_scheduler *s, uint64_t now)
{
    return s->batch_waits_ns + holder_batch_ns(s, now) * s->counts[HW_IS_READY];
}

/* -- the holder's stack ------------------------------------------------------------------------------------------------- */

uint64_t
hw_scheduler_sample_at_ns(const struct hw_scheduler *s)
{
    if (s->holder == NULL || s->counts[HW_IS_READY] == 0) return HW_NEVER;
    return hw_later_ns(s->contended_ns, s->sampled_ns) + HW_SAMPLE_NS;
}

bool
hw_scheduler_sample_due(struct hw_scheduler *s, uint64_t now)
{
    if (now < hw_scheduler_sample_at_ns(s)) return false;
    s->sampled_ns = now;
    return true;
}

uint64_t
hw_scheduler_sample(struct hw_scheduler *s, uint64_t now)
{
    s->sampled_ns = now;
    return hw_attribution_sample(&s->attribution, now);
}

/* -- settings ----------------------------------------------------------------------------------------------------------- */

void
hw_scheduler_set_class(struct hw_scheduler *s, struct hw_thread *thread, enum hw_class set_class, uint64_t now)
{
    hw_policy_set_class(thread, set_class);
    settle(s, thread, now);
}

void
hw_scheduler_set_policy(struct hw_scheduler *s, const struct hw_policy *policy, uint64_t now)
{
    s->policy = *policy;
    for (struct hw_thread *thread = s->threads; thread; thread = thread->next) settle(s, thread, now);
}

bool
hw_scheduler_init(struct hw_scheduler *s, const struct hw_policy *policy)
{
    memset(s, 0, sizeof(*s));
    s->policy = *policy;
    hw_attribution_init(&s->attribution);
    return hw_account_init(&s->account, 3);
}

void
hw_scheduler_free(struct hw_scheduler *s)
{
    hw_account_free(&s->account);
    memset(s, 0, sizeof(*s));
}
