/* The answers. Figures are copied out under the runtime's lock, one thread at a time, and written after: no hook waits for more than
 * a few microseconds. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "analysis.h"
#include "control.h"

#include <string.h>
#include <unistd.h>

/* -- settings and ping ---------------------------------------------------------------------------------------------------- */

static void
add_settings(struct hw_control *control, struct hw_text *answer)
{
    struct hw_runtime *rt = control->runtime;
    pthread_mutex_lock(&rt->lock);
    enum hw_policy_kind kind = rt->scheduler.policy.kind;
    enum hw_preempt preempt = rt->signal_lost ? HW_POLL : rt->preempt;
    uint64_t quantum_ns = rt->scheduler.policy.quantum_ns;
    pthread_mutex_unlock(&rt->lock);
    hw_text_key(answer, "policy");
    hw_text_cstring(answer, hw_policy_labels[kind]);
    hw_text_key(answer, "preempt");
    hw_text_cstring(answer, hw_preempt_labels[preempt]);
    hw_text_key(answer, "quantum_ms");
    hw_text_fraction(answer, quantum_ns, 6);
}

void
hw_answer_settings(struct hw_control *control, struct hw_text *answer)
{
    hw_text_add(answer, "{\"settings\":{");
    add_settings(control, answer);
    hw_text_add(answer, "}}");
}

static void
add_process(struct hw_control *control, struct hw_text *answer)
{
    struct hw_runtime *rt = control->runtime;
    pthread_mutex_lock(&rt->lock);
    uint64_t wall_ns = hw_now_ns() - rt->started_ns;
    pthread_mutex_unlock(&rt->lock);
    hw_text_key(answer, "schema");
    hw_text_number(answer, HW_CONTROL_SCHEMA);
    hw_text_key(answer, "headway");
    hw_text_cstring(answer, control->facts.headway);
    hw_text_key(answer, "ruby");
    hw_text_cstring(answer, control->facts.ruby);
    hw_text_key(answer, "pid");
    hw_text_number(answer, (uint64_t)getpid());
    hw_text_key(answer, "command");
    hw_text_cstring(answer, control->facts.command);
    hw_text_key(answer, "wall");
    hw_text_fraction(answer, wall_ns, 9);
}

void
hw_answer_ping(struct hw_control *control, struct hw_text *answer)
{
    hw_text_add(answer, "{\"ping\":{");
    add_process(control, answer);
    hw_text_add(answer, "}}");
}

/* -- statistics ----------------------------------------------------------------------------------------------------------- */

static void
add_durations(struct hw_text *answer, const char *name, const struct hw_spread *durations)
{
    hw_text_key(answer, name);
    hw_text_add(answer, "{\"count\":");
    hw_text_number(answer, durations->count);
    hw_text_add(answer, ",\"p50\":");
    hw_text_fraction(answer, durations->p50_ns, 9);
    hw_text_add(answer, ",\"p99\":");
    hw_text_fraction(answer, durations->p99_ns, 9);
    hw_text_add(answer, ",\"max\":");
    hw_text_fraction(answer, durations->max_ns, 9);
    hw_text_add(answer, "}");
}

static void
add_times(struct hw_text *answer, const struct hw_figures *figures)
{
    for (int state = HW_STATE_COUNT - 1; state >= 0; state--) {
        hw_text_key(answer, hw_state_labels[state]);
        hw_text_fraction(answer, figures->time_ns[state], 9);
    }
}

void
hw_answer_figures(struct hw_text *answer, const struct hw_figures *figures)
{
    add_times(answer, figures);
    add_durations(answer, "wait", &figures->wait);
    add_durations(answer, "hold", &figures->hold);
    hw_text_add(answer, ",\"switches\":{\"voluntary\":");
    hw_text_number(answer, figures->voluntary);
    hw_text_add(answer, ",\"preempted\":");
    hw_text_number(answer, figures->preempted);
    hw_text_add(answer, "}");
}

/* In the buckets of a report's histogram; those that nothing fell into are left out. A wait of no time counts in the first. */
static void
add_wait_histogram(struct hw_text *answer, const uint64_t *bounds_ns, const uint64_t *at_most)
{
    const char *separator = "";
    hw_text_add(answer, ",\"wait_histogram\":[");
    for (uint32_t i = 1; i <= HW_WAIT_BUCKETS; i++) {
        uint64_t count = at_most[i] - (i > 1 ? at_most[i - 1] : 0);
        if (count == 0) continue;
        hw_text_add(answer, separator);
        hw_text_add(answer, "{\"from_s\":");
        hw_text_fraction(answer, bounds_ns[i - 1], 9);
        hw_text_add(answer, ",\"to_s\":");
        hw_text_fraction(answer, bounds_ns[i], 9);
        hw_text_add(answer, ",\"count\":");
        hw_text_number(answer, count);
        hw_text_add(answer, "}");
        separator = ",";
    }
    hw_text_add(answer, "]");
}

static void
add_totals(struct hw_runtime *rt, struct hw_text *answer)
{
    struct hw_scheduler *scheduler = &rt->scheduler;
    uint64_t bounds_ns[HW_WAIT_BUCKETS + 1], at_most[HW_WAIT_BUCKETS + 1];
    for (uint32_t i = 0; i <= HW_WAIT_BUCKETS; i++) bounds_ns[i] = hw_wait_bucket_from_ns(i);
    pthread_mutex_lock(&rt->lock);
    uint64_t now = hw_now_ns();
    struct hw_figures figures = hw_figures_of_all(scheduler, now);
    uint64_t batch_ns = hw_scheduler_batch_ns(scheduler, now), batch_waits_ns = hw_scheduler_batch_waits_ns(scheduler, now);
    hw_histogram_cumulative(&scheduler->account.wait, bounds_ns, HW_WAIT_BUCKETS + 1, at_most);
    struct { const char *name; uint64_t value; } counters[] = {
        { "preemptions", scheduler->preemptions }, { "parks", rt->parks },   { "park_timeouts", rt->park_timeouts },
        { "pulls", atomic_load_explicit(&rt->pulled, memory_order_relaxed) }, { "retries", scheduler->retries },
        { "threads", scheduler->living },
    };
    pthread_mutex_unlock(&rt->lock);
    hw_text_add(answer, ",\"process\":{");
    hw_answer_figures(answer, &figures);
    hw_text_key(answer, "running_batch");
    hw_text_fraction(answer, batch_ns, 9);
    hw_text_key(answer, "ready_batch");
    hw_text_fraction(answer, batch_waits_ns, 9);
    add_wait_histogram(answer, bounds_ns, at_most);
    for (size_t i = 0; i < sizeof(counters) / sizeof(*counters); i++) {
        hw_text_key(answer, counters[i].name);
        hw_text_number(answer, counters[i].value);
    }
    hw_text_add(answer, "}");
}

static void
add_works(struct hw_runtime *rt, struct hw_text *answer)
{
    hw_text_key(answer, "work");
    hw_text_add(answer, "{");
    for (int kind = 0; kind < HW_WORK_KINDS; kind++) {
        struct hw_figures works = hw_runtime_works(rt, (enum hw_work_kind)kind);
        if (works.wait.count == 0) continue;
        hw_text_key(answer, hw_work_labels[kind]);
        hw_text_add(answer, "{");
        add_times(answer, &works);
        add_durations(answer, "wait", &works.wait);
        hw_text_add(answer, "}");
    }
    hw_text_add(answer, "}");
}

void
hw_answer_stats(struct hw_control *control, struct hw_text *answer)
{
    hw_text_add(answer, "{\"stats\":{");
    add_process(control, answer);
    add_settings(control, answer);
    hw_add_recorder(control, answer);
    add_totals(control->runtime, answer);
    add_works(control->runtime, answer);
    unsigned left_out = hw_answer_threads(control, answer);
    hw_text_key(answer, "threads_left_out");
    hw_text_number(answer, left_out);
    hw_answer_blame(control, answer);
    hw_text_add(answer, "}}");
}
