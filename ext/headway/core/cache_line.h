/* What an event changes lies in whatever processor had the event before, and comes from there a line at a time: most of what an
 * event costs. So what every event changes lies together, and is asked for at once before the first of it is needed. */
#ifndef HW_CACHE_LINE_H
#define HW_CACHE_LINE_H

#include <stddef.h>

#define HW_CACHE_LINE 64

/* The lines that hold these bytes will be written. */
static inline void
hw_fetch(const void *from, size_t size)
{
    for (size_t at = 0; at < size; at += HW_CACHE_LINE) __builtin_prefetch((const char *)from + at, 1);
}

#endif
