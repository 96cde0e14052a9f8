#include "room.h"

#include <stdlib.h>
#include <string.h>

bool
hw_room(void *array, uint32_t count, uint32_t *capacity, uint32_t most, size_t size)
{
    if (count < *capacity) return true;
    if (count >= most) return false;
    uint64_t larger = *capacity ? (uint64_t)*capacity * 2 : 16;
    if (larger > most) larger = most;
    void *entries;
    memcpy(&entries, array, sizeof(entries));
    entries = realloc(entries, (size_t)larger * size);
    if (!entries) return false;
    memcpy(array, &entries, sizeof(entries));
    *capacity = (uint32_t)larger;
    return true;
}
