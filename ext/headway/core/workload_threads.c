/* From a thread's states and marks to requests and tracks. Its steps are collected until the request or cycle ends, and only then
 * go to the workload: so each one's steps lie in a row. Waiting for the GVL is no step; a hold cut short by preemption or by the
 * VM's time slice goes on in the same burst. */
#include "workload_threads.h"

#include "clock.h"
#include "room.h"

#include <stdlib.h>

#define NONE HW_READING_NONE
#define THREADS_MOST 65536

/* -- threads ------------------------------------------------------------------------------------------------------------- */

struct reading_thread *
hw_reading_thread(struct reading *r, uint32_t number)
{
    if (number == 0 || number == UINT32_MAX) return NULL;
    uint64_t *place = hw_number_map_find(&r->thread_at, number);
    if (place) return &r->threads[*place];
    if (r->thread_count == THREADS_MOST) return NULL;
    bool room = hw_room(&r->threads, r->thread_count, &r->thread_capacity, THREADS_MOST, sizeof(*r->threads));
    place = room ? hw_number_map_put(&r->thread_at, number) : NULL;
    if (!place) {
        r->failed = true;
        return NULL;
    }
    *place = r->thread_count;
    struct reading_thread *thread = &r->threads[r->thread_count++];
    *thread = (struct reading_thread){ .number = number, .state = HW_SUSPENDED, .since_ns = r->now_ns, .start_ns = r->now_ns,
                                       .begun_ns = r->now_ns, .last_request = NONE, .track = NONE };
    return thread;
}

static void
collect(struct reading *r, struct reading_thread *t, enum hw_step_kind kind, uint64_t length_ns)
{
    struct collected *last = t->step_count ? &t->steps[t->step_count - 1] : NULL;
    if (last && last->kind == kind) {
        last->length_ns += length_ns;
        return;
    }
    if (!hw_room(&t->steps, t->step_count, &t->step_capacity, UINT32_MAX, sizeof(*t->steps))) {
        r->failed = true;
        return;
    }
    t->steps[t->step_count++] = (struct collected){ kind, t->load, length_ns };
}

static void
begin_collecting(struct reading *r, struct reading_thread *t)
{
    t->step_count = 0;
    t->wait_ns = 0;
    t->begun_ns = r->now_ns;
}

/* -- what goes to the workload ------------------------------------------------------------------------------------------- */

static void
put_request(struct reading *r, struct reading_thread *t, uint32_t class, uint32_t track)
{
    struct hw_workload *w = r->workload;
    if (class == NONE || hw_workload_request(w, class) == NONE) {
        r->failed = true;
        return;
    }
    struct hw_request *request = &w->requests[w->request_count - 1];
    request->track = track;
    request->latency_ns = r->now_ns - t->begun_ns;
    request->wait_ns = t->wait_ns;
    if (t->step_count == 0) collect(r, t, HW_STEP_GVL, 1);
    for (uint32_t i = 0; i < t->step_count && !r->failed; i++) {
        uint64_t length_ns = t->steps[i].length_ns ? t->steps[i].length_ns : 1;
        if (!hw_workload_step(w, t->steps[i].kind, length_ns, t->steps[i].load)) r->failed = true;
    }
}

static uint64_t
start_ns(const struct reading *r, const struct reading_thread *t)
{
    return hw_later_ns(t->start_ns, r->process->beside_ns);
}

static uint32_t
new_track(struct reading *r, struct reading_thread *t)
{
    struct hw_workload *w = r->workload;
    if (!hw_room(&w->tracks, w->track_count, &w->track_capacity, UINT32_MAX, sizeof(*w->tracks))) return NONE;
    struct hw_trace_text name = hw_reading_name(r, t);
    if (name.length == 0) name = (struct hw_trace_text){ "(thread)", 8 };
    w->tracks[w->track_count] = (struct hw_track){ .class = hw_workload_thread_class(w, name.bytes, name.length),
                                                   .process = w->process_count - 1, .start_ns = start_ns(r, t) };
    return w->track_count++;
}

/* A cycle of a thread that so far has no marks. */
static void
put_cycle(struct reading *r, struct reading_thread *t)
{
    if (t->step_count == 0) return;
    if (t->track == NONE) t->track = new_track(r, t);
    if (t->track == NONE) {
        r->failed = true;
        return;
    }
    put_request(r, t, r->workload->tracks[t->track].class, t->track);
    r->workload->tracks[t->track].requests++;
}

/* The thread does requests after all: its cycles go. */
static void
drop_track(struct reading *r, struct reading_thread *t)
{
    if (t->track != NONE) r->workload->tracks[t->track].requests = 0;
    t->track = NONE;
}

/* Between requests a thread runs, too; where it waits there it waits for work. */
static void
put_gap(struct reading *r, struct reading_thread *t)
{
    if (t->last_request == NONE) return;
    for (uint32_t i = 0; i < t->step_count; i++) {
        if (t->steps[i].kind != HW_STEP_GVL) continue;
        r->workload->requests[t->last_request].after_ns += t->steps[i].length_ns;
    }
}

/* -- states -------------------------------------------------------------------------------------------------------------- */

static void
leave_state(struct reading *r, struct reading_thread *t)
{
    uint64_t spent_ns = r->now_ns - t->since_ns;
    switch (t->state) {
      case HW_RUNNING:
        t->running_ns += spent_ns;
        t->cpu_held_ns += spent_ns;
        r->process->running_ns += spent_ns;
        collect(r, t, HW_STEP_GVL, spent_ns);
        break;
      case HW_READY:
        t->wait_ns += spent_ns;
        break;
      default:
        if (t->step_count > 0 && spent_ns > 0) collect(r, t, HW_STEP_DELAY, spent_ns);
        if (t->step_count == 0 && t->running_ns == 0) t->slept_ns += spent_ns;
        if (t->delayed) r->in_delay--;
        t->delayed = false;
    }
}

/* A cycle ends where the thread runs again after its delay. */
static bool
ends_cycle(const struct reading_thread *t, enum hw_state next)
{
    return t->depth == 0 && t->last_request == NONE && next == HW_RUNNING && t->step_count > 1;
}

void
hw_reading_enter(struct reading *r, struct reading_thread *t, enum hw_state state)
{
    if (t->exited || t->state == state) return;
    enum hw_state left = t->state;
    leave_state(r, t);
    bool cycle = ends_cycle(t, state);
    t->state = state;
    t->since_ns = r->now_ns;
    if (cycle) {
        put_cycle(r, t);
        begin_collecting(r, t);
    }
    uint32_t place = (uint32_t)(t - r->threads) + 1;
    if (left == HW_RUNNING && r->holder == place) {
        r->holder = 0;
        r->freed_ns = r->now_ns;
    }
    if (state == HW_RUNNING) {
        if (r->holder && r->holder != place) hw_reading_enter(r, &r->threads[r->holder - 1], HW_SUSPENDED);
        r->holder = place;
    }
    if (state == HW_SUSPENDED && t->depth > 0) {
        t->delayed = true;
        t->load = ++r->in_delay;
    }
}

void
hw_reading_resume(struct reading *r, struct reading_thread *t)
{
    bool waited_for_another = t->state == HW_READY && r->holder == 0 && r->freed_ns > t->since_ns;
    if (waited_for_another && !hw_workload_handover(r->workload, r->now_ns - r->freed_ns)) r->failed = true;
    hw_reading_enter(r, t, HW_RUNNING);
}

/* Says of the hold that is ending how long it was on no processor. What takes long so does for whoever waits, too: it stays a step
 * with the GVL. */
void
hw_reading_off_cpu(struct reading *r, struct reading_thread *t, uint32_t off_us)
{
    if (t->state != HW_RUNNING) return;
    leave_state(r, t);
    t->since_ns = r->now_ns;
    uint64_t off_ns = hw_earlier_ns(off_us * HW_NS_PER_US, t->cpu_held_ns);
    t->cpu_held_ns -= off_ns;
    r->process->off_cpu_ns += off_ns;
}

/* What the CPU clock has gained beyond the time with the GVL was computed without it, in the delay that is over now. Where that is
 * most of it, the thread computed all the time and for the rest had no core: no step, as waiting for the GVL is none. */
#define COMPUTED_LEAST_NS (50 * HW_NS_PER_US)
#define COMPUTED_MOST 0.5

void
hw_reading_cpu(struct reading *r, struct reading_thread *t, uint32_t cpu_us)
{
    uint64_t gained_ns = (uint64_t)(cpu_us - t->cpu_us) * HW_NS_PER_US, held_ns = t->cpu_held_ns;
    bool known = t->cpu_us != 0;
    t->cpu_us = cpu_us;
    t->cpu_held_ns = 0;
    struct collected *last = t->step_count ? &t->steps[t->step_count - 1] : NULL;
    if (!known || !last || last->kind != HW_STEP_DELAY || gained_ns < held_ns + COMPUTED_LEAST_NS) return;
    uint64_t computed_ns = gained_ns - held_ns, delay_ns = last->length_ns;
    last->kind = HW_STEP_CPU;
    if (computed_ns >= delay_ns) return;
    last->length_ns = computed_ns;
    if ((double)computed_ns < COMPUTED_MOST * (double)delay_ns) collect(r, t, HW_STEP_DELAY, delay_ns - computed_ns);
}

/* The VM's slice shows as a suspension that turns out to be none. */
void
hw_reading_preempt(struct reading *r, struct reading_thread *t)
{
    if (t->state == HW_SUSPENDED) {
        if (t->delayed) r->in_delay--;
        t->delayed = false;
        t->state = HW_READY;
        return;
    }
    hw_reading_enter(r, t, HW_READY);
}

/* -- marks --------------------------------------------------------------------------------------------------------------- */

/* What threads did before the first request is no load, and would go on without end. */
static void
leave_boot_out(struct reading *r)
{
    r->process->beside_ns = r->now_ns;
    for (uint32_t i = 0; i < r->thread_count; i++) {
        struct reading_thread *t = &r->threads[i];
        if (!t->exited) {
            leave_state(r, t);
            t->since_ns = r->now_ns;
        }
        drop_track(r, t);
        begin_collecting(r, t);
        t->running_ns = t->slept_ns = 0;
    }
}

void
hw_reading_begin_mark(struct reading *r, struct reading_thread *t, const struct hw_trace_event *event)
{
    if (t->depth++ > 0) {
        t->alike += event->value == t->outermost;
        return;
    }
    if (!r->worked) leave_boot_out(r);
    r->worked = true;
    leave_state(r, t);
    t->since_ns = r->now_ns;
    if (t->last_request == NONE) drop_track(r, t);
    put_gap(r, t);
    begin_collecting(r, t);
    t->outermost = event->value;
    t->span = event->detail;
    t->was_queued = false;
    if (++r->in_request > r->process->most_at_once) r->process->most_at_once = r->in_request;
}

static uint32_t
class_of(struct reading *r, uint32_t string)
{
    uint64_t *place = hw_number_map_find(&r->class_at, string);
    if (place) return (uint32_t)*place;
    place = hw_number_map_put(&r->class_at, string);
    if (!place) return NONE;
    struct hw_trace_text name = hw_tables_string(&r->tables, string);
    if (name.length == 0) name = (struct hw_trace_text){ "(unnamed)", 9 };
    *place = hw_workload_class(r->workload, name.bytes, name.length);
    return (uint32_t)*place;
}

/* Marks nest, also those of one name. One that ends although others inside it haven't: their ends went missing; so may have its own
 * once events were dropped, and then the next of its name is taken for it. */
static bool
ends_request(const struct reading *r, struct reading_thread *t, uint32_t string)
{
    if (t->depth == 0) return false;
    t->depth--;
    if (string != t->outermost) return t->depth == 0;
    if (t->alike == 0 || r->process->dropped > 0) return true;
    t->alike--;
    return false;
}

void
hw_reading_queued(struct reading_thread *t, uint32_t queued_us)
{
    t->was_queued = t->depth > 0;
    t->queued_ns = queued_us * HW_NS_PER_US;
}

void
hw_reading_end_mark(struct reading *r, struct reading_thread *t, uint32_t string)
{
    if (!ends_request(r, t, string)) return;
    t->depth = t->alike = 0;
    leave_state(r, t);
    t->since_ns = r->now_ns;
    r->in_request--;
    struct hw_workload_process *process = r->process;
    if (t->last_request == NONE) t->worked_ns = t->begun_ns;
    if (process->requests++ == 0 || t->begun_ns < process->first_ns) process->first_ns = t->begun_ns;
    process->jobs += t->span == HW_SPAN_JOB;
    process->last_ns = r->now_ns;
    process->busy_ns += r->now_ns - t->begun_ns;
    if (t->was_queued) {
        r->workload->queued++;
        r->workload->queued_ns += t->queued_ns;
    }
    put_request(r, t, t->outermost, NONE);
    t->last_request = r->workload->request_count - 1;
    begin_collecting(r, t);
}

/* What a request is, its thread may only know when it is over. */
void
hw_reading_name_mark(struct reading *r, struct reading_thread *t, uint32_t string)
{
    if (t->depth == 0 && t->last_request != NONE) r->workload->requests[t->last_request].class = string;
}

/* Until here a request has its name's string for a class: not every name it had need be one. */
void
hw_reading_classify(struct reading *r, uint32_t first_request)
{
    for (uint32_t i = first_request; i < r->workload->request_count && !r->failed; i++) {
        struct hw_request *request = &r->workload->requests[i];
        if (request->track != NONE) continue;
        request->class = class_of(r, request->class);
        if (request->class == NONE) r->failed = true;
    }
}

/* What the thread does is repeated from its end on: so what it slept before its first burst stands after its last. */
static void
end_last_cycle(struct reading *r, struct reading_thread *t)
{
    bool absent = !r->over || start_ns(r, t) > r->process->beside_ns;
    uint64_t slept_ns = t->slept_ns > 0 ? t->slept_ns : absent; /* absent: as long as it will be, workload_tracks.c */
    if (t->step_count > 0 && slept_ns > 0) collect(r, t, HW_STEP_DELAY, slept_ns);
    put_cycle(r, t);
}

/* The trace ends in the middle of it: it is none of the requests, but it came, and its thread was busy. */
static void
count_under_way(const struct reading *r, const struct reading_thread *t)
{
    struct hw_workload_process *process = r->process;
    if (!r->over || t->depth == 0 || t->last_request == NONE || t->begun_ns >= process->last_ns) return;
    process->under_way++;
    process->busy_ns += process->last_ns - t->begun_ns;
}

void
hw_reading_exit(struct reading *r, struct reading_thread *t)
{
    count_under_way(r, t);
    leave_state(r, t); /* a delay too, which nothing else ends any more */
    t->since_ns = r->now_ns;
    hw_reading_enter(r, t, HW_SUSPENDED);
    if (t->delayed) r->in_delay--;
    if (t->depth > 0) r->in_request--;
    if (t->depth == 0 && t->last_request == NONE) end_last_cycle(r, t);
    t->delayed = false;
    t->exited = true;
    t->end_ns = r->now_ns;
    if (t->track == NONE) return;
    struct hw_track *track = &r->workload->tracks[t->track];
    track->running_ns = t->running_ns;
    track->end_ns = r->now_ns;
    track->lived_ns = r->now_ns - start_ns(r, t);
    if (t->step_count == 0 || t->steps[t->step_count - 1].kind != HW_STEP_DELAY) return;
    track->pause = r->workload->step_count;
    track->paused = r->workload->request_count - 1;
}
