/* How many bursts are simulated in a second of one core: make bench. */
#include "simulator.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t
cpu_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (uint64_t)ts.tv_sec * HW_NS_PER_S + (uint64_t)ts.tv_nsec;
}

static void
measure(const struct hw_workload *w, enum hw_policy_kind kind, uint32_t processes, uint32_t threads, double rate)
{
    struct hw_simulation set = { .workload = w, .seed = 1, .processes = processes, .threads = threads, .cores = processes,
                                 .policy = hw_policy_default, .vm_slice_ns = 100 * HW_NS_PER_MS, .handover_ns = 5000, .requests = 400000,
                                 .warm_up = 1000, .longest_ns = HW_NEVER / 2, .rate_per_s = rate };
    struct hw_simulated out;
    set.policy.kind = kind;
    uint64_t from_ns = cpu_ns();
    if (!hw_simulate(&set, &out, NULL)) abort();
    double s = (double)(cpu_ns() - from_ns) / 1e9;
    printf("%-8s %u x %-2u %s  %5.1f million bursts/s  (%.2f s simulated in %.2f s of CPU; %.0f requests/s, p50 %.2f ms, p99 %.2f ms, forced %" PRIu64 ")\n",
           (const char *[]){ "fair", "quantum", "stock" }[kind], processes, threads, rate > 0 ? "open  " : "closed", (double)out.bursts / s / 1e6,
           (double)out.elapsed_ns / 1e9, s, (double)out.requests / ((double)out.elapsed_ns / 1e9),
           (double)hw_durations_percentile(&out.latency, 50) / 1e6, (double)hw_durations_percentile(&out.latency, 99) / 1e6, out.forced);
    hw_simulated_free(&out);
}

int
main(void)
{
    struct hw_workload w;
    hw_workload_init(&w);
    srand(1);
    uint32_t light = hw_workload_class(&w, "light", 5), heavy = hw_workload_class(&w, "heavy", 5);
    for (int i = 0; i < 2000; i++) {
        bool is_heavy = i % 100 == 0;
        hw_workload_request(&w, is_heavy ? heavy : light);
        for (int k = 0; k < 5; k++) {
            hw_workload_step(&w, HW_STEP_GVL, (is_heavy ? 20000000 : 200000) + (uint64_t)rand() % 100000, 0);
            if (k < 4) hw_workload_step(&w, HW_STEP_DELAY, 1000000 + (uint64_t)rand() % 4000000, 1);
        }
    }
    hw_workload_finish(&w);
    for (int kind = 0; kind < 3; kind++) {
        measure(&w, kind, 1, 5, 0);
        measure(&w, kind, 1, 16, 0);
        measure(&w, kind, 2, 5, 0);
        measure(&w, kind, 2, 16, 500);
    }
    hw_workload_free(&w);
    return 0;
}
