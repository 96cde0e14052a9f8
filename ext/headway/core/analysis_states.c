/* Events to states. States are set, never counted, so that doubled or missing events break no identity: a thread that resumes
 * takes the GVL from whoever was thought to have it. */
#include "analysis_pass.h"
#include "clock.h"
#include "policy.h"

#include <string.h>

static const enum hw_lane_state lane_states[] = {
    [HW_SUSPENDED] = HW_LANE_SUSPENDED, [HW_READY] = HW_LANE_READY, [HW_RUNNING] = HW_LANE_RUNNING
};

static struct hw_analysed_thread *
thread(struct hw_pass *pass, uint32_t index)
{
    return &pass->analysis->threads[index];
}

static int
digits(uint32_t index)
{
    return index < HW_ANALYSIS_PRECISE_THREADS ? 2 : 1;
}

static uint32_t
wait_bucket(uint64_t duration_ns)
{
    uint32_t low = 0, high = HW_WAIT_BUCKETS - 1;
    while (low < high) {
        uint32_t middle = (low + high + 1) / 2;
        if (hw_wait_bucket_from_ns(middle) <= duration_ns) low = middle;
        else high = middle - 1;
    }
    return low;
}

/* -- changes of state ---------------------------------------------------------------------------------------------------- */

static void
end_wait(struct hw_pass *pass, uint32_t index)
{
    uint64_t duration_ns = pass->now_ns - thread(pass, index)->since_ns;
    if (!hw_durations_add(&thread(pass, index)->wait, duration_ns, digits(index)) ||
        !hw_durations_add(&pass->analysis->wait, duration_ns, 3)) pass->failed = true;
    pass->analysis->wait_buckets[wait_bucket(duration_ns)]++;
}

static void
end_hold(struct hw_pass *pass, uint32_t index)
{
    uint64_t duration_ns = pass->now_ns - thread(pass, index)->since_ns;
    if (!hw_durations_add(&thread(pass, index)->hold, duration_ns, digits(index)) ||
        !hw_durations_add(&pass->analysis->hold, duration_ns, 3)) pass->failed = true;
}

/* Of the hold in which that began it isn't known when it was on no processor. */
static void
hold_since_work(struct hw_pass *pass, uint64_t spent_ns, uint64_t off_cpu_ns)
{
    struct hw_since_work *since = &pass->process->since_work;
    if (!since->any) return;
    uint64_t since_ns = pass->now_ns - since->start_ns;
    since->running_ns += hw_earlier_ns(spent_ns, since_ns);
    if (spent_ns <= since_ns) since->off_cpu_ns += off_cpu_ns;
}

static void
add_to_burst(struct hw_pass *pass, struct hw_analysed_thread *t, uint64_t ran_ns)
{
    t->burst_ns += ran_ns;
    uint64_t batch_ns = hw_policy_ran_as_batch_ns(&hw_policy_default, t->burst_ns, ran_ns);
    if (batch_ns == 0) return;
    t->batch_ns += batch_ns;
    for (uint32_t i = 0; i < pass->ready_count; i++) {
        t->batch_waits_ns += hw_earlier_ns(batch_ns, pass->now_ns - thread(pass, pass->ready[i].index)->since_ns);
    }
}

static void
sleep_off_burst(struct hw_analysed_thread *t, uint64_t slept_ns)
{
    t->burst_ns = hw_policy_burst_after_sleep_ns(hw_policy_burst_at_block_ns(&hw_policy_default, t->burst_ns), slept_ns);
}

/* The time in the state that ends now, which may also be merely interrupted by the end of the trace. */
static void
account(struct hw_pass *pass, uint32_t index)
{
    struct hw_analysed_thread *t = thread(pass, index);
    uint64_t spent_ns = pass->now_ns - t->since_ns;
    uint64_t off_cpu_ns = hw_earlier_ns(t->hold_off_cpu_ns, spent_ns);
    t->time_ns[t->state] += spent_ns;
    t->off_cpu_ns += off_cpu_ns;
    if (t->state == HW_RUNNING) {
        hold_since_work(pass, spent_ns, off_cpu_ns);
        t->cpu_held_ns += spent_ns - off_cpu_ns;
        add_to_burst(pass, t, spent_ns - off_cpu_ns);
    }
    if (t->state == HW_SUSPENDED) {
        sleep_off_burst(t, spent_ns);
        t->away_ns = spent_ns;
    }
    t->hold_off_cpu_ns = 0;
    if (pass->analysis->lanes &&
        !hw_lane_add(&t->lane, (uint8_t)lane_states[t->state], hw_pass_lane_time_ns(pass, t->since_ns),
                     hw_pass_lane_time_ns(pass, pass->now_ns))) pass->failed = true;
}

static void
leave(struct hw_pass *pass, uint32_t index, enum hw_state next)
{
    enum hw_state state = thread(pass, index)->state;
    account(pass, index);
    if (state == HW_READY) {
        if (next == HW_RUNNING) end_wait(pass, index);
        hw_pass_leaves_ready(pass, index);
    }
    if (state == HW_RUNNING) {
        end_hold(pass, index);
        if (pass->holder == index) hw_pass_set_holder(pass, HW_NOBODY);
    }
}

static void
enter(struct hw_pass *pass, uint32_t index, enum hw_state state)
{
    struct hw_analysed_thread *t = thread(pass, index);
    if (t->state == state || t->exited) return;
    leave(pass, index, state);
    if (state == HW_RUNNING && pass->holder != HW_NOBODY) enter(pass, pass->holder, HW_SUSPENDED);
    t->state = state;
    t->since_ns = pass->now_ns;
    if (state == HW_READY) hw_pass_becomes_ready(pass, index);
    if (state == HW_RUNNING) hw_pass_set_holder(pass, index);
}

static void
leave_for_good(struct hw_pass *pass, uint32_t index)
{
    struct hw_analysed_thread *t = thread(pass, index);
    if (t->exited) return;
    leave(pass, index, HW_SUSPENDED);
    hw_pass_close_marks(pass, index);
    hw_pass_end_work(pass, index);
    t->state = HW_SUSPENDED;
    t->since_ns = t->end_ns = pass->now_ns;
    t->exited = true;
}

/* -- threads ------------------------------------------------------------------------------------------------------------- */

/* A thread is there from its first event on, suspended until that says otherwise. HW_NOBODY: there are too many. */
static uint32_t
add_thread(struct hw_pass *pass, uint32_t number)
{
    struct hw_analysis *analysis = pass->analysis;
    if (!hw_pass_room(pass, &analysis->threads, analysis->thread_count, &analysis->thread_capacity, HW_ANALYSIS_THREADS_MOST,
                      sizeof(*analysis->threads))) return HW_NOBODY;
    uint64_t *place = hw_number_map_put(&pass->thread_at, number);
    if (!place) {
        pass->failed = true;
        return HW_NOBODY;
    }
    uint32_t index = analysis->thread_count++;
    *place = index;
    struct hw_analysed_thread *t = &analysis->threads[index];
    memset(t, 0, sizeof(*t));
    t->process = analysis->process_count - 1;
    t->number = number;
    t->state = HW_SUSPENDED;
    t->since_ns = t->start_ns = pass->now_ns;
    return index;
}

static uint32_t
find_thread(struct hw_pass *pass, const struct hw_trace_event *event)
{
    if (event->thread == 0 || event->thread == UINT32_MAX) return HW_NOBODY;
    uint64_t *place = hw_number_map_find(&pass->thread_at, event->thread);
    if (place) return (uint32_t)*place;
    uint32_t index = add_thread(pass, event->thread);
    /* Marks are made by who runs, and who is blamed ran: that much is known of a thread first seen so. */
    bool runs = event->kind >= HW_TRACE_MARK_BEGIN && event->kind <= HW_TRACE_BLAME;
    if (runs && index != HW_NOBODY) enter(pass, index, HW_RUNNING);
    return index;
}

/* -- events -------------------------------------------------------------------------------------------------------------- */

static void
end_of_hold(struct hw_pass *pass, uint32_t index, bool preempted)
{
    struct hw_analysed_thread *t = thread(pass, index);
    if (t->state == HW_RUNNING && !t->exited) {
        if (preempted) t->preempted++;
        else t->voluntary++;
    }
    else if (preempted && t->state == HW_SUSPENDED && !t->exited && t->voluntary > 0) {
        t->voluntary--; /* the VM's own slice, which shows only when the thread is ready again */
        t->preempted++;
    }
    enter(pass, index, preempted ? HW_READY : HW_SUSPENDED);
}

/* What its clock gained beyond what it ran it computed without the GVL; what is less than this is the way into a system call and back. */
#define COMPUTED_LEAST_NS (50 * HW_NS_PER_US)

static void
read_cpu(struct hw_pass *pass, struct hw_analysed_thread *t, uint32_t cpu_us)
{
    uint64_t gained_ns = (uint64_t)(cpu_us - t->cpu_us) * HW_NS_PER_US, computed_ns = hw_elapsed_ns(t->cpu_held_ns, gained_ns);
    if (t->cpu_us != 0 && computed_ns >= COMPUTED_LEAST_NS) t->computed_ns += hw_earlier_ns(computed_ns, pass->now_ns - t->cpu_read_ns);
    t->cpu_us = cpu_us;
    t->cpu_read_ns = pass->now_ns;
    t->cpu_held_ns = 0;
}

static void
thread_event(struct hw_pass *pass, uint32_t index, const struct hw_trace_event *event)
{
    switch (event->kind) {
      case HW_TRACE_STARTED: thread(pass, index)->started = true; break;
      case HW_TRACE_READY: enter(pass, index, HW_READY); break;
      case HW_TRACE_RESUMED: enter(pass, index, HW_RUNNING); break;
      case HW_TRACE_SUSPENDED: end_of_hold(pass, index, false); break;
      case HW_TRACE_PREEMPTED: end_of_hold(pass, index, true); break;
      case HW_TRACE_EXITED: leave_for_good(pass, index); break;
      case HW_TRACE_KNOWN:
        if (event->value < HW_STATE_COUNT) enter(pass, index, (enum hw_state)event->value);
        break;
      case HW_TRACE_BLAME: hw_pass_blame(pass, index, event->value); break;
      case HW_TRACE_BLOCKED: hw_pass_blocked(pass, index, event->value); break;
      case HW_TRACE_QUEUED: hw_pass_queued(pass, index, event->value * HW_NS_PER_US); break;
      case HW_TRACE_CPU: read_cpu(pass, thread(pass, index), event->value); break;
      case HW_TRACE_OFF_CPU:
        if (thread(pass, index)->state == HW_RUNNING) thread(pass, index)->hold_off_cpu_ns = event->value * HW_NS_PER_US;
        break;
      case HW_TRACE_MARK_BEGIN: case HW_TRACE_MARK_END: case HW_TRACE_MARK: case HW_TRACE_MARK_NAME:
        hw_pass_mark(pass, index, event);
        hw_pass_work(pass, index, event);
        break;
      default: break; /* STARTED: it is there now */
    }
}

/* Time never goes back: what comes too late happened at the latest time seen. */
static void
advance(struct hw_pass *pass, uint64_t time_ns)
{
    if (pass->begun) {
        if (time_ns > pass->now_ns) pass->now_ns = time_ns;
        return;
    }
    pass->begun = true;
    pass->now_ns = pass->holder_since_ns = pass->gc_since_ns = pass->process->start_ns = time_ns;
    uint64_t common_ns = time_ns - pass->process->header.clock_ns + pass->process->header.wall_ns;
    pass->process->lane_origin_ns = time_ns - common_ns % HW_LANE_UNIT_NS;
}

void
hw_pass_event(struct hw_pass *pass, const struct hw_trace_event *event)
{
    pass->process->events++;
    if (event->kind == 0 || event->kind > HW_TRACE_QUEUED) return;
    advance(pass, event->time_ns);
    if (event->kind == HW_TRACE_GC_START || event->kind == HW_TRACE_GC_END) {
        hw_pass_gc(pass, event->kind == HW_TRACE_GC_START);
        return;
    }
    uint32_t index = find_thread(pass, event);
    if (index == HW_NOBODY) pass->process->unread++;
    else thread_event(pass, index, event);
}

/* Everything that is still under way ends with the trace: accounted for, but not counted as a finished wait or hold. */
void
hw_pass_finish(struct hw_pass *pass)
{
    struct hw_analysis *analysis = pass->analysis;
    for (uint32_t i = 0; i < analysis->thread_count; i++) {
        struct hw_analysed_thread *t = &analysis->threads[i];
        if (!hw_pass_has(pass, t) || t->exited) continue;
        account(pass, i);
        if (t->state == HW_READY) hw_pass_leaves_ready(pass, i);
        hw_pass_close_marks(pass, i);
        hw_pass_end_work(pass, i);
        t->end_ns = t->since_ns = pass->now_ns;
    }
    hw_pass_set_holder(pass, HW_NOBODY);
    if (pass->begun) pass->process->idle_ns += pass->now_ns - pass->holder_since_ns;
    if (pass->begun) hw_pass_gc(pass, !pass->in_gc);
    pass->process->end_ns = pass->now_ns;
}
