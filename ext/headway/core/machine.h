/* What a forced switch costs on this machine before Ruby comes in: a signal to a thread that runs on another core, and the
 * waking of a thread that has just gone to sleep. On virtual machines both are interrupts between cores that the host has to
 * deliver; no scheduler of threads gets below their sum. */
#ifndef HW_MACHINE_H
#define HW_MACHINE_H

#include "clock.h"

#include <stdbool.h>

struct hw_machine_floor {
    uint64_t signal_ns, wake_ns; /* medians */
};

/* Uses SIGURG, whose handler it restores; takes about 1.5 ms a round. False when no thread could be started, or it gave no answer for a
 * second. */
bool hw_machine_measure(unsigned rounds, struct hw_machine_floor *floor);

#endif
