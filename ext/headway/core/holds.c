#include "holds.h"

#include <stdlib.h>
#include <string.h>

bool
hw_lane_next(struct hw_lane_walk *walk)
{
    while (walk->at < walk->end) {
        uint64_t number = 0;
        for (unsigned shift = 0;; shift += 7) {
            if (walk->at == walk->end || shift > 63) return false;
            uint8_t byte = *walk->at++;
            number |= (uint64_t)(byte & 127) << shift;
            if (byte < 128) break;
        }
        walk->from = walk->to;
        walk->to += number >> 2;
        walk->state = number & 3;
        if (walk->to > walk->from) return true;
    }
    return false;
}

void
hw_holds_free(struct hw_holds *holds)
{
    free(holds->list);
    free(holds->place);
    free(holds->shares);
    memset(holds, 0, sizeof(*holds));
}

static bool
append(struct hw_holds *holds, struct hw_hold hold)
{
    if (holds->count == holds->capacity) {
        size_t capacity = holds->capacity ? holds->capacity * 2 : 256;
        struct hw_hold *list = realloc(holds->list, capacity * sizeof(*list));
        if (list == NULL) return false;
        holds->list = list;
        holds->capacity = capacity;
    }
    holds->list[holds->count++] = hold;
    return true;
}

bool
hw_holds_add(struct hw_holds *holds, uint32_t owner, const uint8_t *bytes, size_t length, uint64_t start_unit)
{
    struct hw_lane_walk walk = hw_lane_walk(bytes, length, start_unit);
    if (owner >= holds->owners) holds->owners = owner + 1;
    while (hw_lane_next(&walk)) {
        if (walk.state == HW_LANE_RUNNING && !append(holds, (struct hw_hold){ walk.from, walk.to, owner })) return false;
    }
    return true;
}

static int
earlier(const void *a, const void *b)
{
    const struct hw_hold *left = a, *right = b;
    if (left->from != right->from) return left->from < right->from ? -1 : 1;
    return (left->owner > right->owner) - (left->owner < right->owner);
}

bool
hw_holds_ready(struct hw_holds *holds)
{
    if (holds->count) qsort(holds->list, holds->count, sizeof(*holds->list), earlier);
    holds->place = calloc((size_t)holds->owners + 1, sizeof(*holds->place));
    holds->shares = calloc((size_t)holds->owners + 1, sizeof(*holds->shares)); /* and one for nobody */
    holds->sorted = holds->place && holds->shares;
    return holds->sorted;
}

/* The place of the last hold that begins no later than `from`, or the first. */
static size_t
place_of(const struct hw_holds *holds, uint64_t from)
{
    size_t low = 0, high = holds->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (holds->list[middle].from <= from) low = middle + 1;
        else high = middle;
    }
    return low ? low - 1 : 0;
}

/* Few, and mostly in order: by insertion; many: by merging, which keeps the order of equals, too. */
#define FEW 16

static void
sort(struct hw_share *shares, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        struct hw_share share = shares[i];
        size_t at = i;
        for (; at > 0 && shares[at - 1].units < share.units; at--) shares[at] = shares[at - 1];
        shares[at] = share;
    }
}

static int
longer(const void *a, const void *b)
{
    const struct hw_share *left = a, *right = b;
    if (left->units != right->units) return left->units > right->units ? -1 : 1;
    return (left->owner > right->owner) - (left->owner < right->owner);
}

size_t
hw_holds_during(struct hw_holds *holds, uint64_t from, uint64_t to)
{
    struct hw_share *shares = holds->shares;
    size_t count = 0;
    uint64_t unheld = to - from;
    for (size_t i = place_of(holds, from); i < holds->count && holds->list[i].from < to; i++) {
        const struct hw_hold *hold = &holds->list[i];
        uint64_t begin = hold->from > from ? hold->from : from, end = hold->to < to ? hold->to : to;
        if (end <= begin) continue;
        size_t *place = &holds->place[hold->owner];
        if (*place == 0) {
            shares[count++] = (struct hw_share){ 0, hold->owner };
            *place = count;
        }
        shares[*place - 1].units += end - begin;
        unheld -= end - begin < unheld ? end - begin : unheld;
    }
    for (size_t i = 0; i < count; i++) holds->place[shares[i].owner] = 0;
    if (unheld > 0) shares[count++] = (struct hw_share){ unheld, HW_NOBODY_HOLDS };
    if (count > FEW) qsort(shares, count, sizeof(*shares), longer);
    else sort(shares, count);
    return count;
}
