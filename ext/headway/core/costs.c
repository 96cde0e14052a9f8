#include "costs.h"

#include <string.h>

static uint32_t
clamp(uint64_t ns)
{
    return ns > UINT32_MAX ? UINT32_MAX : (uint32_t)ns;
}

void
hw_costs_init(struct hw_costs *costs, enum hw_costs_mode mode, uint64_t hand_over_ns, uint32_t most, uint32_t crew)
{
    memset(costs, 0, sizeof(*costs));
    costs->mode = mode;
    costs->most = most;
    costs->crew = crew;
    costs->until_ns = HW_COSTS_SHARE_NS;
    uint64_t long_ns = hand_over_ns * HW_COSTS_LONG_HAND_OVERS;
    if (long_ns < HW_COSTS_LONG_MIN_NS) long_ns = HW_COSTS_LONG_MIN_NS;
    if (long_ns > HW_COSTS_LONG_MAX_NS) long_ns = HW_COSTS_LONG_MAX_NS;
    costs->long_ns = long_ns;
}

static struct hw_place *
slot_of(struct hw_costs *costs, uint64_t key)
{
    return &costs->places[(key * UINT64_C(0x9e3779b97f4a7c15)) >> 56];
}

/* NULL when another place has taken its slot meanwhile. */
static struct hw_place *
find(struct hw_costs *costs, uint64_t key)
{
    struct hw_place *place = slot_of(costs, key);
    return place->key == key ? place : NULL;
}

static void
fill(uint32_t *ring, uint32_t ns)
{
    for (int i = 0; i < HW_COSTS_RECENT; i++) ring[i] = ns;
}

static void
meet(struct hw_place *place, uint64_t key)
{
    memset(place, 0, sizeof(*place));
    place->key = key;
    place->handed_over = true;
    fill(place->wall_ns, UINT32_MAX);
}

struct hw_place *
hw_costs_place(struct hw_costs *costs, uint64_t key)
{
    struct hw_place *place = slot_of(costs, key);
    if (place->key != key) meet(place, key);
    return place;
}

static uint32_t
longest(const uint32_t *ring)
{
    uint32_t longest = 0;
    for (int i = 0; i < HW_COSTS_RECENT; i++)
        if (ring[i] > longest) longest = ring[i];
    return longest;
}

static uint32_t
shortest(const uint32_t *ring)
{
    uint32_t shortest = UINT32_MAX;
    for (int i = 0; i < HW_COSTS_RECENT; i++)
        if (ring[i] < shortest) shortest = ring[i];
    return shortest;
}

/* By CPU time, as processors that are busy stretch the wall's. */
bool
hw_costs_light(const struct hw_place *place)
{
    return longest(place->cpu_ns) <= HW_COSTS_LIGHT_NS && shortest(place->cpu_ns) >= shortest(place->wall_ns) / 2;
}

/* The workers have enough of light operations. */
static bool
loop_helps(const struct hw_costs *costs)
{
    uint32_t under_way = costs->handed_over - costs->done, enough = 2 * costs->crew;
    return under_way >= enough || (under_way >= costs->crew && costs->elsewhere < enough);
}

/* Who waits for the loop to turn keeps what its operation uses: not too many of them. */
static bool
may_breathe(const struct hw_costs *costs, bool breathed)
{
    return !breathed && costs->elsewhere < HW_COSTS_BREATHING;
}

/* It runs on the loop, alone or because that helps. Next to what takes long, timing it costs nothing. */
static enum hw_choice
run_here(struct hw_costs *costs, struct hw_place *place, uint32_t ns)
{
    if (ns >= costs->long_ns || place->until_measure == 0) {
        place->until_measure = HW_COSTS_RECENT - 1;
        return HW_CHOICE_MEASURE;
    }
    place->until_measure--;
    costs->inline_ns += ns;
    return HW_CHOICE_INLINE;
}

static enum hw_choice
weigh(struct hw_costs *costs, struct hw_place *place, uint64_t now_ns, bool breathed)
{
    if (place->handed_over) {
        bool light = hw_costs_light(place);
        uint32_t ns = longest(light ? place->cpu_ns : place->wall_ns);
        if (costs->elsewhere >= costs->most) return HW_CHOICE_MEASURE;
        if (light ? costs->elsewhere == 0 || loop_helps(costs) : ns <= HW_COSTS_SHARE_NS && costs->elsewhere == 0) {
            if (costs->inline_ns == 0 || costs->inline_ns + ns <= HW_COSTS_SHARE_NS) return run_here(costs, place, ns);
            if (may_breathe(costs, breathed)) return HW_CHOICE_BREATHE;
        }
        return HW_CHOICE_HAND_OVER;
    }
    if (costs->inline_ns + place->cost_ns > costs->until_ns && may_breathe(costs, breathed)) return HW_CHOICE_BREATHE;
    costs->inline_ns += place->cost_ns;
    if (hw_costs_wants_time(place)) {
        bool suspicious = now_ns - place->last_ns >= costs->long_ns;
        place->last_ns = now_ns;
        if (suspicious) place->until_measure = 0;
    }
    if (place->until_measure-- > 0) return HW_CHOICE_INLINE;
    place->until_measure = HW_COSTS_MEASURE_EVERY - 1;
    return HW_CHOICE_MEASURE;
}

enum hw_choice
hw_costs_choose(struct hw_costs *costs, struct hw_place *place, uint64_t now_ns, bool breathed)
{
    enum hw_choice choice = costs->mode == HW_COSTS_NEVER    ? HW_CHOICE_INLINE
                            : costs->mode == HW_COSTS_ALWAYS ? HW_CHOICE_HAND_OVER
                                                             : weigh(costs, place, now_ns, breathed);
    costs->chosen[choice]++;
    return choice;
}

void
hw_costs_ran_inline(struct hw_costs *costs, uint64_t key, uint64_t wall_ns, uint64_t cpu_ns)
{
    struct hw_place *place = find(costs, key);
    if (place == NULL) return;
    if (place->handed_over) { /* but alone, or by a loop that helps */
        costs->inline_ns += wall_ns;
        hw_costs_ran_on_worker(costs, key, wall_ns, cpu_ns);
        return;
    }
    if (wall_ns < costs->long_ns) {
        place->cost_ns = clamp(place->cost_ns - place->cost_ns / 8 + wall_ns / 8);
        return;
    }
    costs->inline_ns += wall_ns;
    place->handed_over = true;
    place->until_measure = 0;
    fill(place->wall_ns, clamp(wall_ns));
    fill(place->cpu_ns, clamp(wall_ns));
}

void
hw_costs_ran_on_worker(struct hw_costs *costs, uint64_t key, uint64_t wall_ns, uint64_t cpu_ns)
{
    struct hw_place *place = find(costs, key);
    if (place == NULL) return;
    place->wall_ns[place->next] = clamp(wall_ns);
    place->cpu_ns[place->next] = clamp(cpu_ns);
    place->next = (place->next + 1) % HW_COSTS_RECENT;
    uint32_t wall = shortest(place->wall_ns), cpu = longest(place->cpu_ns);
    if (!place->handed_over) {
        place->handed_over = cpu >= costs->long_ns;
        if (place->handed_over) place->until_measure = 0;
        return;
    }
    uint32_t cost = cpu > wall ? cpu : wall;
    if (cost >= costs->long_ns / 2) return;
    place->handed_over = false;
    place->cost_ns = cost;
    place->until_measure = 0;
}
