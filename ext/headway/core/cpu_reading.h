/* When a recording reads a thread's CPU clock: a system call, made with the GVL.
 *
 * At the end of an absence, whoever reads the trace knows by it whether the thread waited or computed without the GVL. A thread that
 * was away for long is always asked. One that keeps coming back after short absences and never computed in them is asked ever more
 * rarely: the clock goes on counting, so what it may have computed all the same is told by the next reading, for a later absence.
 *
 * At the end of a hold, once a millisecond of the thread's running at the most, it tells of what was held without computing: the
 * thread was on no processor, as others had them all, or native code slept with the GVL. */
#ifndef HW_CPU_READING_H
#define HW_CPU_READING_H

#include <stdbool.h>
#include <stdint.h>

struct hw_cpu_reading {
    uint64_t cpu_ns, running_ns; /* at the last reading after an absence: its clock, and its time with the GVL; 0: never read */
    uint64_t last_cpu_ns, last_running_ns; /* at the last reading of all */
    uint8_t pass, passed;        /* absences passed over between two readings, and since the last one */
};

/* To be asked once for each absence. */
bool hw_cpu_reading_due(struct hw_cpu_reading *reading, uint64_t away_ns);
void hw_cpu_reading_take(struct hw_cpu_reading *reading, uint64_t cpu_ns, uint64_t running_ns);

/* At the end of a hold. */
bool hw_cpu_reading_hold_due(const struct hw_cpu_reading *reading, uint64_t running_ns);
/* For how long the hold was off the processor at the least; 0: not to speak of. */
uint64_t hw_cpu_reading_take_hold(struct hw_cpu_reading *reading, uint64_t cpu_ns, uint64_t running_ns);

#endif
