/* Who waited for whom. A ready thread's time is assigned up to charged_ns; the rest belongs to the present holder. So it is
 * charged when the holder changes and when the wait ends, and the charges of a wait sum to it without a gap. */
#include "analysis_pass.h"

/* The map that tells for whom threads waited while `holder` had the GVL. */
static struct hw_number_map *
caused_by(struct hw_pass *pass, uint32_t holder)
{
    return holder == HW_NOBODY ? &pass->process->idle_caused : &pass->analysis->threads[holder].caused;
}

static void
charge_new(struct hw_pass *pass, struct hw_number_map *caused, uint32_t index, uint64_t duration_ns)
{
    struct hw_analysis *analysis = pass->analysis;
    uint64_t *pair = NULL;
    if (analysis->pair_count < HW_ANALYSIS_PAIRS_MOST) {
        pair = hw_number_map_put(caused, index);
        if (pair) analysis->pair_count++;
        else pass->failed = true;
    }
    if (pair) *pair += duration_ns;
    else analysis->threads[index].unassigned_ns += duration_ns;
}

/* For every thread that waits, whenever the holder changes: so it looks at little memory. */
static inline void
charge(struct hw_pass *pass, struct hw_number_map *caused, struct hw_waiter *waiter)
{
    uint64_t duration_ns = pass->now_ns - waiter->charged_ns;
    if (duration_ns == 0) return;
    waiter->charged_ns = pass->now_ns;
    uint64_t *pair = hw_number_map_find(caused, waiter->index);
    if (pair) *pair += duration_ns;
    else charge_new(pass, caused, waiter->index, duration_ns);
}

void
hw_pass_becomes_ready(struct hw_pass *pass, uint32_t index)
{
    if (!hw_pass_room(pass, &pass->ready, pass->ready_count, &pass->ready_capacity, UINT32_MAX, sizeof(*pass->ready))) return;
    pass->analysis->threads[index].ready_place = pass->ready_count;
    pass->ready[pass->ready_count++] = (struct hw_waiter){ .charged_ns = pass->now_ns, .index = index };
}

void
hw_pass_leaves_ready(struct hw_pass *pass, uint32_t index)
{
    struct hw_analysed_thread *threads = pass->analysis->threads;
    uint32_t place = threads[index].ready_place;
    if (place >= pass->ready_count || pass->ready[place].index != index) return; /* there was no memory for it */
    charge(pass, caused_by(pass, pass->holder), &pass->ready[place]);
    pass->ready[place] = pass->ready[--pass->ready_count];
    threads[pass->ready[place].index].ready_place = place;
}

void
hw_pass_charge_all(struct hw_pass *pass)
{
    struct hw_number_map *caused = caused_by(pass, pass->holder);
    for (uint32_t i = 0; i < pass->ready_count; i++) charge(pass, caused, &pass->ready[i]);
}

void
hw_pass_set_holder(struct hw_pass *pass, uint32_t index)
{
    if (index == pass->holder) return;
    hw_pass_charge_all(pass);
    if (pass->holder == HW_NOBODY) pass->process->idle_ns += pass->now_ns - pass->holder_since_ns;
    pass->holder = index;
    pass->holder_since_ns = pass->now_ns;
}

/* -- blame --------------------------------------------------------------------------------------------------------------- */

/* What the holder, seen in `stack`, made others wait since its hold began or its stack was last blamed, which each one's work notes; and in
 * *longest_ns whoever waited longest. */
static uint64_t
weigh(struct hw_pass *pass, const struct hw_analysed_thread *holder, uint32_t stack, uint64_t *longest_ns)
{
    *longest_ns = 0;
    if (holder->state != HW_RUNNING) return 0;
    uint64_t since_ns = hw_later_ns(holder->since_ns, holder->sampled_ns);
    uint64_t sum_ns = 0;
    for (uint32_t i = 0; i < pass->ready_count; i++) {
        uint64_t ready_ns = pass->analysis->threads[pass->ready[i].index].since_ns;
        uint64_t wait_ns = pass->now_ns - hw_later_ns(ready_ns, since_ns);
        sum_ns += wait_ns;
        hw_pass_behind(pass, pass->ready[i].index, stack, wait_ns);
        if (wait_ns > *longest_ns) *longest_ns = wait_ns;
    }
    return sum_ns;
}

static struct hw_analysed_blame *
blame_of(struct hw_pass *pass, uint32_t index, uint32_t stack)
{
    struct hw_analysis *analysis = pass->analysis;
    struct hw_number_map *blamed = &analysis->threads[index].blamed;
    if (stack == UINT32_MAX) return NULL;
    uint64_t *place = hw_number_map_find(blamed, stack);
    if (place) return &analysis->blames[*place];

    if (!hw_pass_room(pass, &analysis->blames, analysis->blame_count, &analysis->blame_capacity, HW_ANALYSIS_BLAMES_MOST,
                      sizeof(*analysis->blames))) return NULL;
    place = hw_number_map_put(blamed, stack);
    if (!place) {
        pass->failed = true;
        return NULL;
    }
    *place = analysis->blame_count++;
    analysis->blames[*place] = (struct hw_analysed_blame){ .thread = index, .stack = stack };
    return &analysis->blames[*place];
}

void
hw_pass_blame(struct hw_pass *pass, uint32_t index, uint32_t stack)
{
    struct hw_analysis *analysis = pass->analysis;
    struct hw_analysed_thread *holder = &analysis->threads[index];
    uint64_t longest_ns;
    uint64_t weight = weigh(pass, holder, stack, &longest_ns);
    holder->sampled_ns = pass->now_ns;
    analysis->blame_samples++;
    analysis->blame_ns += weight;
    struct hw_analysed_blame *blame = blame_of(pass, index, stack);
    hw_pass_blame_work(pass, holder, blame, weight);
    if (!blame) {
        analysis->blames_folded++;
        return;
    }
    blame->weight_ns += weight;
    blame->samples++;
    if (longest_ns >= HW_LATE_NS) blame->late_ns += weight;
}
