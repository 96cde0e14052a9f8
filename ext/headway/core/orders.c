#include "orders.h"

#include "admission.h"

/* -- preempt ------------------------------------------------------------------------------------------------------------ */

uint64_t
hw_orders_yield_at_ns(const struct hw_scheduler *s, const struct hw_thread *holder, uint64_t now)
{
    if (s->counts[HW_IS_READY] == 0) return HW_NEVER; /* as the policy will say: mostly it is so, and nothing need be gathered for it */
    struct hw_rivals rivals = {
        .ready = s->counts[HW_IS_READY],
        .interactive_ready = s->counts[HW_IS_INTERACTIVE_READY],
        .interactive_ready_ns = s->interactive_ready_ns,
        .newborn_ns = s->counts[HW_IS_NEWBORN_READY] > 0 ? s->newborn_ns : HW_NEVER,
        .admitted_tier = s->admitted_tier,
        .waiting_tier = hw_gate_tier(&s->gate),
        .turn = s->turn,
        .turn_ends_ns = s->admitted ? hw_admission_turn_ends_ns(s) : HW_NEVER,
        .other_admitted = s->admitted != NULL && s->admitted != holder,
        .contended_ns = s->contended_ns,
        .granularity_ns = hw_policy_granularity_ns(&s->policy, hw_elapsed_ns(now, s->switches_paid_ns)),
    };
    return hw_policy_yield_at_ns(&s->policy, holder, &rivals);
}

bool
hw_scheduler_contended(const struct hw_scheduler *s)
{
    return s->counts[HW_IS_READY] > (s->holder ? 0 : 1);
}

static void
order_preemption(struct hw_scheduler *s, uint64_t now, struct hw_orders *orders)
{
    struct hw_thread *holder = s->holder;
    if (holder == NULL) {
        /* Nobody runs as far as events tell, yet somebody waits: look again in case an event was missed. */
        if (hw_scheduler_contended(s)) orders->tick_ns = now + s->policy.retry_ns;
        return;
    }
    uint64_t at_ns = hw_orders_yield_at_ns(s, holder, now);
    if (at_ns > now) {
        /* For who is brief, and will mostly be done by then, the ticker comes in its own time. To wake it each time, or as soon as somebody
         * is late, which in a pool that is busy somebody always is, would cost more than all else. */
        bool brief = s->policy.kind == HW_FAIR && hw_policy_is_brief(&s->policy, holder);
        orders->tick_ns = brief ? hw_later_ns(at_ns, now + s->policy.retry_ns) : at_ns;
        return;
    }
    if (holder->yielding || holder->ending) {
        /* Back from the gate but still in the job, which looks for itself before it ends. Or not to be torn apart as it ends. */
        orders->tick_ns = now + s->policy.retry_ns;
        return;
    }
    if (!holder->asked || now >= holder->asked_ns + s->policy.retry_ns) {
        orders->preempt = holder;
        orders->again = holder->asked;
        if (orders->again) s->retries++;
        else s->preemptions++;
        holder->asked = true;
        holder->asked_ns = now;
    }
    orders->tick_ns = holder->asked_ns + s->policy.retry_ns;
}

/* Before who is asked and doesn't answer is passed by: as long as the VM's own time slice. */
#define UNANSWERED_NS (100 * HW_NS_PER_MS)

bool
hw_orders_unanswered(const struct hw_scheduler *s, uint64_t now)
{
    const struct hw_thread *holder = s->holder;
    if (holder == NULL) return false;
    uint64_t at_ns = hw_orders_yield_at_ns(s, holder, now);
    return at_ns != HW_NEVER && now >= at_ns + (holder->ending ? 0 : UNANSWERED_NS);
}

static void
order_wake(struct hw_scheduler *s, uint64_t now, struct hw_orders *orders)
{
    struct hw_thread *admitted = s->admitted;
    if (admitted && admitted->parked && !atomic_load_explicit(&admitted->open, memory_order_relaxed) &&
        (hw_scheduler_gate_open(s, admitted, now) || hw_scheduler_lingers_until_ns(s, admitted) != HW_NEVER)) {
        atomic_store_explicit(&admitted->open, true, memory_order_release);
        admitted->opened_ns = now;
        orders->wake = admitted;
    }
}

void
hw_orders_give(struct hw_scheduler *s, uint64_t now, struct hw_orders *orders)
{
    order_wake(s, now, orders);
    order_preemption(s, now, orders);
}
