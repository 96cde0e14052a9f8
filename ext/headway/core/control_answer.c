/* The answers. Figures are copied out under the runtime's lock, one thread at a time, and written after: no hook waits for more than
 * a few microseconds. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "control.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const states[] = {
#define EACH(name, label) [HW_##name] = label,
    HW_STATES(EACH)
#undef EACH
};

static const char *const policies[] = {
#define EACH(name, label) label,
    HW_POLICIES(EACH)
#undef EACH
};

static const char *const preempts[] = {
#define EACH(name, label) label,
    HW_PREEMPTS(EACH)
#undef EACH
};

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
    hw_text_cstring(answer, policies[kind]);
    hw_text_key(answer, "preempt");
    hw_text_cstring(answer, preempts[preempt]);
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

void
hw_answer_dump(struct hw_control *control, struct hw_text *answer, bool in_vain)
{
    hw_text_clear(answer);
    if (in_vain) {
        hw_control_error(answer, control->dump == HW_DUMP_TAKEN ? "the dump is not done after 10 s; it goes on"
                                                                : "no Ruby thread could make the dump within 10 s: nothing was written");
    }
    else if (control->dump_failed) {
        hw_control_error(answer, control->dump_answer);
    }
    else {
        hw_text_add(answer, "{\"dump\":");
        hw_text_cstring(answer, control->dump_answer);
        hw_text_add(answer, "}");
    }
}

/* -- statistics ----------------------------------------------------------------------------------------------------------- */

struct durations {
    uint64_t count, p50_ns, p99_ns, max_ns;
};

struct figures {
    uint64_t time_ns[HW_STATE_COUNT], voluntary, preempted;
    struct durations wait, hold;
};

static struct durations
durations_of(const struct hw_histogram *histogram)
{
    return (struct durations){
        .count = histogram->count,
        .p50_ns = hw_histogram_percentile(histogram, 50),
        .p99_ns = hw_histogram_percentile(histogram, 99),
        .max_ns = histogram->max_ns,
    };
}

static struct figures
figures_of(const struct hw_account *account)
{
    struct figures figures = {
        .voluntary = account->voluntary,
        .preempted = account->preempted,
        .wait = durations_of(&account->wait),
        .hold = durations_of(&account->hold),
    };
    memcpy(figures.time_ns, account->time_ns, sizeof(figures.time_ns));
    return figures;
}

static void
add_durations(struct hw_text *answer, const char *name, const struct durations *durations)
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
add_figures(struct hw_text *answer, const struct figures *figures)
{
    for (int state = HW_STATE_COUNT - 1; state >= 0; state--) {
        hw_text_key(answer, states[state]);
        hw_text_fraction(answer, figures->time_ns[state], 9);
    }
    add_durations(answer, "wait", &figures->wait);
    add_durations(answer, "hold", &figures->hold);
    hw_text_add(answer, ",\"switches\":{\"voluntary\":");
    hw_text_number(answer, figures->voluntary);
    hw_text_add(answer, ",\"preempted\":");
    hw_text_number(answer, figures->preempted);
    hw_text_add(answer, "}");
}

static void
add_totals(struct hw_runtime *rt, struct hw_text *answer)
{
    struct hw_scheduler *scheduler = &rt->scheduler;
    pthread_mutex_lock(&rt->lock);
    uint64_t now = hw_now_ns();
    struct figures figures = figures_of(&scheduler->account);
    unsigned hidden = 0;
    for (struct hw_thread *thread = scheduler->threads; thread; thread = thread->next) {
        if (now > thread->since_ns) figures.time_ns[thread->state] += now - thread->since_ns;
        hidden += thread->hidden;
    }
    struct { const char *name; uint64_t value; } counters[] = {
        { "preemptions", scheduler->preemptions }, { "parks", rt->parks },   { "park_timeouts", rt->park_timeouts },
        { "retries", scheduler->retries },         { "threads", scheduler->living - hidden },
    };
    pthread_mutex_unlock(&rt->lock);
    hw_text_add(answer, ",\"process\":{");
    add_figures(answer, &figures);
    for (size_t i = 0; i < sizeof(counters) / sizeof(*counters); i++) {
        hw_text_key(answer, counters[i].name);
        hw_text_number(answer, counters[i].value);
    }
    hw_text_add(answer, "}");
}

struct listed {
    struct hw_thread *thread;
    uint64_t number;
};

/* Until Ruby has told a thread's name: the one it gave the native thread, which may be cut short. Lock held: the thread lives. */
static void
native_name(const struct hw_thread *thread, char *name, size_t capacity)
{
    name[0] = '\0';
    if (thread->main) strcpy(name, "main");
#if defined(__linux__) || defined(__APPLE__)
    else if (thread->resumes == 0 || pthread_getname_np(thread->pthread, name, capacity) != 0) name[0] = '\0';
#endif
    if (name[0] == '\0') snprintf(name, capacity, "thread %llu", (unsigned long long)thread->number);
}

/* The record may have been given to another thread since the list was made. */
static void
add_thread(struct hw_runtime *rt, struct hw_text *answer, const struct listed *listed)
{
    const struct hw_thread *thread = listed->thread;
    char name[sizeof(thread->name)];
    pthread_mutex_lock(&rt->lock);
    bool gone = thread->number != listed->number || thread->link == NULL;
    struct hw_account account = hw_account_at(thread, hw_now_ns());
    struct figures figures = gone ? (struct figures){ 0 } : figures_of(&account);
    enum hw_state state = thread->state;
    bool batch = thread->batch;
    uint64_t quantum_ns = thread->quantum_ns;
    if (gone || thread->name[0]) memcpy(name, thread->name, sizeof(name));
    else native_name(thread, name, sizeof(name));
    pthread_mutex_unlock(&rt->lock);
    if (gone) return;

    if (answer->length && answer->bytes[answer->length - 1] == '}') hw_text_add(answer, ",");
    hw_text_add(answer, "{\"id\":");
    hw_text_number(answer, listed->number);
    hw_text_key(answer, "name");
    hw_text_cstring(answer, name);
    hw_text_add(answer, ",\"alive\":true,\"count\":1,\"state\":");
    hw_text_cstring(answer, states[state]);
    hw_text_add(answer, batch ? ",\"batch\":true,\"quantum_ms\":" : ",\"batch\":false,\"quantum_ms\":");
    if (quantum_ns) hw_text_fraction(answer, quantum_ns, 6);
    else hw_text_add(answer, "null");
    add_figures(answer, &figures);
    hw_text_add(answer, "}");
}

static void
add_ended(struct hw_runtime *rt, struct hw_text *answer, const struct hw_ended *ended)
{
    pthread_mutex_lock(&rt->lock);
    struct figures figures = figures_of(&ended->account);
    uint64_t threads = ended->threads;
    pthread_mutex_unlock(&rt->lock);
    if (threads == 0) return;
    if (answer->length && answer->bytes[answer->length - 1] == '}') hw_text_add(answer, ",");
    hw_text_add(answer, "{\"id\":null,\"name\":");
    hw_text_cstring(answer, ended->name);
    hw_text_add(answer, ",\"alive\":false,\"count\":");
    hw_text_number(answer, threads);
    hw_text_add(answer, ",\"state\":null,\"batch\":null,\"quantum_ms\":null");
    add_figures(answer, &figures);
    hw_text_add(answer, "}");
}

/* The number left out. */
static unsigned
add_threads(struct hw_runtime *rt, struct hw_text *answer)
{
    struct listed *list = malloc(HW_CONTROL_ROWS * sizeof(*list));
    if (list == NULL) return 0;
    unsigned rows = 0, left_out = 0, skipped = 0;
    pthread_mutex_lock(&rt->lock);
    const struct hw_ended *ended = rt->ended;
    for (struct hw_thread *thread = rt->scheduler.threads; thread; thread = thread->next) {
        left_out += !thread->hidden;
    }
    left_out -= left_out < HW_CONTROL_ROWS ? left_out : HW_CONTROL_ROWS;
    for (struct hw_thread *thread = rt->scheduler.threads; thread; thread = thread->next) { /* the youngest first */
        if (thread->hidden || skipped++ < left_out) continue;
        list[rows++] = (struct listed){ thread, thread->number };
    }
    pthread_mutex_unlock(&rt->lock);
    hw_text_add(answer, ",\"threads\":[");
    for (unsigned i = rows; i > 0; i--) add_thread(rt, answer, &list[i - 1]); /* the oldest first, as in Thread.list */
    free(list);
    while (ended) {
        add_ended(rt, answer, ended);
        pthread_mutex_lock(&rt->lock);
        ended = ended->next;
        pthread_mutex_unlock(&rt->lock);
    }
    hw_text_add(answer, "]");
    return left_out;
}

void
hw_answer_stats(struct hw_control *control, struct hw_text *answer)
{
    hw_text_clear(answer);
    hw_text_add(answer, "{\"stats\":{");
    add_process(control, answer);
    add_settings(control, answer);
    add_totals(control->runtime, answer);
    unsigned left_out = add_threads(control->runtime, answer);
    hw_text_key(answer, "threads_left_out");
    hw_text_number(answer, left_out);
    hw_text_bytes(answer, control->aside.bytes, control->aside.length);
    hw_text_add(answer, "}}");
}
