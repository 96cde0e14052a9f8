#include "scheduler.h"

#include <string.h>

const char *const hw_state_labels[] = {
#define EACH(name, label) [HW_##name] = label,
    HW_STATES(EACH)
#undef EACH
};

bool
hw_account_init(struct hw_account *account, int digits)
{
    memset(account, 0, sizeof(*account));
    bool wait = hw_histogram_init(&account->wait, digits);
    bool hold = hw_histogram_init(&account->hold, digits);
    return wait && hold;
}

void
hw_account_reset(struct hw_account *account)
{
    memset(account->time_ns, 0, sizeof(account->time_ns));
    account->voluntary = account->preempted = 0;
    hw_histogram_reset(&account->wait);
    hw_histogram_reset(&account->hold);
}

void
hw_account_free(struct hw_account *account)
{
    hw_histogram_free(&account->wait);
    hw_histogram_free(&account->hold);
}

void
hw_account_merge(struct hw_account *into, const struct hw_account *from)
{
    for (int state = 0; state < HW_STATE_COUNT; state++) into->time_ns[state] += from->time_ns[state];
    into->voluntary += from->voluntary;
    into->preempted += from->preempted;
    hw_histogram_merge(&into->wait, &from->wait);
    hw_histogram_merge(&into->hold, &from->hold);
}

struct hw_account
hw_account_at(const struct hw_thread *thread, uint64_t now)
{
    struct hw_account account = thread->account;
    if (now > thread->since_ns) account.time_ns[thread->state] += now - thread->since_ns;
    return account;
}
