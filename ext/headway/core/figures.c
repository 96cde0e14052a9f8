#include "figures.h"

#include <string.h>

static struct hw_spread
durations_of(const struct hw_histogram *histogram)
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
        .wait = durations_of(&account->wait),
        .hold = durations_of(&account->hold),
    };
    memcpy(figures.time_ns, account->time_ns, sizeof(figures.time_ns));
    return figures;
}
