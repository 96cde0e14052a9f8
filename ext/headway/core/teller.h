/* What native threads can tell of a recording without Ruby, for the files they write and the recordings they end: threads by the names of
 * their native ones, stacks as they are in the table. */
#ifndef HW_TELLER_H
#define HW_TELLER_H

#include "runtime.h"
#include "stacks.h"
#include "strings.h"

struct hw_naming;

struct hw_teller {
    struct hw_runtime *runtime;
    const struct hw_strings *strings;
    const struct hw_stacks *stacks;
    bool many_to_many; /* threads share native ones: these have no names of theirs */
};

/* Locks not held, in all of these. False: nobody knows. */
bool hw_teller_name(const struct hw_teller *teller, const struct hw_naming *naming, char *name, size_t capacity);

/* A dump of the flight recorder, announced before. 0 or an errno. */
int hw_teller_dump(const struct hw_teller *teller, const char *path);
/* A stream that goes on: what has become known since the last time. Costs next to nothing when that is nothing. On the writer, which
 * knows that the recording stays. */
void hw_teller_keep_up(const struct hw_teller *teller, uint64_t now);
/* A stream that is ending: what its file doesn't say yet. */
void hw_teller_complete(const struct hw_teller *teller);

#endif
