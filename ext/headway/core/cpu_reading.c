#include "cpu_reading.h"

#include "clock.h"

#define NEVER_BELOW_NS (200 * HW_NS_PER_US)
#define ALWAYS_FROM_NS (2 * HW_NS_PER_MS)
#define PASS_MOST 15
#define HELD_LEAST_NS (1 * HW_NS_PER_MS)
/* What the clock may gain beyond the time with the GVL though nothing was computed: the way into a system call and out of it. And what
 * it may lack though the thread was on a processor: the events around a hold take their times before the clock is read. */
#define SLIGHT_NS (50 * HW_NS_PER_US)

bool
hw_cpu_reading_due(struct hw_cpu_reading *reading, uint64_t away_ns)
{
    if (away_ns < NEVER_BELOW_NS) return false;
    return away_ns >= ALWAYS_FROM_NS || reading->passed++ >= reading->pass;
}

void
hw_cpu_reading_take(struct hw_cpu_reading *reading, uint64_t cpu_ns, uint64_t running_ns)
{
    uint64_t gained_ns = hw_elapsed_ns(reading->cpu_ns, cpu_ns), held_ns = hw_elapsed_ns(reading->running_ns, running_ns);
    bool computed = reading->cpu_ns == 0 || hw_elapsed_ns(held_ns, gained_ns) > (reading->passed + 1) * SLIGHT_NS;
    reading->pass = computed ? 0 : reading->pass < PASS_MOST ? reading->pass * 2 + 1 : PASS_MOST;
    reading->passed = 0;
    reading->cpu_ns = reading->last_cpu_ns = cpu_ns;
    reading->running_ns = reading->last_running_ns = running_ns;
}

bool
hw_cpu_reading_hold_due(const struct hw_cpu_reading *reading, uint64_t running_ns)
{
    return running_ns - reading->last_running_ns >= HELD_LEAST_NS; /* also where its account began anew: below the last one */
}

uint64_t
hw_cpu_reading_take_hold(struct hw_cpu_reading *reading, uint64_t cpu_ns, uint64_t running_ns)
{
    bool known = reading->last_cpu_ns != 0;
    uint64_t gained_ns = hw_elapsed_ns(reading->last_cpu_ns, cpu_ns), held_ns = hw_elapsed_ns(reading->last_running_ns, running_ns);
    uint64_t off_ns = known ? hw_elapsed_ns(gained_ns, held_ns) : 0;
    reading->last_cpu_ns = cpu_ns;
    reading->last_running_ns = running_ns;
    if (off_ns < SLIGHT_NS) return 0;
    reading->running_ns += off_ns; /* no running that the clock would have gained by */
    return off_ns;
}
