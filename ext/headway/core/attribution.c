#include "attribution.h"

#include "thread.h"

#include <string.h>

static void
advance(struct hw_attribution *a, uint64_t now)
{
    if (now <= a->now_ns) return;
    uint64_t passed_ns = now - a->now_ns;
    a->now_ns = now;
    a->held_ns[a->holder] += passed_ns;
    a->caused_ns[a->holder] += passed_ns * a->waiting;
}

/* Since the lonely thread's wait began, nobody has held the GVL. */
static void
end_loneliness(struct hw_attribution *a)
{
    struct hw_waits *alone = a->alone;
    a->alone = NULL;
    memcpy(alone->held_before_ns, a->held_ns, sizeof(a->held_ns));
    alone->held_before_ns[HW_SLOT_NOBODY] -= a->now_ns - alone->since_ns;
}

static void
add_difference(uint64_t *restrict sum, const uint64_t *restrict after, const uint64_t *restrict before, unsigned count)
{
    for (unsigned i = 0; i < count; i += HW_SLOTS_STEP) {
        for (unsigned lane = i; lane < i + HW_SLOTS_STEP; lane++) sum[lane] += after[lane] - before[lane];
    }
}

/* -- slots -------------------------------------------------------------------------------------------------------------- */

static uint8_t
find_slot(const struct hw_attribution *a)
{
    uint8_t ended = HW_SLOT_OTHERS;
    for (uint8_t slot = HW_SLOT_OTHERS + 1; slot < HW_SLOTS; slot++) {
        if (a->owners[slot].number == 0) return slot;
        bool older = ended == HW_SLOT_OTHERS || a->owners[slot].number < a->owners[ended].number;
        if (!a->owners[slot].living && older) ended = slot;
    }
    return ended;
}

static void
move(uint64_t *figures, uint8_t slot)
{
    figures[HW_SLOT_OTHERS] += figures[slot];
    figures[slot] = 0;
}

/* What is known of an ended thread goes to the others. held_ns stays: those that wait compare with it. */
static void
vacate(struct hw_attribution *a, uint8_t slot, struct hw_thread *threads)
{
    if (a->alone) end_loneliness(a);
    if (a->holder == HW_SLOT_OTHERS) a->sampled_ns += a->caused_ns[slot];
    move(a->caused_ns, slot);
    for (struct hw_thread *thread = threads; thread; thread = thread->next) {
        struct hw_waits *waits = &thread->waits;
        move(waits->waited_ns, slot);
        if (!waits->waiting) continue;
        waits->held_before_ns[HW_SLOT_OTHERS] -= a->held_ns[slot] - waits->held_before_ns[slot];
        waits->held_before_ns[slot] = a->held_ns[slot];
    }
}

void
hw_attribution_add(struct hw_attribution *a, struct hw_thread *thread, struct hw_thread *threads)
{
    uint8_t slot = find_slot(a);
    thread->waits.slot = slot;
    thread->waits.waiting = false;
    if (slot == HW_SLOT_OTHERS) return;
    if (a->owners[slot].number != 0) vacate(a, slot, threads);
    a->owners[slot] = (struct hw_slot_owner){ .number = thread->number, .living = true };
    while (a->used <= slot) a->used += HW_SLOTS_STEP;
}

void
hw_attribution_remove(struct hw_attribution *a, struct hw_thread *thread)
{
    uint8_t slot = thread->waits.slot;
    if (slot == HW_SLOT_OTHERS) return;
    a->owners[slot].living = false;
    a->owners[slot].ended = thread->ended;
}

/* -- waits and holds ---------------------------------------------------------------------------------------------------- */

void
hw_attribution_wait_starts(struct hw_attribution *a, struct hw_thread *thread, uint64_t now)
{
    struct hw_waits *waits = &thread->waits;
    if (waits->waiting) return;
    advance(a, now);
    if (a->alone) end_loneliness(a);
    waits->waiting = true;
    waits->since_ns = a->now_ns;
    if (a->waiting == 0) a->pressed_ns = a->now_ns;
    if (a->waiting++ == 0 && a->holder == HW_SLOT_NOBODY) a->alone = waits;
    else memcpy(waits->held_before_ns, a->held_ns, a->used * sizeof(uint64_t));
}

void
hw_attribution_wait_ends(struct hw_attribution *a, struct hw_thread *thread, uint64_t now)
{
    struct hw_waits *waits = &thread->waits;
    if (!waits->waiting) return;
    advance(a, now);
    waits->waiting = false;
    a->waiting--;
    if (a->alone == waits) {
        a->alone = NULL;
        waits->waited_ns[HW_SLOT_NOBODY] += a->now_ns - waits->since_ns;
        return;
    }
    add_difference(waits->waited_ns, a->held_ns, waits->held_before_ns, a->used);
}

void
hw_attribution_wait_void(struct hw_attribution *a, struct hw_thread *thread, uint64_t now)
{
    struct hw_waits *waits = &thread->waits;
    if (!waits->waiting) return;
    advance(a, now);
    waits->waiting = false;
    a->waiting--;
    if (a->alone == waits) a->alone = NULL;
}

static void
change_holder(struct hw_attribution *a, uint8_t slot, uint64_t now)
{
    advance(a, now);
    if (a->alone) end_loneliness(a);
    a->holder = slot;
    a->sampled_ns = a->caused_ns[slot];
    a->pressed_ns = a->now_ns;
}

void
hw_attribution_hold_starts(struct hw_attribution *a, const struct hw_thread *thread, uint64_t now)
{
    change_holder(a, thread->waits.slot, now);
}

void
hw_attribution_hold_ends(struct hw_attribution *a, uint64_t now)
{
    change_holder(a, HW_SLOT_NOBODY, now);
}

/* -- asked -------------------------------------------------------------------------------------------------------------- */

uint64_t
hw_attribution_sample(struct hw_attribution *a, uint64_t now)
{
    advance(a, now);
    if (a->holder == HW_SLOT_NOBODY) return 0;
    uint64_t weight_ns = a->caused_ns[a->holder] - a->sampled_ns;
    a->sampled_ns = a->caused_ns[a->holder];
    if (a->now_ns - a->pressed_ns >= HW_LATE_NS) a->late_ns += weight_ns;
    a->pressed_ns = a->now_ns;
    return weight_ns;
}

void
hw_attribution_copy(struct hw_attribution *a, const struct hw_thread *thread, uint64_t now, uint64_t waited_ns[HW_SLOTS])
{
    const struct hw_waits *waits = &thread->waits;
    advance(a, now);
    memcpy(waited_ns, waits->waited_ns, sizeof(waits->waited_ns));
    if (!waits->waiting) return;
    if (a->alone) end_loneliness(a);
    add_difference(waited_ns, a->held_ns, waits->held_before_ns, a->used);
}

void
hw_attribution_reset(struct hw_attribution *a, struct hw_thread *threads, uint64_t now)
{
    advance(a, now);
    if (a->alone) end_loneliness(a);
    memset(a->caused_ns, 0, sizeof(a->caused_ns));
    a->sampled_ns = a->late_ns = 0;
    a->pressed_ns = a->now_ns;
    for (struct hw_thread *thread = threads; thread; thread = thread->next) {
        struct hw_waits *waits = &thread->waits;
        memset(waits->waited_ns, 0, sizeof(waits->waited_ns));
        if (!waits->waiting) continue;
        waits->since_ns = a->now_ns;
        memcpy(waits->held_before_ns, a->held_ns, sizeof(a->held_ns));
    }
}

void
hw_attribution_init(struct hw_attribution *a)
{
    memset(a, 0, sizeof(*a));
    a->used = HW_SLOTS_STEP;
}
