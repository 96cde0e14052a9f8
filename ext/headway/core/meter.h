/* What one thread did with its time: holding the GVL, waiting for it, and away from it, the last apart by what for: I/O, computing
 * without the GVL, and releases too short to be of use to anybody. Time in which it could have run but the machine had no core for it
 * is kept apart, so that the rest is what it would be on an idle machine. Plain data, told of the thread's states by its owner. */
#ifndef HW_METER_H
#define HW_METER_H

#include "thread.h"

/* A shorter release is over before another thread could have used the GVL: handing it over and back costs some 10 us. */
#define HW_METER_WASTEFUL_NS (50 * HW_NS_PER_US)

/* The clocks of the metered thread. What it took to read them counts as nothing. */
struct hw_meter_reading {
    uint64_t begin_ns, end_ns; /* of reading */
    uint64_t cpu_ns;           /* of the thread */
    uint64_t coreless_ns;      /* how long it could have run and had no core */
    bool own;                  /* read by the thread itself; else the two above mean nothing */
};

struct hw_meter {
    bool knows_coreless; /* the system tells */
    enum hw_state state;
    struct hw_meter_reading since; /* when it entered the state */
    uint64_t running_ns, ready_ns;
    uint64_t io_ns, free_cpu_ns, wasteful_ns;
    uint64_t coreless_ns;
    uint64_t releases, wasteful;
};

/* The thread runs now. */
void hw_meter_start(struct hw_meter *meter, struct hw_meter_reading reading, bool knows_coreless);
/* It enters a state, or is read: time up to here is counted. */
void hw_meter_enter(struct hw_meter *meter, enum hw_state state, struct hw_meter_reading reading);

#endif
