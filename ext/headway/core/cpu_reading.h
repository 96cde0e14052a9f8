/* When a recording reads a thread's CPU clock. Whoever reads the trace knows by it whether the thread waited or computed without the
 * GVL; but it is a system call, made with the GVL. A thread that was away for long is always asked. One that keeps coming back after
 * short absences and never computed in them is asked ever more rarely: the clock goes on counting, so what it may have computed all the
 * same is told by the next reading, for a later absence. */
#ifndef HW_CPU_READING_H
#define HW_CPU_READING_H

#include <stdbool.h>
#include <stdint.h>

struct hw_cpu_reading {
    uint64_t cpu_ns, running_ns; /* at the last reading: its clock, and its time with the GVL; 0: never read */
    uint8_t pass, passed;        /* absences passed over between two readings, and since the last one */
};

/* To be asked once for each absence. */
bool hw_cpu_reading_due(struct hw_cpu_reading *reading, uint64_t away_ns);
void hw_cpu_reading_take(struct hw_cpu_reading *reading, uint64_t cpu_ns, uint64_t running_ns);

#endif
