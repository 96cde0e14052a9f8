/* Work: what the outermost marks of a thread say it is at, summed up by their names, however many there are of them. A thread's
 * work begins with a mark and ends with the end of the same name; what else is marked meanwhile is part of it. */
#include "analysis_pass.h"

/* NULL: there are too many names, or no memory. */
static struct hw_analysed_work *
work_named(struct hw_pass *pass, uint32_t string)
{
    struct hw_analysis *analysis = pass->analysis;
    uint64_t *place = string == UINT32_MAX ? NULL : hw_number_map_find(&pass->work_at, string);
    if (place) return &analysis->works[*place];
    if (string == UINT32_MAX || !hw_pass_room(pass, &analysis->works, analysis->work_count, &analysis->work_capacity,
                                              HW_ANALYSIS_WORKS_MOST, sizeof(*analysis->works))) return NULL;
    place = hw_number_map_put(&pass->work_at, string);
    if (!place) {
        pass->failed = true;
        return NULL;
    }
    *place = analysis->work_count++;
    analysis->works[*place] = (struct hw_analysed_work){ .process = analysis->process_count - 1, .string = string };
    return &analysis->works[*place];
}

static void
add_place(struct hw_pass *pass, struct hw_number_map *sums, uint32_t stack, uint64_t by_ns)
{
    uint64_t *sum_ns = hw_number_map_find(sums, stack);
    if (!sum_ns && pass->analysis->place_count < HW_ANALYSIS_PLACES_MOST) {
        sum_ns = hw_number_map_put(sums, stack);
        if (sum_ns) pass->analysis->place_count++;
        else pass->failed = true;
    }
    if (sum_ns) *sum_ns += by_ns;
}

/* The first, or the next, of those that a thread's work is blamed in; NULL: none. */
static struct hw_analysed_blame *
blame_at(const struct hw_pass *pass, uint32_t place)
{
    return place ? &pass->analysis->blames[place - 1] : NULL;
}

/* times: 1, or -1 to take it back. */
static void
count(struct hw_pass *pass, const struct hw_thread_work *done, int times)
{
    struct hw_analysed_work *work = work_named(pass, done->string);
    if (!work) return;
    uint64_t factor = (uint64_t)times;
    work->span = done->span;
    work->count += factor;
    work->time_ns += factor * done->time_ns;
    work->running_ns += factor * done->running_ns;
    work->ready_ns += factor * done->ready_ns;
    work->computed_ns += factor * done->computed_ns;
    work->blamed_ns += factor * done->blamed_ns;
    const struct hw_places *blocked = &done->blocked;
    for (unsigned i = 0; i < blocked->count; i++) add_place(pass, &work->blocked, blocked->at[i].stack, factor * blocked->at[i].ns);
    const struct hw_analysed_blame *blame = blame_at(pass, done->blames);
    for (; blame; blame = blame_at(pass, blame->next_in_work)) add_place(pass, &work->blamed, blame->stack, factor * blame->in_work_ns);
}

/* Who marks runs; of one that doesn't, as its work ended elsewhere, the wait that is under way is left out. */
static uint64_t
running_ns(const struct hw_pass *pass, const struct hw_analysed_thread *thread)
{
    return thread->time_ns[HW_RUNNING] + (thread->state == HW_RUNNING ? pass->now_ns - thread->since_ns : 0);
}

/* As so many more begin, or, with -1, end. Who waits while all threads are at work isn't in any trace. */
static void
change_at_work(struct hw_pass *pass, int by)
{
    struct hw_at_work *at_work = &pass->process->at_work;
    uint32_t threads = at_work->threads < HW_AT_WORK_MOST ? at_work->threads : HW_AT_WORK_MOST;
    at_work->time_ns[threads] += pass->now_ns - at_work->since_ns;
    at_work->since_ns = pass->now_ns;
    at_work->threads += (uint32_t)by;
}

/* Jobs in a server, done beside its requests, aren't what these wait for a thread for: what was counted until the first of them is gone, but
 * for marks under way, in which the request may be. */
static void
serve(struct hw_pass *pass)
{
    struct hw_analysed_process *process = pass->process;
    process->at_work = (struct hw_at_work){ .serves = true, .since_ns = pass->now_ns };
    process->queued = (struct hw_queued){ 0 };
    for (uint32_t i = 0; i < pass->analysis->thread_count; i++) {
        struct hw_analysed_thread *thread = &pass->analysis->threads[i];
        if (!hw_pass_has(pass, thread)) continue;
        thread->of_pool = thread->work.of_pool = thread->work.depth > 0 && thread->work.span != HW_SPAN_JOB;
        process->at_work.threads += thread->of_pool;
    }
}

/* Once it has its name: with the next begin, or the end of its thread. */
static void
settle(struct hw_pass *pass, struct hw_analysed_thread *thread)
{
    struct hw_thread_work *work = &thread->work;
    if (work->settled || !work->any) return;
    work->settled = true;
    struct hw_analysed_work *named = work_named(pass, work->string);
    if (!named || work->ready_ns <= named->longest.ready_ns) return;
    named->longest = (struct hw_single_work){ .thread = (uint32_t)(thread - pass->analysis->threads), .start_ns = work->start_ns,
                                              .time_ns = work->time_ns, .running_ns = work->running_ns, .ready_ns = work->ready_ns,
                                              .behind = work->behind };
}

static void
finish(struct hw_pass *pass, struct hw_analysed_thread *thread, uint64_t running_ns)
{
    struct hw_thread_work *work = &thread->work;
    work->depth = 0;
    work->time_ns = pass->now_ns - work->start_ns;
    work->running_ns = running_ns - work->running_ns;
    work->ready_ns = thread->time_ns[HW_READY] - work->ready_ns;
    work->computed_ns = thread->computed_ns - work->computed_ns;
    if (thread->state == HW_READY) work->behind.count = 0; /* has part of the wait that is left out */
    work->done = true;
    count(pass, work, 1);
    if (!work->of_pool) return;
    change_at_work(pass, -1);
    pass->process->at_work.count++;
    pass->process->at_work.took_ns += work->time_ns;
    struct hw_queued *queued = &pass->process->queued;
    queued->count += work->was_queued;
    queued->total_ns += work->queued_ns;
    queued->max_ns = hw_later_ns(queued->max_ns, work->queued_ns);
}

/* A request is in no other, nor a job in a job: where ends may be among the events that were dropped, the one that is thought to be under way
 * is over. Since when nobody knows: it isn't counted. */
static void
give_up_if_its_end_was_dropped(struct hw_pass *pass, struct hw_thread_work *work, const struct hw_trace_event *next)
{
    bool over = next->detail == HW_SPAN_REQUEST || (next->detail == HW_SPAN_JOB && work->span == HW_SPAN_JOB);
    if (work->depth == 0 || pass->process->dropped == 0 || !over || work->span == HW_SPAN_MARK) return;
    work->depth = 0;
    work->settled = true;
    if (work->of_pool) change_at_work(pass, -1);
}

static void
begin(struct hw_pass *pass, struct hw_analysed_thread *thread, const struct hw_trace_event *event)
{
    struct hw_thread_work *work = &thread->work;
    struct hw_at_work *at_work = &pass->process->at_work;
    if (event->detail == HW_SPAN_REQUEST && !at_work->serves) serve(pass);
    give_up_if_its_end_was_dropped(pass, work, event);
    if (work->depth > 0) {
        work->depth += work->string == event->value;
        return;
    }
    settle(pass, thread);
    if (event->detail == HW_SPAN_REQUEST || event->detail == HW_SPAN_JOB) hw_pass_end_boot(pass, thread);
    if (!pass->process->since_work.any) {
        pass->process->since_work = (struct hw_since_work){ .any = true, .start_ns = pass->now_ns };
        at_work->since_ns = pass->now_ns;
    }
    bool of_pool = !at_work->serves || event->detail != HW_SPAN_JOB;
    if (of_pool) {
        change_at_work(pass, 1);
        thread->of_pool = true;
    }
    struct hw_analysed_blame *blame = blame_at(pass, work->blames);
    for (; blame; blame = blame_at(pass, blame->next_in_work)) blame->in_work_ns = 0;
    *work = (struct hw_thread_work){ .string = event->value, .depth = 1, .span = event->detail, .start_ns = pass->now_ns,
                                     .running_ns = running_ns(pass, thread), .ready_ns = thread->time_ns[HW_READY],
                                     .computed_ns = thread->computed_ns, .any = true, .of_pool = of_pool };
}

static void
end(struct hw_pass *pass, struct hw_analysed_thread *thread, uint32_t string)
{
    struct hw_thread_work *work = &thread->work;
    work->done = false; /* if it was: another mark ended since */
    if (work->depth == 0 || work->string != string) return;
    if (pass->process->dropped > 0) work->depth = 1; /* as in workload_threads.c: the end of one inside it may have been, or its own */
    if (--work->depth == 0) finish(pass, thread, running_ns(pass, thread));
}

/* Of the mark that ended last, which is the work if that has just ended. */
static void
rename_last(struct hw_pass *pass, struct hw_analysed_thread *thread, uint32_t string)
{
    struct hw_thread_work *work = &thread->work;
    if (!work->done || work->settled) return;
    count(pass, work, -1);
    work->string = string;
    count(pass, work, 1);
}

void
hw_pass_work(struct hw_pass *pass, uint32_t index, const struct hw_trace_event *event)
{
    struct hw_analysed_thread *thread = &pass->analysis->threads[index];
    if (thread->exited || event->detail == HW_SPAN_PART) return;
    switch (event->kind) {
      case HW_TRACE_MARK_BEGIN: begin(pass, thread, event); break;
      case HW_TRACE_MARK_END: end(pass, thread, event->value); break;
      case HW_TRACE_MARK_NAME: rename_last(pass, thread, event->value); break;
      default: break;
    }
}

/* The one of that stack, else a free one, else the shortest, if this one is longer. */
static void
note_place(struct hw_places *places, uint32_t stack, uint64_t ns)
{
    unsigned i = 0, least = 0;
    for (; i < places->count && places->at[i].stack != stack; i++) {
        if (places->at[i].ns < places->at[least].ns) least = i;
    }
    if (i < places->count) {
        places->at[i].ns += ns;
        return;
    }
    if (places->count < HW_PLACES_OF_WORK) least = places->count++;
    else if (places->at[least].ns >= ns) return;
    places->at[least].stack = stack;
    places->at[least].ns = ns;
}

/* Of a block that began before the work, what is in it: what the thread, which runs, was neither running nor ready since. */
void
hw_pass_blocked(struct hw_pass *pass, uint32_t index, uint32_t stack)
{
    struct hw_analysed_thread *thread = &pass->analysis->threads[index];
    struct hw_thread_work *work = &thread->work;
    if (thread->state != HW_RUNNING || stack == UINT32_MAX) return;
    if (!pass->process->since_work.any) {
        if (thread->away_ns > 0) add_place(pass, &thread->blocked, stack, thread->away_ns);
        thread->away_ns = 0;
    }
    if (work->depth == 0) return;
    uint64_t held_ns = running_ns(pass, thread) - work->running_ns + thread->time_ns[HW_READY] - work->ready_ns;
    uint64_t away_ns = hw_earlier_ns(thread->away_ns, hw_elapsed_ns(held_ns, pass->now_ns - work->start_ns));
    thread->away_ns = 0;
    if (away_ns > 0) note_place(&work->blocked, stack, away_ns);
}

/* Who holds the GVL was seen in that stack, while this one waited so long for it. */
void
hw_pass_behind(struct hw_pass *pass, uint32_t index, uint32_t stack, uint64_t waited_ns)
{
    struct hw_thread_work *work = &pass->analysis->threads[index].work;
    if (work->depth > 0 && stack != UINT32_MAX && waited_ns > 0) note_place(&work->behind, stack, waited_ns);
}

void
hw_pass_queued(struct hw_pass *pass, uint32_t index, uint64_t queued_ns)
{
    struct hw_thread_work *work = &pass->analysis->threads[index].work;
    if (work->depth == 0) return;
    work->was_queued = true;
    work->queued_ns = queued_ns;
}

void
hw_pass_end_work(struct hw_pass *pass, uint32_t index)
{
    struct hw_analysed_thread *thread = &pass->analysis->threads[index];
    if (thread->work.depth > 0) finish(pass, thread, thread->time_ns[HW_RUNNING]); /* what was under way is in it */
    settle(pass, thread);
}

void
hw_pass_blame_work(struct hw_pass *pass, struct hw_analysed_thread *holder, struct hw_analysed_blame *blame, uint64_t weight_ns)
{
    struct hw_thread_work *work = &holder->work;
    if (work->depth == 0 || weight_ns == 0) return;
    work->blamed_ns += weight_ns;
    if (blame == NULL) return;
    if (blame->in_work_ns == 0) {
        blame->next_in_work = work->blames;
        work->blames = (uint32_t)(blame - pass->analysis->blames) + 1;
    }
    blame->in_work_ns += weight_ns;
}
