#ifndef HW_TEST_JSON_TEXT_H
#define HW_TEST_JSON_TEXT_H

#include <string.h>

/* JSON is easier to read with other quotes: ' for ", and ~ for a backslash. Kept for the test's time. */
static const char *
J(const char *text)
{
    static _Thread_local char pool[16384];
    static _Thread_local size_t used;
    if (used + strlen(text) + 1 > sizeof(pool)) used = 0;
    char *copy = strcpy(pool + used, text);
    used += strlen(text) + 1;
    for (char *at = copy; *at; at++) *at = *at == '\'' ? '"' : *at == '~' ? '\\' : *at;
    return copy;
}

#endif
