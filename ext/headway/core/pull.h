/* Pulling: whoever is woken by a thread that is about to sleep is woken on that one's processor.
 *
 * A system wakes a thread on an idle processor where there is one; and where threads take turns with one lock there mostly is. Then
 * each turn costs an interrupt from processor to processor, which may have to leave a deep sleep, and all that the threads share is
 * fetched from one cache into another. On a virtual machine that took 75 to 90 µs a turn, and with 2 MB in use a millisecond of slower
 * code after it; on one processor 7 µs and nothing. No flag of a futex asks for that, so the sleeper is bound to the waker's processor
 * until it runs: then it gives itself back what it had, and the system may move it as ever.
 *
 * Only who sleeps, and is to be woken by what the caller does next before it goes to sleep itself, is pulled. Where it comes otherwise
 * (the caller goes on, another one gets the GVL) the runtime lets it go again at once. Nobody creates a thread or a process while bound.
 *
 *   hw_pull       the waker; the sleeper can't get on meanwhile: the caller has the GVL it waits for, or holds the lock it needs
 *   hw_pull_ends  the sleeper, as soon as it runs; for all that still sleep hw_runtime_stop, likewise
 *
 * Linux's alone; elsewhere nobody is ever pulled. Rejected: binding all of a process's threads to one processor, which denies the
 * others to those that compute without the GVL. */
#ifndef HW_PULL_H
#define HW_PULL_H

#include <stdbool.h>

struct hw_thread;

#define HW_PROCESSORS_MOST 1024 /* a kernel that knows more of them refuses so short a mask: nobody is pulled there */
#define HW_PROCESSOR_WORDS (HW_PROCESSORS_MOST / (8 * sizeof(unsigned long)))

struct hw_processors {
    unsigned long bits[HW_PROCESSOR_WORDS];
};

struct hw_pull {
    bool pulled;
    int to;                      /* the processor */
    struct hw_processors before; /* where it may run otherwise */
};

/* Whether threads can be pulled here; after hw_allowed_find. */
bool hw_pull_possible(void);

/* False: it was not, as it has the processor anyway, or the system says no. */
bool hw_pull(struct hw_thread *sleeper);
void hw_pull_ends(struct hw_thread *sleeper); /* does nothing when it isn't pulled */

#endif
