/* Marks and GC. Marks of a thread nest. Once as many are kept as may be, all later ones are folded; those still open then are
 * around them, so a count of the folded ones tells which end belongs to which. */
#include "analysis_pass.h"
#include "clock.h"

/* How far outwards the mark that ends is looked for, when ends went missing. */
#define DEPTH_SEARCHED 64

static bool
keep_mark(struct hw_pass *pass, uint32_t index, uint32_t string, bool instant)
{
    struct hw_analysis *analysis = pass->analysis;
    if (!hw_pass_room(pass, &analysis->marks, analysis->mark_count, &analysis->mark_capacity, HW_ANALYSIS_MARKS_MOST,
                      sizeof(*analysis->marks))) {
        analysis->marks_folded++;
        return false;
    }
    analysis->marks[analysis->mark_count++] = (struct hw_analysed_mark){
        .thread = index, .string = string, .start_ns = pass->now_ns, .end_ns = pass->now_ns, .instant = instant };
    return true;
}

static void
begin(struct hw_pass *pass, uint32_t index, uint32_t string)
{
    struct hw_analysis *analysis = pass->analysis;
    struct hw_analysed_thread *thread = &analysis->threads[index];
    if (!keep_mark(pass, index, string, false)) {
        thread->folded_marks++;
        return;
    }
    analysis->marks[analysis->mark_count - 1].outer = thread->open_mark;
    thread->open_mark = analysis->mark_count;
}

static void
end(struct hw_pass *pass, uint32_t index, uint32_t string)
{
    struct hw_analysed_mark *marks = pass->analysis->marks;
    struct hw_analysed_thread *thread = &pass->analysis->threads[index];
    thread->ended_mark = 0;
    if (thread->folded_marks) {
        thread->folded_marks--;
        return;
    }
    uint32_t found = thread->open_mark;
    for (int depth = 0; found && marks[found - 1].string != string; found = marks[found - 1].outer) {
        if (++depth == DEPTH_SEARCHED) return;
    }
    if (!found) return;
    uint32_t outer = marks[found - 1].outer;
    for (uint32_t open = thread->open_mark; open != outer; open = marks[open - 1].outer) marks[open - 1].end_ns = pass->now_ns;
    thread->open_mark = outer;
    thread->ended_mark = found;
}

static void
name(struct hw_pass *pass, uint32_t index, uint32_t string)
{
    uint32_t ended = pass->analysis->threads[index].ended_mark;
    if (ended) pass->analysis->marks[ended - 1].string = string;
}

void
hw_pass_mark(struct hw_pass *pass, uint32_t index, const struct hw_trace_event *event)
{
    switch (event->kind) {
      case HW_TRACE_MARK_BEGIN: begin(pass, index, event->value); break;
      case HW_TRACE_MARK_END: end(pass, index, event->value); break;
      case HW_TRACE_MARK_NAME: name(pass, index, event->value); break;
      default: keep_mark(pass, index, event->value, true);
    }
}

void
hw_pass_close_marks(struct hw_pass *pass, uint32_t index)
{
    struct hw_analysed_mark *marks = pass->analysis->marks;
    struct hw_analysed_thread *thread = &pass->analysis->threads[index];
    for (uint32_t open = thread->open_mark; open; open = marks[open - 1].outer) marks[open - 1].end_ns = pass->now_ns;
    thread->open_mark = thread->folded_marks = 0;
}

void
hw_pass_gc(struct hw_pass *pass, bool runs)
{
    struct hw_analysed_process *process = pass->process;
    if (runs == pass->in_gc) return;
    uint64_t duration_ns = pass->now_ns - pass->gc_since_ns;
    if (pass->in_gc) {
        process->gc_count++;
        process->gc_ns += duration_ns;
        if (process->since_work.any) {
            process->since_work.gc_count++;
            process->since_work.gc_ns += hw_earlier_ns(duration_ns, pass->now_ns - process->since_work.start_ns);
        }
        if (duration_ns > process->gc_max_ns) process->gc_max_ns = duration_ns;
    }
    if (pass->analysis->lanes && !hw_lane_add(&process->gc_lane, pass->in_gc ? HW_LANE_GC : HW_LANE_NO_GC,
                                              hw_pass_lane_time_ns(pass, pass->gc_since_ns),
                                              hw_pass_lane_time_ns(pass, pass->now_ns))) pass->failed = true;
    pass->in_gc = runs;
    pass->gc_since_ns = pass->now_ns;
}
