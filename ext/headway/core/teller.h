/* What native threads can tell of a recording without Ruby, for the files they write and the recordings they end: threads by the
 * names of their native ones, frames as far as Ruby has named them. When some have no name yet, a postponed job is asked for that
 * looks them up; it is waited for a moment, and not at all while everybody sleeps. The writer of a stream, whose process may be
 * killed, neither waits nor cares who sleeps: it asks, and asks again. */
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
    void (*trigger)(void); /* any thread: makes Ruby look up the names of frames, and see that something records, soon */
    bool many_to_many;     /* threads share native ones: these have no names of theirs */
};

/* Locks not held, in all of these. False: nobody knows. */
bool hw_teller_name(const struct hw_teller *teller, const struct hw_naming *naming, char *name, size_t capacity);

void hw_teller_ask(const struct hw_teller *teller);   /* for names of frames that have none */
void hw_teller_await(const struct hw_teller *teller); /* asks, until all have one; a tenth of a second at the most */

/* A dump of the flight recorder, announced before. 0 or an errno. */
int hw_teller_dump(const struct hw_teller *teller, const char *path);
/* A stream that goes on: what has become known since the last time, and names are asked for. Costs next to nothing when that is
 * nothing. On the writer, which knows that the recording stays. */
void hw_teller_keep_up(const struct hw_teller *teller, uint64_t now);
/* A stream that is ending: what its file doesn't say yet. */
void hw_teller_complete(const struct hw_teller *teller);

#endif
