#include "policy.h"

const struct hw_policy hw_policy_default = {
    .kind = HW_FAIR,
    .quantum_ns = 100 * HW_NS_PER_MS,
    .burst_ns = 5 * HW_NS_PER_MS,
    .fresh_ns = 1 * HW_NS_PER_MS,
    .starvation_ns = 100 * HW_NS_PER_MS,
    .protection_ns = 5 * HW_NS_PER_MS,
    .granularity_ns = 1 * HW_NS_PER_MS,
    .switches_per_s = 4000,
};

/* Ruby doubles a slice per step of Thread#priority; so does every length here. */
static uint64_t
weighted(uint64_t length_ns, int priority)
{
    return priority >= 0 ? length_ns << priority : length_ns >> -priority;
}

uint64_t
hw_policy_quantum_ns(const struct hw_policy *policy, const struct hw_thread *thread)
{
    return weighted(thread->quantum_ns ? thread->quantum_ns : policy->quantum_ns, thread->priority);
}

uint64_t
hw_policy_burst_limit_ns(const struct hw_policy *policy, const struct hw_thread *thread)
{
    return weighted(policy->burst_ns, thread->priority);
}

uint64_t
hw_policy_burst_ns(const struct hw_thread *thread, uint64_t now)
{
    return thread->burst_ns + (thread->state == HW_RUNNING ? now - thread->resumed_ns : 0);
}

bool
hw_policy_is_batch(const struct hw_policy *policy, const struct hw_thread *thread, uint64_t now)
{
    if (thread->set_class != HW_CLASS_MEASURED) return thread->set_class == HW_CLASS_BATCH;
    return hw_policy_burst_ns(thread, now) >= hw_policy_burst_limit_ns(policy, thread);
}

uint64_t
hw_policy_burst_at_block_ns(const struct hw_policy *policy, const struct hw_thread *thread)
{
    uint64_t memory_ns = HW_BURST_MEMORY * hw_policy_burst_limit_ns(policy, thread);
    return thread->burst_ns < memory_ns ? thread->burst_ns : memory_ns;
}

uint64_t
hw_policy_burst_after_sleep_ns(uint64_t burst_ns, uint64_t slept_ns)
{
    uint64_t credit_ns = HW_SLEEP_CREDIT * slept_ns;
    return burst_ns > credit_ns ? burst_ns - credit_ns : 0;
}

static uint64_t
earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t
later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t
fair_yield_at_ns(const struct hw_policy *policy, const struct hw_thread *holder, const struct hw_rivals *rivals)
{
    if (!holder->batch) {
        if (holder->fresh && rivals->proven_ready > 0) return holder->resumed_ns + rivals->granularity_ns;
        if (holder->set_class == HW_CLASS_INTERACTIVE) return HW_NEVER;
        uint64_t limit_ns = hw_policy_burst_limit_ns(policy, holder);
        return holder->resumed_ns + (limit_ns > holder->burst_ns ? limit_ns - holder->burst_ns : 0);
    }

    uint64_t at_ns = HW_NEVER;
    if (rivals->interactive_ready > 0) at_ns = holder->resumed_ns + rivals->granularity_ns;
    if (rivals->other_admitted) at_ns = earlier(at_ns, holder->resumed_ns);
    else if (rivals->gate_waiting) at_ns = earlier(at_ns, rivals->admitted_ns + hw_policy_quantum_ns(policy, holder));
    return at_ns == HW_NEVER ? HW_NEVER : later(at_ns, holder->protected_ns);
}

uint64_t
hw_policy_yield_at_ns(const struct hw_policy *policy, const struct hw_thread *holder, const struct hw_rivals *rivals)
{
    if (rivals->ready == 0) return HW_NEVER;
    switch (policy->kind) {
      case HW_FAIR:
        return fair_yield_at_ns(policy, holder, rivals);
      case HW_QUANTUM:
        return later(holder->resumed_ns, rivals->contended_ns) + hw_policy_quantum_ns(policy, holder);
      default:
        return HW_NEVER;
    }
}

uint64_t
hw_policy_granularity_ns(const struct hw_policy *policy, uint64_t level)
{
    /* Free for a twentieth of a second's budget, then growing with what is over it: the rate settles at the budget. */
    uint64_t free_level = policy->switches_per_s / 20;
    if (free_level == 0 || level <= free_level) return 0;
    uint64_t over = level - free_level;
    return over >= free_level ? policy->granularity_ns : policy->granularity_ns * over / free_level;
}
