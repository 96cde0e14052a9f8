/* What an event changes lies in whatever processor had the event before, and comes from there a line at a time: most of what an
 * event costs. So what every event changes lies together, and is asked for at once before the first of it is needed. */
#ifndef HW_CACHE_LINE_H
#define HW_CACHE_LINE_H

#define HW_CACHE_LINE 64

/* The lines that hold the bytes up to `end` will be written. */
static inline void
hw_fetch(const void *from, const void *end)
{
    for (const char *at = from; at < (const char *)end; at += HW_CACHE_LINE) __builtin_prefetch(at, 1);
}

/* They will be read, and stay with the other processors, too. */
static inline void
hw_fetch_to_read(const void *from, const void *end)
{
    for (const char *at = from; at < (const char *)end; at += HW_CACHE_LINE) __builtin_prefetch(at, 0);
}

#endif
