/* A server's boot: what came before its process's first request or job. Nobody who asks why requests stall asks what the threads of a pool
 * waited for while the application was loaded, collected or copied. So as the first one begins what threads did and waited until then is
 * noted, to be told apart, and what was blamed is forgotten.
 *
 * There is none in a program that only marks its parts, nor in a recording of a server at work, in which the first request that begins comes
 * after others that were under way: its thread was there already, and so were others. */
#include "analysis_pass.h"

/* Of the works are those that only marks made: the boot's parts. */
static void
forget_blame(struct hw_pass *pass)
{
    struct hw_analysis *analysis = pass->analysis;
    analysis->blame_ns = pass->blamed_before_ns;
    analysis->blame_samples = pass->samples_before;
    for (uint32_t i = 0; i < analysis->blame_count; i++) {
        struct hw_analysed_blame *blame = &analysis->blames[i];
        if (!hw_pass_has(pass, &analysis->threads[blame->thread])) continue;
        blame->weight_ns = blame->samples = blame->late_ns = blame->in_work_ns = 0;
    }
    for (uint32_t i = 0; i < analysis->work_count; i++) {
        struct hw_analysed_work *work = &analysis->works[i];
        if (work->process != analysis->process_count - 1) continue;
        work->blamed_ns = 0;
        hw_number_map_free(&work->blamed);
    }
}

static void
set_apart(struct hw_pass *pass, struct hw_analysed_thread *thread)
{
    for (int state = 0; state < HW_STATE_COUNT; state++) thread->boot_ns[state] = thread->time_ns[state];
    if (!thread->exited) thread->boot_ns[thread->state] += pass->now_ns - thread->since_ns;
    thread->boot_batch_waits_ns = thread->batch_waits_ns;
    thread->caused_at_boot = thread->caused;
    thread->caused = (struct hw_number_map){ 0 };
    thread->work.blamed_ns = thread->work.blames = 0;
}

/* The server's first thread, or that of a forked child, is there before anything is recorded. */
static bool
saw_boot(const struct hw_pass *pass, const struct hw_analysed_thread *thread)
{
    const struct hw_analysis *analysis = pass->analysis;
    unsigned there = 0;
    for (uint32_t i = 0; i < analysis->thread_count; i++) there += hw_pass_has(pass, &analysis->threads[i]) && !analysis->threads[i].started;
    return thread->started || there <= 1;
}

void
hw_pass_end_boot(struct hw_pass *pass, const struct hw_analysed_thread *thread)
{
    struct hw_analysis *analysis = pass->analysis;
    struct hw_analysed_process *process = pass->process;
    if (pass->booted) return;
    pass->booted = true;
    if (!saw_boot(pass, thread)) return;
    hw_pass_charge_all(pass);
    for (uint32_t i = 0; i < analysis->thread_count; i++) {
        if (hw_pass_has(pass, &analysis->threads[i])) set_apart(pass, &analysis->threads[i]);
    }
    process->idle_at_boot = process->idle_caused;
    process->idle_caused = (struct hw_number_map){ 0 };
    if (pass->holder != HW_NOBODY) analysis->threads[pass->holder].sampled_ns = pass->now_ns;
    forget_blame(pass);
}
