#include "strings.h"

#include <stdlib.h>
#include <string.h>

#define TABLE_SIZE (HW_STRINGS_MOST * 2)

bool
hw_strings_init(struct hw_strings *s)
{
    memset(s, 0, sizeof(*s));
    s->bytes = calloc(HW_STRINGS_BYTES, 1);
    s->table = calloc(TABLE_SIZE, sizeof(*s->table));
    s->entries = calloc(HW_STRINGS_MOST, sizeof(*s->entries));
    if (s->bytes == NULL || s->table == NULL || s->entries == NULL) {
        hw_strings_free(s);
        return false;
    }
    hw_strings_number(s, "(others)", 8);
    return true;
}

void
hw_strings_free(struct hw_strings *s)
{
    free(s->bytes);
    free(s->table);
    free(s->entries);
    memset(s, 0, sizeof(*s));
}

/* FNV-1a */
static uint32_t
hash_of(const char *bytes, size_t length)
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < length; i++) hash = (hash ^ (uint8_t)bytes[i]) * 16777619u;
    return hash;
}

/* The place in the table where the string is, or would be. */
static uint32_t
place_of(const struct hw_strings *s, const char *bytes, size_t length, uint32_t hash)
{
    uint32_t place = hash % TABLE_SIZE;
    for (; s->table[place]; place = (place + 1) % TABLE_SIZE) {
        const struct hw_string_entry *entry = &s->entries[s->table[place] - 1];
        if (entry->hash == hash && entry->length == length && memcmp(s->bytes + entry->start, bytes, length) == 0) break;
    }
    return place;
}

uint32_t
hw_strings_number(struct hw_strings *s, const char *bytes, size_t length)
{
    if (s->table == NULL) return HW_STRING_OTHERS;
    if (length > HW_STRING_LONGEST) length = HW_STRING_LONGEST;
    uint32_t hash = hash_of(bytes, length);
    uint32_t place = place_of(s, bytes, length, hash);
    if (s->table[place]) return s->table[place];
    uint32_t count = s->count;
    if (count == HW_STRINGS_MOST || s->used_bytes + length > HW_STRINGS_BYTES) return HW_STRING_OTHERS;
    s->entries[count] = (struct hw_string_entry){ s->used_bytes, (uint32_t)length, hash };
    memcpy(s->bytes + s->used_bytes, bytes, length);
    s->used_bytes += (uint32_t)length;
    s->table[place] = ++count;
    s->count = count;
    return count;
}

uint32_t
hw_strings_find(const struct hw_strings *s, const char *bytes, size_t length)
{
    if (s->table == NULL) return HW_STRING_OTHERS;
    if (length > HW_STRING_LONGEST) length = HW_STRING_LONGEST;
    uint32_t found = s->table[place_of(s, bytes, length, hash_of(bytes, length))];
    return found ? found : HW_STRING_OTHERS;
}

const char *
hw_strings_get(const struct hw_strings *s, uint32_t number, size_t *length)
{
    if (number == 0 || number > s->count) {
        *length = 0;
        return "";
    }
    *length = s->entries[number - 1].length;
    return s->bytes + s->entries[number - 1].start;
}
