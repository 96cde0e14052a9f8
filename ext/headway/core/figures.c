#include "figures.h"

#include <string.h>

struct hw_spread
hw_spread_of(const struct hw_histogram *histogram)
{
    return (struct hw_spread){
        .count = histogram->count,
        .p50_ns = hw_histogram_percentile(histogram, 50),
        .p99_ns = hw_histogram_percentile(histogram, 99),
        .max_ns = histogram->max_ns,
    };
}

struct hw_figures
hw_figures_of(const struct hw_account *account)
{
    struct hw_figures figures = {
        .voluntary = account->voluntary,
        .preempted = account->preempted,
        .wait = hw_spread_of(&account->wait),
        .hold = hw_spread_of(&account->hold),
    };
    memcpy(figures.time_ns, account->time_ns, sizeof(figures.time_ns));
    return figures;
}

struct hw_figures
hw_figures_of_all(const struct hw_scheduler *scheduler, uint64_t now)
{
    struct hw_figures figures = hw_figures_of(&scheduler->account);
    for (struct hw_thread *thread = scheduler->threads; thread; thread = thread->next) {
        if (now > thread->since_ns) figures.time_ns[thread->state] += now - thread->since_ns;
    }
    return figures;
}
