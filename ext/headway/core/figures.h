/* What is told of an account: small enough to be copied under the runtime's lock. */
#ifndef HW_FIGURES_H
#define HW_FIGURES_H

#include "scheduler.h"

struct hw_spread {
    uint64_t count, p50_ns, p99_ns, max_ns;
};

struct hw_figures {
    uint64_t time_ns[HW_STATE_COUNT], voluntary, preempted;
    struct hw_spread wait, hold;
};

struct hw_spread hw_spread_of(const struct hw_histogram *histogram);
struct hw_figures hw_figures_of(const struct hw_account *account);

/* Of all threads, those that have ended too, until now. Under the runtime's lock. */
struct hw_figures hw_figures_of_all(const struct hw_scheduler *scheduler, uint64_t now);

#endif
