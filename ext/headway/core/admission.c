#include "admission.h"

static void
admit(struct hw_scheduler *s, struct hw_thread *thread, uint64_t now)
{
    if (thread) {
        hw_gate_remove(&s->gate, thread);
        if (!thread->overtaken) {
            thread->turn_ns = 0;
            thread->turn_burst_ns = hw_policy_burst_ns(thread, now);
        }
        thread->overtaken = false;
    }
    s->admitted = thread;
    s->admitted_ns = now;
    s->admitted_tier = thread ? thread->tier : 0;
    s->turn = false;
}

/* Whoever is next, or nobody. */
static void
admit_next(struct hw_scheduler *s, uint64_t now)
{
    struct hw_thread *next = hw_gate_pop(&s->gate, hw_policy_patience_ns(&s->policy), now);
    admit(s, next, now);
    s->turn = next && hw_gate_tier(&s->gate) < next->tier;
}

/* The admitted thread was let go from the gate, or starves: its turn is to come. */
static bool
on_its_way(const struct hw_scheduler *s, uint64_t now)
{
    return s->admitted->state == HW_READY &&
        (atomic_load_explicit(&s->admitted->open, memory_order_relaxed) || now >= hw_scheduler_starves_at_ns(s, s->admitted));
}

uint64_t
hw_admission_turn_ends_ns(const struct hw_scheduler *s)
{
    const struct hw_thread *owner = s->admitted;
    if (s->turn) return s->admitted_ns + hw_policy_quantum_ns(&s->policy, owner);
    uint64_t longest_ns = s->policy.patience * hw_policy_turn_ns(&s->policy, owner);
    return s->admitted_ns + hw_elapsed_ns(owner->turn_ns, longest_ns);
}

static bool
had_its_time(const struct hw_scheduler *s, const struct hw_thread *thread, uint64_t now)
{
    return hw_policy_burst_ns(thread, now) >= thread->turn_burst_ns + hw_policy_turn_ns(&s->policy, thread);
}

static bool
turn_over(const struct hw_scheduler *s, uint64_t now)
{
    return had_its_time(s, s->admitted, now) || now >= hw_admission_turn_ends_ns(s);
}

static void
leave(struct hw_scheduler *s, struct hw_thread *thread)
{
    hw_gate_remove(&s->gate, thread);
    thread->overtaken = false;
}

/* The admission passes to `next`, or to whoever is next. In the middle of its turn the owner stays the first of its tier, and goes on
 * when that is served; once its turn is over, or when it came up to the others of its tier just now, it goes behind them. Where nobody
 * waits in a lower tier but the owner that had its turn, who is next has one, too. */
static void
pass_on(struct hw_scheduler *s, struct hw_thread *next, uint64_t now)
{
    struct hw_thread *owner = s->admitted;
    bool climbed = owner->tier > s->admitted_tier;
    /* A turn ahead of lower tiers, for a quantum and no more, leaves what it had of its own as it was. */
    owner->overtaken = !climbed && (s->turn ? !had_its_time(s, owner, now) : !turn_over(s, now));
    owner->turn_ns += hw_elapsed_ns(s->admitted_ns, now);
    if (next) admit(s, next, now);
    else admit_next(s, now);
    bool lowest = s->admitted_tier <= hw_gate_tier(&s->gate);
    if (owner->overtaken) hw_gate_push_front(&s->gate, owner, now);
    else hw_gate_push(&s->gate, owner, now);
    if (lowest && !owner->overtaken && owner->tier < s->admitted_tier) s->turn = true;
}

/* Not ahead of others of its tier: who came before it to the gate goes before it. */
static bool
overtakes(const struct hw_scheduler *s, const struct hw_thread *thread, uint64_t now)
{
    return thread->tier < s->admitted->tier && thread->tier < hw_gate_tier(&s->gate) && !s->turn && !on_its_way(s, now);
}

void
hw_admission_place(struct hw_scheduler *s, struct hw_thread *thread, uint64_t now)
{
    bool contends = thread->batch && thread->state != HW_SUSPENDED && s->policy.kind == HW_FAIR;
    struct hw_thread *owner = s->admitted;
    if (!contends) {
        leave(s, thread);
        if (owner == thread) admit_next(s, now);
    }
    else if (owner == NULL) {
        admit(s, thread, now);
    }
    else if (owner != thread && overtakes(s, thread, now)) {
        pass_on(s, thread, now);
    }
    else if (owner != thread && thread->state == HW_READY) {
        if (thread->at_gate && thread->gate_tier != thread->tier) leave(s, thread);
        hw_gate_push(&s->gate, thread, now);
    }
}

/* Somebody else is to be admitted instead. */
static bool
admission_over(const struct hw_scheduler *s, uint64_t now)
{
    uint8_t waiting = hw_gate_tier(&s->gate);
    if (waiting == HW_TIERS) return false;
    return turn_over(s, now) || (!s->turn && s->admitted->tier > hw_policy_last_tier(s->admitted_tier, waiting));
}

void
hw_admission_rotate(struct hw_scheduler *s, uint64_t now)
{
    if (admission_over(s, now)) pass_on(s, NULL, now);
}

void
hw_admission_hand_over(struct hw_scheduler *s, struct hw_thread *thread, uint64_t now)
{
    struct hw_thread *owner = s->admitted;
    if (!thread->batch || s->policy.kind != HW_FAIR || owner == NULL || owner == thread) return;
    if (owner->state == HW_READY && !owner->parked && !on_its_way(s, now) && turn_over(s, now)) pass_on(s, thread, now);
}

void
hw_admission_take_back(struct hw_scheduler *s, struct hw_thread *thread, uint64_t now)
{
    struct hw_thread *next = s->admitted;
    if (next == thread || !thread->batch || s->policy.kind != HW_FAIR || had_its_time(s, thread, now)) return;
    thread->overtaken = true;
    admit(s, thread, now);
    if (next == NULL) return;
    next->overtaken = true;
    hw_gate_push_front(&s->gate, next, now);
}

/* Interactive threads go first anyway: what they leave is shared between batch threads and lingering, so its time alone pays. */
static uint64_t
time_left_ns(const struct hw_scheduler *s, uint64_t now)
{
    return hw_elapsed_ns(s->interactive_ns, now);
}

void
hw_admission_linger(struct hw_scheduler *s, const struct hw_thread *thread, uint64_t now)
{
    if (thread->state == HW_SUSPENDED && !thread->batch) {
        bool expected = hw_policy_expects_nap(thread);
        if (expected && hw_elapsed_ns(time_left_ns(s, now), s->lingers_paid_ns) <= s->policy.credit_ns) {
            s->linger_ns = now + s->policy.linger_ns;
            s->lingers_for = thread;
        }
        else if (s->lingers_for == thread) {
            s->linger_ns = 0;
        }
    }
    bool kept_free = now < s->linger_ns && s->counts[HW_IS_INTERACTIVE_ACTIVE] == 0;
    if (kept_free && s->admitted && s->admitted->state == HW_READY) s->lingers_from_ns = now;
}

void
hw_admission_linger_ends(struct hw_scheduler *s, uint64_t now)
{
    if (s->lingers_from_ns == 0) return;
    uint64_t lingered_ns = hw_elapsed_ns(s->lingers_from_ns, hw_earlier_ns(now, s->linger_ns));
    s->lingers_paid_ns = hw_policy_in_debt_until_ns(s->lingers_paid_ns, s->policy.linger_debt * lingered_ns, time_left_ns(s, now));
    s->lingers_from_ns = 0;
}

bool
hw_scheduler_gate_open(const struct hw_scheduler *s, const struct hw_thread *thread, uint64_t now)
{
    if (s->policy.kind != HW_FAIR || !thread->batch || hw_policy_is_brief(&s->policy, thread)) return true;
    if (s->admitted != thread) return false;
    if (s->counts[HW_IS_INTERACTIVE_ACTIVE] == 0 && now >= s->linger_ns) return true;
    return now >= hw_scheduler_starves_at_ns(s, thread);
}

uint64_t
hw_scheduler_lingers_until_ns(const struct hw_scheduler *s, const struct hw_thread *thread)
{
    return s->admitted == thread && s->counts[HW_IS_INTERACTIVE_ACTIVE] == 0 ? s->linger_ns : HW_NEVER;
}

uint64_t
hw_scheduler_starves_at_ns(const struct hw_scheduler *s, const struct hw_thread *thread)
{
    if (s->admitted != thread || thread->state != HW_READY) return HW_NEVER;
    uint64_t from_ns = hw_later_ns(s->tier_ran_ns[thread->tier], thread->since_ns);
    return hw_earlier_ns(from_ns + s->policy.starvation_ns, thread->due_ns);
}

/* No admission lasts longer than its turn and this while others wait, unless somebody keeps the GVL: in native code, or collecting
 * garbage. On a machine with far too much to do each hand-over takes a tenth of a second, and there are some before an admitted
 * thread's turn. */
#define OVERDUE_NS (5 * HW_NS_PER_S)

bool
hw_scheduler_repair(struct hw_scheduler *s, struct hw_thread *thread, uint64_t now)
{
    struct hw_thread *admitted = s->admitted;
    bool overdue = admitted && admitted != thread && s->holder == NULL &&
        now > hw_admission_turn_ends_ns(s) + s->policy.starvation_ns + s->policy.protection_ns + OVERDUE_NS;
    if (!thread->at_gate || (admitted && admitted->state != HW_SUSPENDED && !overdue)) return false;
    admit_next(s, now);
    if (admitted) hw_admission_place(s, admitted, now);
    return true;
}
