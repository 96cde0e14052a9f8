/* A table of strings, each kept once, numbered from 1. Bounded: when it is full a new string is HW_STRING_OTHERS. Added to
 * by one at a time (the GVL sees to that), read by anybody: strings are only ever added, and `count` is raised when they are there. */
#ifndef HW_STRINGS_H
#define HW_STRINGS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HW_STRINGS_MOST 16384
#define HW_STRINGS_BYTES (1024 * 1024)
#define HW_STRING_LONGEST 1023 /* the rest is cut off */
#define HW_STRING_OTHERS 1     /* "(others)" */

struct hw_strings {
    char *bytes;
    uint32_t *table; /* open addressing; 0: empty */
    struct hw_string_entry {
        uint32_t start, length, hash;
    } *entries;      /* of number - 1 */
    _Atomic uint32_t count;
    uint32_t used_bytes;
};

bool hw_strings_init(struct hw_strings *strings); /* false: memory is short, and every string is HW_STRING_OTHERS */
void hw_strings_free(struct hw_strings *strings);
uint32_t hw_strings_number(struct hw_strings *strings, const char *bytes, size_t length);
/* Only looks: HW_STRING_OTHERS when it isn't there. */
uint32_t hw_strings_find(const struct hw_strings *strings, const char *bytes, size_t length);
const char *hw_strings_get(const struct hw_strings *strings, uint32_t number, size_t *length);

#endif
