#include "admission.h"

static void
admit(struct hw_scheduler *s, struct hw_thread *thread, uint64_t now)
{
    if (thread) hw_gate_remove(&s->gate, thread);
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

static bool
overtakes(const struct hw_scheduler *s, const struct hw_thread *thread, uint64_t now)
{
    return thread->tier < s->admitted->tier && !s->turn && !on_its_way(s, now);
}

void
hw_admission_place(struct hw_scheduler *s, struct hw_thread *thread, uint64_t now)
{
    bool contends = thread->batch && thread->state != HW_SUSPENDED && s->policy.kind == HW_FAIR;
    if (!contends) {
        hw_gate_remove(&s->gate, thread);
        if (s->admitted == thread) admit_next(s, now);
    }
    else if (s->admitted == NULL) {
        admit(s, thread, now);
    }
    else if (s->admitted != thread && overtakes(s, thread, now)) {
        struct hw_thread *overtaken = s->admitted;
        admit(s, thread, now);
        if (overtaken->state == HW_READY) hw_gate_push_front(&s->gate, overtaken);
    }
    else if (s->admitted != thread && thread->state == HW_READY) {
        hw_gate_push(&s->gate, thread, now);
    }
    else {
        hw_gate_remove(&s->gate, thread);
    }
}

static bool
admission_expired(const struct hw_scheduler *s, uint64_t now)
{
    return now >= s->admitted_ns + hw_policy_quantum_ns(&s->policy, s->admitted);
}

/* Somebody else is to be admitted instead. */
static bool
admission_over(const struct hw_scheduler *s, uint64_t now)
{
    uint8_t waiting = hw_gate_tier(&s->gate);
    if (waiting == HW_TIERS) return false;
    return admission_expired(s, now) || (s->admitted->tier > hw_policy_last_tier(s->admitted_tier, waiting) && !s->turn);
}

void
hw_admission_rotate(struct hw_scheduler *s, uint64_t now)
{
    if (admission_over(s, now)) admit_next(s, now);
}

void
hw_admission_hand_over(struct hw_scheduler *s, struct hw_thread *thread, uint64_t now)
{
    struct hw_thread *owner = s->admitted;
    if (!thread->batch || s->policy.kind != HW_FAIR || owner == NULL || owner == thread) return;
    if (owner->state != HW_READY || owner->parked || on_its_way(s, now) || !admission_expired(s, now)) return;
    admit(s, thread, now);
    hw_gate_push_front(&s->gate, owner);
}

bool
hw_scheduler_gate_open(const struct hw_scheduler *s, const struct hw_thread *thread, uint64_t now)
{
    if (s->policy.kind != HW_FAIR || !thread->batch) return true;
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
    uint64_t ran_ns = s->tier_ran_ns[thread->tier];
    uint64_t from_ns = ran_ns > thread->since_ns ? ran_ns : thread->since_ns;
    return from_ns + s->policy.starvation_ns;
}

/* No admission lasts longer than this while others wait, unless somebody keeps the GVL: in native code, or collecting garbage. On a
 * machine with far too much to do each hand-over takes a tenth of a second, and there are some before an admitted thread's turn. */
#define OVERDUE_NS (5 * HW_NS_PER_S)

bool
hw_scheduler_repair(struct hw_scheduler *s, struct hw_thread *thread, uint64_t now)
{
    struct hw_thread *admitted = s->admitted;
    bool overdue = admitted && admitted != thread && s->holder == NULL && now > s->admitted_ns + hw_policy_quantum_ns(&s->policy, admitted) +
        s->policy.starvation_ns + s->policy.protection_ns + OVERDUE_NS;
    if (!thread->at_gate || (admitted && admitted->state != HW_SUSPENDED && !overdue)) return false;
    admit_next(s, now);
    if (admitted) hw_admission_place(s, admitted, now);
    return true;
}
