/* A hash table of numbers below UINT32_MAX to 64-bit values, for numbers that mostly count up: small numbers hash to
 * themselves, so those in a row lie in a row. Numbers are never taken out again. */
#ifndef HW_NUMBER_MAP_H
#define HW_NUMBER_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hw_number_map {
    uint32_t count;
    uint32_t slots; /* 0 or a power of two */
    uint32_t *keys; /* number + 1; 0: free */
    uint64_t *values;
};

void hw_number_map_free(struct hw_number_map *map);

/* Where a number goes unless another has its place. */
static inline uint32_t
hw_number_map_first_slot(const struct hw_number_map *map, uint32_t number)
{
    return (number + (number >> 16) * UINT32_C(0x9e3779b1)) & (map->slots - 1);
}

uint64_t *hw_number_map_search(const struct hw_number_map *map, uint32_t number);

/* NULL when it isn't there. */
static inline uint64_t *
hw_number_map_find(const struct hw_number_map *map, uint32_t number)
{
    if (map->slots == 0) return NULL;
    uint32_t slot = hw_number_map_first_slot(map, number);
    return map->keys[slot] == number + 1 ? &map->values[slot] : hw_number_map_search(map, number);
}

/* Its value, 0 for a new one; NULL when memory is short. Valid until the next put. */
uint64_t *hw_number_map_put(struct hw_number_map *map, uint32_t number);

#endif
