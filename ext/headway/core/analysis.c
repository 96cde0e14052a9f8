/* See analysis.h. */
#include "analysis.h"

#include "analysis_pass.h"
#include "event_stream.h"
#include "room.h"
#include "trace_bytes.h"
#include "trace_format.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void
hw_analysis_init(struct hw_analysis *analysis, bool lanes)
{
    memset(analysis, 0, sizeof(*analysis));
    analysis->lanes = lanes;
}

void
hw_analysis_free(struct hw_analysis *analysis)
{
    for (uint32_t i = 0; i < analysis->thread_count; i++) {
        struct hw_analysed_thread *thread = &analysis->threads[i];
        hw_durations_free(&thread->wait);
        hw_durations_free(&thread->hold);
        hw_number_map_free(&thread->caused);
        hw_number_map_free(&thread->caused_at_boot);
        hw_number_map_free(&thread->blamed);
        hw_number_map_free(&thread->blocked);
        hw_lane_free(&thread->lane);
    }
    for (uint32_t i = 0; i < analysis->process_count; i++) {
        hw_tables_free(&analysis->processes[i].tables);
        hw_number_map_free(&analysis->processes[i].idle_caused);
        hw_number_map_free(&analysis->processes[i].idle_at_boot);
        hw_lane_free(&analysis->processes[i].gc_lane);
    }
    hw_durations_free(&analysis->wait);
    hw_durations_free(&analysis->hold);
    free(analysis->threads);
    free(analysis->processes);
    free(analysis->marks);
    for (uint32_t i = 0; i < analysis->work_count; i++) {
        hw_number_map_free(&analysis->works[i].blocked);
        hw_number_map_free(&analysis->works[i].blamed);
    }
    free(analysis->works);
    free(analysis->blames);
    hw_analysis_init(analysis, analysis->lanes);
}

bool
hw_pass_room(struct hw_pass *pass, void *array, uint32_t count, uint32_t *capacity, uint32_t most, size_t size)
{
    if (hw_room(array, count, capacity, most, size)) return true;
    if (count < most) pass->failed = true;
    return false;
}

uint64_t
hw_wait_bucket_from_ns(uint32_t bucket)
{
    static const uint64_t tenths[] = { 10, 15, 20, 30, 50, 70 };
    static const uint64_t decades[] = {
        UINT64_C(10), UINT64_C(100), UINT64_C(1000), UINT64_C(10000), UINT64_C(100000), UINT64_C(1000000), UINT64_C(10000000),
        UINT64_C(100000000), UINT64_C(1000000000), UINT64_C(10000000000), UINT64_C(100000000000), UINT64_C(1000000000000),
        UINT64_C(10000000000000), UINT64_C(100000000000000), UINT64_C(1000000000000000), UINT64_C(10000000000000000),
        UINT64_C(100000000000000000)
    };
    if (bucket == 0) return 0;
    if (bucket >= HW_WAIT_BUCKETS) return UINT64_MAX;
    return decades[(bucket - 1) / 6] * tenths[(bucket - 1) % 6];
}

/* -- one file ------------------------------------------------------------------------------------------------------------ */

static void
take_dropped(struct hw_analysed_process *process, const struct hw_trace_block_read *block)
{
    struct hw_bytes bytes = { block->payload, block->payload + block->length, false };
    uint64_t dropped = hw_take_varint(&bytes), folded = hw_take_varint(&bytes);
    if (bytes.bad) return;
    process->dropped = dropped;
    process->folded = folded;
}

static void
take_quota(struct hw_analysed_process *process, const struct hw_trace_block_read *block)
{
    struct hw_bytes bytes = { block->payload, block->payload + block->length, false };
    uint64_t periods = hw_take_varint(&bytes), exhausted = hw_take_varint(&bytes);
    if (!bytes.bad) process->quota = (struct hw_quota){ periods, exhausted };
}

static void
pass_settled(struct hw_pass *pass, const struct hw_event_stream *stream)
{
    for (size_t i = 0; i < stream->settled; i++) {
        /* Where tens of thousands of threads wait, a block of events takes many seconds. */
        if (i % 256 == 0 && atomic_load(&pass->analysis->cancelled)) return;
        hw_pass_event(pass, &stream->events[i]);
    }
}

static void
pass_blocks(struct hw_pass *pass, struct hw_trace_reader *reader, struct hw_event_stream *stream)
{
    struct hw_trace_block_read block;
    const char *why;
    while (!pass->failed && !atomic_load(&pass->analysis->cancelled) && hw_trace_next(reader, &block)) {
        bool sound = true;
        if (block.type == HW_TRACE_BLOCK_EVENTS) {
            sound = hw_stream_add(stream, &block, &why);
            pass_settled(pass, stream);
        } else if (block.type == HW_TRACE_BLOCK_DROPPED) {
            take_dropped(pass->process, &block);
        } else if (block.type == HW_TRACE_BLOCK_QUOTA) {
            take_quota(pass->process, &block);
        } else {
            sound = hw_tables_add(&pass->process->tables, &block, &why);
        }
        if (!sound) hw_trace_condemn(reader, &block, why);
    }
    hw_stream_finish(stream);
    pass_settled(pass, stream);
}

static struct hw_analysed_process *
add_process(struct hw_analysis *analysis, const struct hw_trace_header *header)
{
    struct hw_analysed_process *processes =
        realloc(analysis->processes, (analysis->process_count + 1) * sizeof(*analysis->processes));
    if (!processes) return NULL;
    analysis->processes = processes;
    struct hw_analysed_process *process = &processes[analysis->process_count++];
    memset(process, 0, sizeof(*process));
    process->header = *header;
    process->start_ns = process->end_ns = header->clock_ns;
    return process;
}

/* False: no memory, or cancelled. */
static bool
pass_file(struct hw_analysis *analysis, struct hw_trace_reader *reader)
{
    struct hw_pass pass = { .analysis = analysis, .process = add_process(analysis, &reader->header), .holder = HW_NOBODY,
                            .blamed_before_ns = analysis->blame_ns, .samples_before = analysis->blame_samples };
    if (!pass.process) return false;
    struct hw_event_stream stream = { 0 };
    pass.now_ns = pass.process->start_ns;
    pass_blocks(&pass, reader, &stream);
    hw_pass_finish(&pass);
    pass.process->damage = reader->damage;
    hw_stream_free(&stream);
    hw_number_map_free(&pass.thread_at);
    hw_number_map_free(&pass.work_at);
    free(pass.ready);
    return !pass.failed && !atomic_load(&analysis->cancelled);
}

bool
hw_analysis_add(struct hw_analysis *analysis, const char *path, uint64_t longest, struct hw_trace_damage *damage)
{
    struct hw_trace_reader reader;
    if (!hw_trace_open(&reader, path, longest)) {
        *damage = reader.damage;
        return false;
    }
    bool passed = pass_file(analysis, &reader);
    if (!passed) *damage = (struct hw_trace_damage){ .offset = reader.offset, .what = "not enough memory to read it" };
    hw_trace_close(&reader);
    return passed;
}
