#include "quota.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A dozen lines of a name and a number. */
#define STAT_LONGEST 1024

static uint64_t
number_after(const char *text, const char *name)
{
    const char *found = strstr(text, name);
    return found ? strtoull(found + strlen(name), NULL, 10) : 0;
}

struct hw_quota
hw_quota_read(const char *path)
{
    char text[STAT_LONGEST + 1];
    struct hw_quota none = { 0, 0 };
    if (path[0] == '\0') return none;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return none;
    ssize_t length = read(file, text, STAT_LONGEST);
    close(file);
    if (length <= 0) return none;
    text[length] = '\0';
    return (struct hw_quota){ number_after(text, "nr_periods "), number_after(text, "nr_throttled ") };
}

struct hw_quota
hw_quota_since(struct hw_quota before, struct hw_quota now)
{
    if (now.periods < before.periods || now.exhausted < before.exhausted) return now;
    return (struct hw_quota){ now.periods - before.periods, now.exhausted - before.exhausted };
}
