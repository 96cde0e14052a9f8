/* What operations cost, by the place they are called from, and so whether one is worth a hand-over to another thread.
 *
 * A hand-over costs some 10 to 40 us, a File.stat one: an operation is handed over when the hand-over adds a fifth to it at most, for
 * which another processor does it meanwhile (with a twentieth, where a hand-over took 35 us, six deflates ran one after another on the
 * loop). The others run inline, as if there were no pool. Three things keep the event loop breathing all the same:
 * - a place nothing is known of is handed over, so that it can't be a long operation that is tried inline first;
 * - one in MEASURE_EVERY inline operations of a place is timed, and one that comes suspiciously long after those before; a single long one
 *   has its place handed over from then on, until the last RECENT of its operations on workers were short (hysteresis);
 * - when the inline operations since the loop's last turn add up to SHARE_NS, the next one is told to let the loop turn first, which
 *   costs a tenth of a hand-over.
 *
 * A hand-over wins nothing while no other operation is under way: one that is worth it, but is known to fit into that share, then runs
 * inline, too. Nor does it once the processors beside the loop's have enough to do: of light operations, those that do nothing but
 * compute and take LIGHT_NS at most, one of which a turn has room for, as many are handed over as these can work at, and each has one
 * more in its line so that it need not wait for the loop. What comes then runs inline; the loop's own processor would otherwise be shared
 * by a worker and a loop that only wakes and hands over. The one in line is left out while there are so few operations that the loop
 * would have none of its own.
 *
 * A worker's wall time includes its wait for the GVL, which says nothing of the operation. So CPU time counts as it is, and of wall
 * times only the shortest of the last few. Places are a small hash table without buckets: of two that collide, the later one stays.
 *
 * No locks: everything is called with the GVL. */
#ifndef HW_COSTS_H
#define HW_COSTS_H

#include <stdbool.h>
#include <stdint.h>

enum {
    HW_COSTS_PLACES = 256,
    HW_COSTS_RECENT = 4,
    HW_COSTS_MEASURE_EVERY = 249,
    HW_COSTS_SHARE_NS = 500000,
    HW_COSTS_LIGHT_NS = 1000000,
    HW_COSTS_BREATHING = 64,
    HW_COSTS_LONG_MIN_NS = 100000,
    HW_COSTS_LONG_MAX_NS = 500000,
    HW_COSTS_LONG_HAND_OVERS = 5,
};

enum hw_costs_mode { HW_COSTS_ADAPTIVE, HW_COSTS_ALWAYS, HW_COSTS_NEVER };

/* BREATHE: let the loop turn, then choose again. */
enum hw_choice { HW_CHOICE_INLINE, HW_CHOICE_MEASURE, HW_CHOICE_HAND_OVER, HW_CHOICE_BREATHE, HW_CHOICES };

struct hw_place {
    uint64_t key; /* 0: free */
    uint64_t last_ns; /* when it was last asked for with a time */
    uint32_t cost_ns; /* what one of its operations takes inline, on average of the last ones that were timed */
    uint8_t until_measure; /* operations until the next one is timed */
    bool handed_over; /* as a rule */
    uint8_t note; /* the caller's, of the place; 0 when it is new */
    uint8_t next; /* of the two below, a ring each */
    uint32_t wall_ns[HW_COSTS_RECENT];
    uint32_t cpu_ns[HW_COSTS_RECENT];
};

struct hw_costs {
    enum hw_costs_mode mode; /* whether anything is weighed at all, or all handed over, or nothing */
    uint64_t long_ns; /* from here on an operation is worth a hand-over */
    uint64_t inline_ns; /* what operations took inline since the loop's last turn */
    uint64_t until_ns; /* from so much of that on the next one of a stream is told to let the loop turn first */
    uint32_t turns; /* of the loop, as far as somebody told of them */
    uint32_t crew; /* workers for which there are processors beside the loop's */
    uint32_t most; /* when so many are elsewhere all others run inline: each takes memory until it is back */
    uint32_t elsewhere; /* operations that are handed over, and those whose fibers let the loop turn; the caller counts them */
    uint32_t handed_over; /* of these: handed over, until their fibers are back */
    uint32_t done; /* of these: their workers are done. One too many for each that was given up, until none is handed over */
    uint64_t chosen[HW_CHOICES];
    struct hw_place places[HW_COSTS_PLACES];
};

void hw_costs_init(struct hw_costs *costs, enum hw_costs_mode mode, uint64_t hand_over_ns, uint32_t most, uint32_t crew);

/* A clock read at every inline operation is one too many for the shortest: it is asked for at every fourth. */
static inline bool
hw_costs_wants_time(const struct hw_place *place)
{
    return place->until_measure % 4 == 0;
}

/* key: of the place, not 0. Valid until the next call. */
struct hw_place *hw_costs_place(struct hw_costs *costs, uint64_t key);

/* now_ns: counts only where hw_costs_wants_time; breathed: the loop just turned for this operation, so that it need not again. */
enum hw_choice hw_costs_choose(struct hw_costs *costs, struct hw_place *place, uint64_t now_ns, bool breathed);

/* Whether such an operation only computes, and not for long. */
bool hw_costs_light(const struct hw_place *place);

/* cpu_ns: counts only where the place is handed over as a rule. */
void hw_costs_ran_inline(struct hw_costs *costs, uint64_t key, uint64_t wall_ns, uint64_t cpu_ns);
void hw_costs_ran_on_worker(struct hw_costs *costs, uint64_t key, uint64_t wall_ns, uint64_t cpu_ns);

/* The loop turned. */
static inline void
hw_costs_turned(struct hw_costs *costs)
{
    costs->inline_ns = 0;
    costs->until_ns = HW_COSTS_SHARE_NS;
    costs->turns++;
}

/* A fiber is back that waited since there had been so many turns: there was one since, whether or not the loop can tell. Of the
 * share it gets as much as those that wait for the loop to turn: the first of them would else have it all, turn after turn. */
static inline void
hw_costs_back_since(struct hw_costs *costs, uint32_t turns)
{
    if (costs->turns == turns) hw_costs_turned(costs);
    costs->until_ns = costs->inline_ns + HW_COSTS_SHARE_NS / (costs->elsewhere - costs->handed_over + 1);
}

#endif
