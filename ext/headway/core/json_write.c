#include "json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_CAPACITY 512

void
hw_text_free(struct hw_text *text)
{
    free(text->bytes);
    *text = (struct hw_text){ .limit = text->limit };
}

void
hw_text_clear(struct hw_text *text)
{
    text->length = 0;
    text->incomplete = false;
}

static bool
make_room(struct hw_text *text, size_t length)
{
    if (text->incomplete) return false;
    size_t needed = text->length + length;
    if (needed < length || (text->limit && needed > text->limit)) {
        text->incomplete = true;
        return false;
    }
    if (needed <= text->capacity) return true;
    size_t capacity = text->capacity ? text->capacity : FIRST_CAPACITY;
    while (capacity < needed) capacity *= 2;
    char *bytes = realloc(text->bytes, capacity);
    if (bytes == NULL) {
        text->incomplete = true;
        return false;
    }
    text->bytes = bytes;
    text->capacity = capacity;
    return true;
}

void
hw_text_bytes(struct hw_text *text, const char *bytes, size_t length)
{
    if (length == 0 || !make_room(text, length)) return;
    memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
}

void
hw_text_add(struct hw_text *text, const char *string)
{
    hw_text_bytes(text, string, strlen(string));
}

void
hw_text_number(struct hw_text *text, uint64_t number)
{
    char digits[24];
    char *start = digits + sizeof(digits);
    do {
        *--start = (char)('0' + number % 10);
        number /= 10;
    } while (number);
    hw_text_bytes(text, start, (size_t)(digits + sizeof(digits) - start));
}

void
hw_text_fraction(struct hw_text *text, uint64_t number, int digits)
{
    uint64_t unit = 1;
    for (int i = 0; i < digits; i++) unit *= 10;
    hw_text_number(text, number / unit);
    number %= unit;
    if (number == 0) return;
    char decimals[24];
    int length = 0;
    decimals[length++] = '.';
    for (; number; number %= unit) {
        unit /= 10;
        decimals[length++] = (char)('0' + number / unit);
    }
    hw_text_bytes(text, decimals, (size_t)length);
}

/* The length of the UTF-8 character at `bytes`, or 0: there is none. */
static size_t
character_length(const unsigned char *bytes, size_t length)
{
    static const uint32_t lowest[] = { 0, 0, 0x80, 0x800, 0x10000 };
    unsigned char first = bytes[0];
    if (first < 0x80) return 1;
    size_t wanted = first >= 0xf0 && first < 0xf5 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 0;
    if (wanted == 0 || first >= 0xf5 || wanted > length) return 0;
    uint32_t code = first & (0xffu >> (wanted + 1));
    for (size_t i = 1; i < wanted; i++) {
        if ((bytes[i] & 0xc0) != 0x80) return 0;
        code = code << 6 | (bytes[i] & 0x3f);
    }
    bool valid = code >= lowest[wanted] && code <= 0x10ffff && !(code >= 0xd800 && code <= 0xdfff);
    return valid ? wanted : 0;
}

void
hw_text_string(struct hw_text *text, const char *string, size_t length)
{
    const unsigned char *bytes = (const unsigned char *)string;
    hw_text_add(text, "\"");
    for (size_t i = 0; i < length;) {
        size_t size = character_length(bytes + i, length - i);
        if (size == 0) {
            hw_text_add(text, "\\ufffd");
            i++;
            continue;
        }
        if (bytes[i] == '"' || bytes[i] == '\\') {
            hw_text_add(text, "\\");
        }
        else if (bytes[i] < 0x20 || bytes[i] == 0x7f) {
            char escaped[8];
            snprintf(escaped, sizeof(escaped), "\\u%04x", bytes[i]);
            hw_text_add(text, escaped);
            i++;
            continue;
        }
        hw_text_bytes(text, string + i, size);
        i += size;
    }
    hw_text_add(text, "\"");
}

void
hw_text_cstring(struct hw_text *text, const char *string)
{
    hw_text_string(text, string, strlen(string));
}

void
hw_text_key(struct hw_text *text, const char *name)
{
    if (text->length > 0 && text->bytes[text->length - 1] != '{') hw_text_add(text, ",");
    hw_text_add(text, "\"");
    hw_text_add(text, name);
    hw_text_add(text, "\":");
}
