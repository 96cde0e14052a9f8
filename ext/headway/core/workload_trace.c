/* Reads trace files into a workload: event by event to workload_threads.c. */
#include "workload_threads.h"

#include "event.h"
#include "event_stream.h"
#include "trace_bytes.h"
#include "trace_format.h"

#include <stdlib.h>

/* -- events -------------------------------------------------------------------------------------------------------------- */

/* In a server a job goes on beside its requests, and is none. */
static bool
beside_requests(const struct reading *r, struct reading_thread *t, const struct hw_trace_event *event)
{
    if (!r->serves || t->depth > 0) return false;
    if (event->kind != HW_TRACE_MARK_NAME) t->last_is_job = event->detail == HW_SPAN_JOB;
    return t->last_is_job;
}

/* A part begins and ends no request, wherever it is. */
static void
mark(struct reading *r, struct reading_thread *t, const struct hw_trace_event *event)
{
    if (event->detail == HW_SPAN_PART || beside_requests(r, t, event)) return;
    switch (event->kind) {
      case HW_TRACE_MARK_BEGIN: hw_reading_begin_mark(r, t, event); break;
      case HW_TRACE_MARK_END: hw_reading_end_mark(r, t, event->value); break;
      default: hw_reading_name_mark(r, t, event->value);
    }
}

static void
thread_event(struct reading *r, struct reading_thread *t, const struct hw_trace_event *event)
{
    switch (event->kind) {
      case HW_TRACE_READY: hw_reading_enter(r, t, HW_READY); break;
      case HW_TRACE_RESUMED: hw_reading_resume(r, t); break;
      case HW_TRACE_SUSPENDED: hw_reading_enter(r, t, HW_SUSPENDED); break;
      case HW_TRACE_PREEMPTED: hw_reading_preempt(r, t); break;
      case HW_TRACE_CPU: hw_reading_cpu(r, t, event->value); break;
      case HW_TRACE_OFF_CPU: hw_reading_off_cpu(r, t, event->value); break;
      case HW_TRACE_EXITED: hw_reading_exit(r, t); break;
      case HW_TRACE_KNOWN:
        if (event->value < HW_STATE_COUNT) hw_reading_enter(r, t, (enum hw_state)event->value);
        break;
      case HW_TRACE_MARK_BEGIN: case HW_TRACE_MARK_END: case HW_TRACE_MARK_NAME: mark(r, t, event); break;
      case HW_TRACE_QUEUED: hw_reading_queued(t, event->value); break;
      default: break;
    }
}

static void
take_event(struct reading *r, const struct hw_trace_event *event)
{
    r->process->events++;
    if (!r->begun) {
        r->begun = true;
        r->now_ns = r->process->first_event_ns = r->process->beside_ns = event->time_ns;
    }
    if (event->time_ns > r->now_ns) r->now_ns = event->time_ns;
    uint32_t before = r->thread_count;
    struct reading_thread *t = hw_reading_thread(r, event->thread);
    if (!t || t->exited) return;
    /* As in analysis_states.c: who marks runs. */
    bool new = r->thread_count > before, runs = event->kind >= HW_TRACE_MARK_BEGIN && event->kind <= HW_TRACE_BLAME;
    if (new && runs) hw_reading_enter(r, t, HW_RUNNING);
    thread_event(r, t, event);
}

static void
take_settled(struct reading *r, const struct hw_event_stream *stream)
{
    for (size_t i = 0; i < stream->settled && !r->failed; i++) take_event(r, &stream->events[i]);
}

/* -- one file ------------------------------------------------------------------------------------------------------------ */

static void
take_dropped(struct hw_workload_process *process, const struct hw_trace_block_read *block)
{
    struct hw_bytes bytes = { block->payload, block->payload + block->length, false };
    uint64_t dropped = hw_take_varint(&bytes);
    if (!bytes.bad) process->dropped = dropped;
}

static bool
goes_on(const struct reading *r)
{
    return !r->failed && !atomic_load(&r->workload->cancelled);
}

static void
read_events(struct reading *r, struct hw_trace_reader *reader)
{
    struct hw_event_stream stream = { 0 };
    struct hw_trace_block_read block;
    const char *why;
    while (goes_on(r) && hw_trace_next(reader, &block)) {
        if (block.type == HW_TRACE_BLOCK_DROPPED) take_dropped(r->process, &block);
        if (block.type != HW_TRACE_BLOCK_EVENTS) continue;
        if (!hw_stream_add(&stream, &block, &why)) hw_trace_condemn(reader, &block, why);
        take_settled(r, &stream);
    }
    hw_stream_finish(&stream);
    take_settled(r, &stream);
    hw_stream_free(&stream);
    r->over = true;
    hw_reading_count_idle(r);
    for (uint32_t i = 0; i < r->thread_count && goes_on(r); i++) {
        if (!r->threads[i].exited) hw_reading_exit(r, &r->threads[i]);
    }
    if (goes_on(r)) hw_reading_count_workers(r); /* else not everybody has an end */
    if (r->begun) r->process->wall_ns = r->now_ns - r->process->first_event_ns;
}

/* Whether a request begins among them, which is part of nothing else. */
static bool
any_request(const struct hw_event_stream *stream)
{
    size_t i = 0;
    while (i < stream->settled && (stream->events[i].kind != HW_TRACE_MARK_BEGIN || stream->events[i].detail != HW_SPAN_REQUEST)) i++;
    return i < stream->settled;
}

/* What decides about others, and may come after them: a pass of its own. */
static bool
look_ahead(struct reading *r, const char *path, uint64_t longest, struct hw_trace_damage *damage)
{
    struct hw_trace_reader reader;
    struct hw_trace_block_read block;
    const char *why;
    if (!hw_trace_open(&reader, path, longest)) {
        *damage = reader.damage;
        return false;
    }
    struct hw_event_stream stream = { 0 };
    while (goes_on(r) && hw_trace_next(&reader, &block)) {
        if (block.type != HW_TRACE_BLOCK_EVENTS) {
            if (!hw_tables_add(&r->tables, &block, &why)) break;
        }
        else if (!r->serves) {
            if (!hw_stream_add(&stream, &block, &why)) break;
            r->serves = any_request(&stream);
        }
    }
    hw_stream_finish(&stream);
    r->serves |= any_request(&stream);
    hw_stream_free(&stream);
    hw_trace_close(&reader);
    return true;
}

static struct hw_workload_process *
add_process(struct hw_workload *w, const struct hw_trace_header *header)
{
    struct hw_workload_process *processes = realloc(w->processes, (w->process_count + 1) * sizeof(*processes));
    if (!processes) return NULL;
    w->processes = processes;
    struct hw_workload_process *process = &processes[w->process_count++];
    *process = (struct hw_workload_process){ .header = *header };
    return process;
}

bool
hw_workload_read(struct hw_workload *workload, const char *path, uint64_t longest, struct hw_trace_damage *damage)
{
    struct reading r = { .workload = workload };
    struct hw_trace_reader reader;
    bool opened = look_ahead(&r, path, longest, damage) && hw_trace_open(&reader, path, longest);
    if (opened) {
        r.process = add_process(workload, &reader.header);
        uint32_t first_request = workload->request_count;
        if (r.process) read_events(&r, &reader);
        hw_reading_classify(&r, first_request);
        if (r.process) r.process->damage = reader.damage;
        bool whole = r.process && goes_on(&r);
        if (!whole) *damage = (struct hw_trace_damage){ .offset = reader.offset, .what = "not enough memory to read it" };
        hw_trace_close(&reader);
        opened = whole;
    }
    for (uint32_t i = 0; i < r.thread_count; i++) free(r.threads[i].steps);
    free(r.threads);
    hw_number_map_free(&r.thread_at);
    hw_number_map_free(&r.class_at);
    hw_tables_free(&r.tables);
    return opened;
}
