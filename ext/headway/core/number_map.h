/* A hash table of numbers below UINT32_MAX to 64-bit values, for numbers that mostly count up: small numbers hash to themselves,
 * so those in a row lie in a row. Numbers are never taken out again. */
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

/* NULL when it isn't there. */
uint64_t *hw_number_map_find(const struct hw_number_map *map, uint32_t number);

/* Its value, 0 for a new one; NULL when memory is short. Valid until the next put. */
uint64_t *hw_number_map_put(struct hw_number_map *map, uint32_t number);

#endif
