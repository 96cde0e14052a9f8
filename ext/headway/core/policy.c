#include "policy.h"

const struct hw_policy hw_policy_default = {
    .kind = HW_FAIR,
    .quantum_ns = 100 * HW_NS_PER_MS,
    .burst_ns = 5 * HW_NS_PER_MS,
    .fresh_ns = 1 * HW_NS_PER_MS,
    .newborn_ns = 250 * HW_NS_PER_US,
    .tier_ns = { 8 * HW_NS_PER_MS, 20 * HW_NS_PER_MS, 1 * HW_NS_PER_S },
    .turn_quanta = { 3, 3, 3, 1 },
    .patience = 4,
    .starvation_ns = 100 * HW_NS_PER_MS,
    .protection_ns = 5 * HW_NS_PER_MS,
    .starvation_pieces = 4,
    .brief_ns = 1 * HW_NS_PER_MS,
    .brief_most_ns = 8 * HW_NS_PER_MS,
    .brief_wait_ns = 2 * HW_NS_PER_MS,
    .pull_ns = 400 * HW_NS_PER_US,
    .alone_ns = 100 * HW_NS_PER_US,
    .granularity_ns = 1 * HW_NS_PER_MS,
    .linger_ns = 120 * HW_NS_PER_US,
    .switch_debt_ns = 400 * HW_NS_PER_US,
    .linger_debt = 4,
    .credit_ns = 50 * HW_NS_PER_MS,
    .free_cpu_ns = 200 * HW_NS_PER_US,
    .retry_ns = 4 * HW_NS_PER_MS,
};

const char *const hw_policy_labels[] = {
#define EACH(name, label) [HW_##name] = label,
    HW_POLICIES(EACH)
#undef EACH
};

uint64_t
hw_policy_quantum_ns(const struct hw_policy *policy, const struct hw_thread *thread)
{
    return thread->quantum_ns ? thread->quantum_ns : policy->quantum_ns;
}

/* A quantum, but no less than the starvation bound: interactive threads may take all the time until then. */
uint64_t
hw_policy_patience_ns(const struct hw_policy *policy)
{
    return policy->patience * hw_later_ns(policy->quantum_ns, policy->starvation_ns);
}

uint64_t
hw_policy_turn_ns(const struct hw_policy *policy, const struct hw_thread *admitted)
{
    return policy->turn_quanta[admitted->tier] * hw_policy_quantum_ns(policy, admitted);
}

uint64_t
hw_policy_fresh_burst_ns(const struct hw_policy *policy, unsigned unborn)
{
    uint64_t fresh_ns = policy->fresh_ns / (unborn < HW_FRESH_SHARES ? unborn + 1 : HW_FRESH_SHARES);
    return policy->burst_ns > fresh_ns ? policy->burst_ns - fresh_ns : 0;
}

uint64_t
hw_policy_burst_called_back_ns(const struct hw_policy *policy, uint64_t burst_ns)
{
    return hw_earlier_ns(burst_ns, hw_policy_fresh_burst_ns(policy, 0));
}

uint64_t
hw_policy_longest_piece_ns(const struct hw_policy *policy)
{
    return HW_LONGEST_PIECE * policy->brief_ns;
}

uint64_t
hw_policy_usual_piece_ns(const struct hw_policy *policy, const struct hw_thread *thread, uint64_t piece_ns)
{
    uint64_t counts_ns = hw_earlier_ns(piece_ns, hw_policy_longest_piece_ns(policy));
    return thread->usual_piece_ns - thread->usual_piece_ns / HW_PIECES_AVERAGED + counts_ns / HW_PIECES_AVERAGED;
}

uint64_t
hw_policy_due_ns(const struct hw_policy *policy, const struct hw_thread *thread, uint64_t now)
{
    bool blocks_often = thread->usual_piece_ns <= HW_OFTEN * policy->brief_ns;
    return blocks_often ? now + policy->starvation_pieces * thread->piece_ns : HW_NEVER;
}

uint64_t
hw_policy_burst_at_block_ns(const struct hw_policy *policy, uint64_t burst_ns)
{
    return hw_earlier_ns(burst_ns, HW_BURST_MEMORY * policy->burst_ns);
}

uint64_t
hw_policy_burst_after_sleep_ns(uint64_t burst_ns, uint64_t slept_ns)
{
    uint64_t credit_ns = HW_SLEEP_CREDIT * slept_ns;
    return burst_ns > credit_ns ? burst_ns - credit_ns : 0;
}

bool
hw_policy_expects_nap(const struct hw_thread *thread)
{
    return thread->nap_follows[thread->naps] >= 2;
}

void
hw_policy_learn_nap(struct hw_thread *thread, bool nap)
{
    uint8_t *sureness = &thread->nap_follows[thread->naps];
    if (nap && *sureness < 3) ++*sureness;
    if (!nap && *sureness > 0) --*sureness;
    thread->naps = (uint8_t)((thread->naps << 1 | nap) & (HW_NAP_PATTERNS - 1));
}

bool
hw_policy_computes_free(const struct hw_thread *thread)
{
    return thread->computes_free > 0;
}

void
hw_policy_learn_free_cpu(const struct hw_policy *policy, struct hw_thread *thread, uint64_t spent_ns)
{
    if (spent_ns >= policy->free_cpu_ns) thread->computes_free = HW_FREE_CPU_MEMORY;
    else if (thread->computes_free > 0) thread->computes_free--;
}

uint8_t
hw_policy_last_tier(uint8_t admitted, uint8_t waiting)
{
    return admitted < waiting ? waiting - 1 : waiting;
}

/* When the holder's burst will be as long as that. */
static uint64_t
reaches_at_ns(const struct hw_thread *holder, uint64_t burst_ns)
{
    return holder->burst_from_ns + (burst_ns > holder->burst_ns ? burst_ns - holder->burst_ns : 0);
}

/* When the holder will be in a higher tier than this one. */
static uint64_t
leaves_tier_at_ns(const struct hw_policy *policy, const struct hw_thread *holder, uint8_t tier)
{
    return tier < HW_TIERS - 1 ? reaches_at_ns(holder, policy->tier_ns[tier]) : HW_NEVER;
}

static uint64_t
fair_yield_at_ns(const struct hw_policy *policy, const struct hw_thread *holder, const struct hw_rivals *rivals)
{
    if (!holder->batch) {
        if (holder->set_class == HW_CLASS_INTERACTIVE) return HW_NEVER;
        return reaches_at_ns(holder, policy->burst_ns);
    }

    uint64_t at_ns = HW_NEVER, brief_left_ns = hw_policy_is_brief(policy, holder) ? policy->brief_most_ns - holder->piece_ns : 0;
    uint64_t no_longer_brief_ns = holder->burst_from_ns + brief_left_ns;
    if (rivals->interactive_ready > 0) {
        uint64_t left_alone_until_ns = hw_earlier_ns(no_longer_brief_ns, rivals->interactive_ready_ns + policy->brief_wait_ns);
        at_ns = hw_later_ns(holder->resumed_ns + rivals->granularity_ns, left_alone_until_ns);
    }
    if (rivals->newborn_ns != HW_NEVER) at_ns = hw_earlier_ns(at_ns, rivals->newborn_ns + policy->newborn_ns);
    if (rivals->other_admitted) {
        at_ns = hw_earlier_ns(at_ns, no_longer_brief_ns);
    }
    else if (rivals->waiting_tier < HW_TIERS) {
        uint64_t had_its_turn_ns = reaches_at_ns(holder, holder->turn_burst_ns + hw_policy_turn_ns(policy, holder));
        at_ns = hw_earlier_ns(at_ns, hw_earlier_ns(rivals->turn_ends_ns, had_its_turn_ns));
        uint8_t last_tier = hw_policy_last_tier(rivals->admitted_tier, rivals->waiting_tier);
        if (!rivals->turn) at_ns = hw_earlier_ns(at_ns, leaves_tier_at_ns(policy, holder, last_tier));
    }
    return at_ns == HW_NEVER ? HW_NEVER : hw_later_ns(at_ns, holder->protected_ns);
}

static uint64_t
quantum_yield_at_ns(const struct hw_policy *policy, const struct hw_thread *holder, const struct hw_rivals *rivals)
{
    uint64_t quantum_ns = hw_policy_quantum_ns(policy, holder);
    if (policy->vm_slice_ns && quantum_ns >= policy->vm_slice_ns) return HW_NEVER;
    return hw_later_ns(hw_later_ns(holder->resumed_ns, rivals->contended_ns) + quantum_ns, holder->protected_ns);
}

uint64_t
hw_policy_yield_at_ns(const struct hw_policy *policy, const struct hw_thread *holder, const struct hw_rivals *rivals)
{
    if (rivals->ready == 0) return HW_NEVER;
    switch (policy->kind) {
      case HW_FAIR:
        return fair_yield_at_ns(policy, holder, rivals);
      case HW_QUANTUM:
        return quantum_yield_at_ns(policy, holder, rivals);
      default:
        return HW_NEVER;
    }
}

uint64_t
hw_policy_slice_ns(const struct hw_policy *policy)
{
    return policy->kind == HW_OBSERVE && policy->vm_slice_ns ? policy->vm_slice_ns : policy->quantum_ns;
}

uint64_t
hw_policy_in_debt_until_ns(uint64_t until_ns, uint64_t debt_ns, uint64_t now)
{
    return hw_later_ns(until_ns, now) + debt_ns;
}

uint64_t
hw_policy_granularity_ns(const struct hw_policy *policy, uint64_t switches_debt_ns)
{
    /* Grows with what is over the credit, so that switches settle at the rate at which their debt is paid off. */
    uint64_t over_ns = switches_debt_ns > policy->credit_ns ? switches_debt_ns - policy->credit_ns : 0;
    return over_ns >= policy->credit_ns ? policy->granularity_ns : policy->granularity_ns * over_ns / policy->credit_ns;
}
