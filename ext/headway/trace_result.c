/* What an analysis found, as Ruby objects. Numbers stay integers in nanoseconds; lib/headway/trace/ makes seconds of them. */
#include "trace.h"

VALUE
hw_trace_text(struct hw_trace_text text)
{
    return hw_text(text.length ? text.bytes : "", text.length);
}

VALUE
hw_trace_frame(const struct hw_tables *tables, uint32_t id)
{
    static const struct hw_trace_frame missing = { 0, 0, 0 };
    const struct hw_trace_frame *frame = hw_tables_frame(tables, id);
    if (!frame) frame = &missing;
    struct hw_trace_text method = hw_tables_string(tables, frame->method_string);
    return rb_ary_new_from_args(3, method.length ? hw_trace_text(method) : hw_cstr("(unknown)"),
                                hw_trace_text(hw_tables_string(tables, frame->file_string)), UINT2NUM(frame->line));
}

VALUE
hw_trace_durations(const struct hw_durations *durations, const double *percentiles, int count)
{
    VALUE values = rb_ary_new_from_args(2, ULL2NUM(durations->count), ULL2NUM(durations->total_ns));
    for (int i = 0; i < count; i++) rb_ary_push(values, ULL2NUM(hw_durations_percentile(durations, percentiles[i])));
    return values;
}

/* [count, total, p50, p90, p99, p99.9, max] */
static VALUE
durations(const struct hw_durations *durations)
{
    static const double percentiles[] = { 50, 90, 99, 99.9 };
    return rb_ary_push(hw_trace_durations(durations, percentiles, 4), ULL2NUM(durations->max_ns));
}

/* [first boundary in ns of the process's clock, segments, bytes] */
static VALUE
lane_of(const struct hw_lane *lane, const struct hw_analysed_process *process, uint64_t start_ns)
{
    if (lane->segments) start_ns = process->lane_origin_ns + lane->start_unit * HW_LANE_UNIT_NS;
    return rb_ary_new_from_args(3, ULL2NUM(start_ns), ULL2NUM(lane->segments),
                                rb_str_new((const char *)lane->bytes, (long)lane->length));
}

/* -- processes ----------------------------------------------------------------------------------------------------------- */

static void
set_header(VALUE hash, const struct hw_trace_header *header)
{
    hw_set(hash, "pid", UINT2NUM(header->pid));
    hw_set(hash, "parent_pid", UINT2NUM(header->parent_pid));
    hw_set(hash, "ruby", hw_cstr(header->ruby));
    hw_set(hash, "headway", hw_cstr(header->headway));
    hw_set(hash, "policy", hw_cstr(header->policy));
    hw_set(hash, "preempt", hw_cstr(header->preempt));
    hw_set(hash, "command", hw_cstr(header->command));
    hw_set(hash, "cpus", UINT2NUM(header->cpus));
    hw_set_number(hash, "quantum", header->quantum_ns);
    hw_set_number(hash, "clock", header->clock_ns);
    hw_set_number(hash, "wall", header->wall_ns);
}

/* [time, time running, of that on no processor, collections, time collecting]; nil: there was no work */
static VALUE
since_work(const struct hw_analysed_process *process)
{
    const struct hw_since_work *since = &process->since_work;
    if (!since->any) return Qnil;
    return rb_ary_new_from_args(5, ULL2NUM(process->end_ns - since->start_ns), ULL2NUM(since->running_ns), ULL2NUM(since->off_cpu_ns),
                                ULL2NUM(since->gc_count), ULL2NUM(since->gc_ns));
}

/* [how much of it ended, how long that took, for how long so many threads were at it at once: [none, one, ...]] */
static VALUE
at_work(const struct hw_analysed_process *process)
{
    VALUE times = rb_ary_new();
    uint32_t most = HW_AT_WORK_MOST;
    while (most > 0 && process->at_work.time_ns[most] == 0) most--;
    for (uint32_t threads = 0; threads <= most; threads++) rb_ary_push(times, ULL2NUM(process->at_work.time_ns[threads]));
    return rb_ary_new_from_args(3, ULL2NUM(process->at_work.count), ULL2NUM(process->at_work.took_ns), times);
}

static VALUE
process_hash(const struct hw_analysis *analysis, const struct hw_analysed_process *process)
{
    VALUE hash = rb_hash_new();
    set_header(hash, &process->header);
    hw_set_number(hash, "start", process->start_ns);
    hw_set_number(hash, "end", process->end_ns);
    hw_set_number(hash, "events", process->events);
    hw_set_number(hash, "dropped", process->dropped);
    hw_set_number(hash, "folded", process->folded);
    hw_set_number(hash, "unread", process->unread);
    hw_set_number(hash, "idle", process->idle_ns);
    hw_set(hash, "gc", rb_ary_new_from_args(3, ULL2NUM(process->gc_count), ULL2NUM(process->gc_ns), ULL2NUM(process->gc_max_ns)));
    hw_set(hash, "quota", rb_ary_new_from_args(2, ULL2NUM(process->quota.periods), ULL2NUM(process->quota.exhausted)));
    hw_set(hash, "since_work", since_work(process));
    hw_set(hash, "at_work", at_work(process));
    hw_set(hash, "queued", rb_ary_new_from_args(3, ULL2NUM(process->queued.count), ULL2NUM(process->queued.total_ns),
                                                ULL2NUM(process->queued.max_ns)));
    if (analysis->lanes) hw_set(hash, "gc_lane", lane_of(&process->gc_lane, process, process->start_ns));
    if (process->damage.what[0]) {
        hw_set(hash, "damage", rb_ary_new_from_args(2, ULL2NUM(process->damage.offset), hw_cstr(process->damage.what)));
    }
    hw_set(hash, "frames", rb_hash_new());
    return hash;
}

/* -- stacks -------------------------------------------------------------------------------------------------------------- */

/* The stack's frame ids; the frames themselves go once into their process's Hash. */
static VALUE
stack_array(const struct hw_tables *tables, uint32_t id, VALUE frames)
{
    const struct hw_trace_stack *stack = hw_tables_stack(tables, id);
    VALUE ids = rb_ary_new();
    for (uint32_t i = 0; stack && i < stack->count; i++) {
        VALUE frame = UINT2NUM(stack->frames[i]);
        rb_ary_push(ids, frame);
        if (NIL_P(rb_hash_lookup(frames, frame))) rb_hash_aset(frames, frame, hw_trace_frame(tables, stack->frames[i]));
    }
    return ids;
}

/* [process, the stack's frame ids, ns] */
static VALUE
place(const struct hw_analysis *analysis, uint32_t process, uint64_t stack, uint64_t ns, VALUE processes)
{
    VALUE frames = rb_hash_aref(rb_ary_entry(processes, process), ID2SYM(rb_intern("frames")));
    return rb_ary_new_from_args(3, UINT2NUM(process), stack_array(&analysis->processes[process].tables, (uint32_t)stack, frames),
                                ULL2NUM(ns));
}

/* All that came to something. */
static VALUE
places_array(const struct hw_analysis *analysis, uint32_t process, const struct hw_number_map *sums, VALUE processes)
{
    VALUE places = rb_ary_new();
    for (uint32_t i = 0; i < sums->slots; i++) {
        if (!sums->keys[i] || sums->values[i] == 0) continue;
        rb_ary_push(places, place(analysis, process, sums->keys[i] - 1, sums->values[i], processes));
    }
    return places;
}

/* -- threads ------------------------------------------------------------------------------------------------------------- */

static VALUE
thread_hash(const struct hw_analysis *analysis, const struct hw_analysed_thread *thread, VALUE processes)
{
    const struct hw_analysed_process *process = &analysis->processes[thread->process];
    const struct hw_named_thread *named = hw_tables_thread(&process->tables, thread->number);
    VALUE hash = rb_hash_new();
    hw_set(hash, "process", UINT2NUM(thread->process));
    hw_set(hash, "number", UINT2NUM(thread->number));
    hw_set(hash, "name", named ? hw_trace_text(named->name) : hw_cstr(""));
    hw_set(hash, "site", named ? hw_trace_text(named->site) : hw_cstr(""));
    hw_set_number(hash, "start", thread->start_ns);
    hw_set_number(hash, "end", thread->end_ns);
    hw_set_number(hash, "running", thread->time_ns[HW_RUNNING]);
    hw_set_number(hash, "ready", thread->time_ns[HW_READY]);
    hw_set_number(hash, "suspended", thread->time_ns[HW_SUSPENDED]);
    hw_set_number(hash, "off_cpu", thread->off_cpu_ns);
    hw_set_number(hash, "batch", thread->batch_ns);
    hw_set_number(hash, "batch_waits", thread->batch_waits_ns);
    hw_set(hash, "wait", durations(&thread->wait));
    hw_set(hash, "hold", durations(&thread->hold));
    hw_set_number(hash, "voluntary", thread->voluntary);
    hw_set_number(hash, "preempted", thread->preempted);
    hw_set_number(hash, "unassigned", thread->unassigned_ns);
    hw_set(hash, "of_pool", thread->of_pool ? Qtrue : Qfalse);
    hw_set(hash, "waited_for", rb_ary_new());
    hw_set(hash, "waited_for_at_boot", rb_ary_new());
    hw_set(hash, "boot", rb_ary_new_from_args(4, ULL2NUM(thread->boot_ns[HW_RUNNING]), ULL2NUM(thread->boot_ns[HW_READY]),
                                              ULL2NUM(thread->boot_ns[HW_SUSPENDED]), ULL2NUM(thread->boot_batch_waits_ns)));
    hw_set(hash, "blocked", process->since_work.any ? rb_ary_new() : places_array(analysis, thread->process, &thread->blocked, processes));
    if (analysis->lanes) hw_set(hash, "lane", lane_of(&thread->lane, process, thread->start_ns));
    return hash;
}

/* Hands a holder's map out to those who waited: [holder or nil, ns] into each one's list. */
static void
hand_out(VALUE threads, const struct hw_number_map *caused, VALUE holder, const char *list)
{
    for (uint32_t i = 0; i < caused->slots; i++) {
        if (!caused->keys[i]) continue;
        VALUE waiter = rb_ary_entry(threads, (long)(caused->keys[i] - 1));
        VALUE waited_for = rb_hash_aref(waiter, ID2SYM(rb_intern(list)));
        rb_ary_push(waited_for, rb_assoc_new(holder, ULL2NUM(caused->values[i])));
    }
}

static VALUE
threads_array(const struct hw_analysis *analysis, VALUE processes)
{
    VALUE threads = rb_ary_new();
    for (uint32_t i = 0; i < analysis->thread_count; i++) rb_ary_push(threads, thread_hash(analysis, &analysis->threads[i], processes));
    for (uint32_t i = 0; i < analysis->thread_count; i++) {
        hand_out(threads, &analysis->threads[i].caused, UINT2NUM(i), "waited_for");
        hand_out(threads, &analysis->threads[i].caused_at_boot, UINT2NUM(i), "waited_for_at_boot");
    }
    for (uint32_t i = 0; i < analysis->process_count; i++) {
        hand_out(threads, &analysis->processes[i].idle_caused, Qnil, "waited_for");
        hand_out(threads, &analysis->processes[i].idle_at_boot, Qnil, "waited_for_at_boot");
    }
    return threads;
}

/* -- blame and marks ------------------------------------------------------------------------------------------------------ */

static VALUE
blames_array(const struct hw_analysis *analysis, VALUE processes)
{
    VALUE blames = rb_ary_new();
    for (uint32_t i = 0; i < analysis->blame_count; i++) {
        const struct hw_analysed_blame *blame = &analysis->blames[i];
        if (blame->samples == 0) continue; /* of a boot */
        uint32_t process = analysis->threads[blame->thread].process;
        VALUE frames = rb_hash_aref(rb_ary_entry(processes, process), ID2SYM(rb_intern("frames")));
        rb_ary_push(blames, rb_ary_new_from_args(5, UINT2NUM(blame->thread),
                                                 stack_array(&analysis->processes[process].tables, blame->stack, frames),
                                                 ULL2NUM(blame->weight_ns), ULL2NUM(blame->samples), ULL2NUM(blame->late_ns)));
    }
    return blames;
}

static VALUE
marks_array(const struct hw_analysis *analysis)
{
    VALUE marks = rb_ary_new();
    for (uint32_t i = 0; i < analysis->mark_count; i++) {
        const struct hw_analysed_mark *mark = &analysis->marks[i];
        const struct hw_tables *tables = &analysis->processes[analysis->threads[mark->thread].process].tables;
        VALUE name = hw_trace_text(hw_tables_string(tables, mark->string));
        rb_ary_push(marks, rb_ary_new_from_args(4, UINT2NUM(mark->thread), name, ULL2NUM(mark->start_ns),
                                                mark->instant ? Qnil : ULL2NUM(mark->end_ns)));
    }
    return marks;
}

/* [thread, start, time, time running, time ready, places that it waited behind]; nil: there is none */
static VALUE
single_work(const struct hw_analysis *analysis, const struct hw_single_work *work, VALUE processes)
{
    if (work->ready_ns == 0) return Qnil;
    VALUE behind = rb_ary_new();
    for (unsigned i = 0; i < work->behind.count; i++) {
        rb_ary_push(behind, place(analysis, analysis->threads[work->thread].process, work->behind.at[i].stack, work->behind.at[i].ns, processes));
    }
    return rb_ary_new_from_args(6, UINT2NUM(work->thread), ULL2NUM(work->start_ns), ULL2NUM(work->time_ns), ULL2NUM(work->running_ns),
                                ULL2NUM(work->ready_ns), behind);
}

/* What such work is called; nil: what the program marked itself. */
static VALUE
span(uint8_t span)
{
    return span == HW_SPAN_REQUEST ? hw_cstr("request") : span == HW_SPAN_JOB ? hw_cstr("job") : Qnil;
}

/* [name, kind, count, time, time running, time ready, time computing without the GVL, weight of blame, the one that waited longest, where it was
 * blocked, where it is blamed] */
static VALUE
works_array(const struct hw_analysis *analysis, VALUE processes)
{
    VALUE works = rb_ary_new();
    for (uint32_t i = 0; i < analysis->work_count; i++) {
        const struct hw_analysed_work *work = &analysis->works[i];
        if (work->count == 0) continue; /* all of it got a better name */
        VALUE name = hw_trace_text(hw_tables_string(&analysis->processes[work->process].tables, work->string));
        rb_ary_push(works, rb_ary_new_from_args(11, name, span(work->span), ULL2NUM(work->count), ULL2NUM(work->time_ns), ULL2NUM(work->running_ns),
                                                ULL2NUM(work->ready_ns), ULL2NUM(work->computed_ns), ULL2NUM(work->blamed_ns),
                                                single_work(analysis, &work->longest, processes),
                                                places_array(analysis, work->process, &work->blocked, processes),
                                                places_array(analysis, work->process, &work->blamed, processes)));
    }
    return works;
}

VALUE
hw_trace_result(const struct hw_analysis *analysis)
{
    VALUE result = rb_hash_new(), processes = rb_ary_new(), buckets = rb_ary_new();
    for (uint32_t i = 0; i < analysis->process_count; i++) {
        rb_ary_push(processes, process_hash(analysis, &analysis->processes[i]));
    }
    for (uint32_t i = 0; i < HW_WAIT_BUCKETS; i++) rb_ary_push(buckets, ULL2NUM(analysis->wait_buckets[i]));
    hw_set(result, "processes", processes);
    hw_set(result, "threads", threads_array(analysis, processes));
    hw_set(result, "wait", durations(&analysis->wait));
    hw_set(result, "hold", durations(&analysis->hold));
    hw_set(result, "wait_buckets", buckets);
    hw_set(result, "blames", blames_array(analysis, processes));
    hw_set_number(result, "blame_samples", analysis->blame_samples);
    hw_set_number(result, "blame", analysis->blame_ns);
    hw_set_number(result, "blames_folded", analysis->blames_folded);
    hw_set(result, "marks", marks_array(analysis));
    hw_set_number(result, "marks_folded", analysis->marks_folded);
    hw_set(result, "work", works_array(analysis, processes));
    return result;
}
