#include "number_map.h"

#include <stdlib.h>
#include <string.h>

void
hw_number_map_free(struct hw_number_map *map)
{
    free(map->keys);
    free(map->values);
    memset(map, 0, sizeof(*map));
}

/* Where the number is, or where it would go. There always is a free slot. */
static uint32_t
slot_of(const struct hw_number_map *map, uint32_t number)
{
    uint32_t mask = map->slots - 1;
    uint32_t key = number + 1;
    uint32_t slot = hw_number_map_first_slot(map, number);
    /* Triangular steps reach every slot, and leave a crowded stretch sooner than single ones. */
    for (uint32_t step = 1; map->keys[slot] != 0 && map->keys[slot] != key; step++) slot = (slot + step) & mask;
    return slot;
}

static bool
grow(struct hw_number_map *map)
{
    struct hw_number_map larger = { .slots = map->slots ? map->slots * 2 : 4 };
    larger.keys = calloc(larger.slots, sizeof(*larger.keys));
    larger.values = calloc(larger.slots, sizeof(*larger.values));
    if (!larger.keys || !larger.values) {
        hw_number_map_free(&larger);
        return false;
    }
    for (uint32_t i = 0; i < map->slots; i++) {
        if (map->keys[i] == 0) continue;
        uint32_t slot = slot_of(&larger, map->keys[i] - 1);
        larger.keys[slot] = map->keys[i];
        larger.values[slot] = map->values[i];
    }
    larger.count = map->count;
    hw_number_map_free(map);
    *map = larger;
    return true;
}

uint64_t *
hw_number_map_search(const struct hw_number_map *map, uint32_t number)
{
    uint32_t slot = slot_of(map, number);
    return map->keys[slot] ? &map->values[slot] : NULL;
}

uint64_t *
hw_number_map_put(struct hw_number_map *map, uint32_t number)
{
    uint64_t *there = hw_number_map_find(map, number);
    if (there) return there;
    if (map->count + 1 > map->slots / 2 && !grow(map)) return NULL;
    uint32_t slot = slot_of(map, number);
    map->keys[slot] = number + 1;
    map->count++;
    return &map->values[slot];
}
