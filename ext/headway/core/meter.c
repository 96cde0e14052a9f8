#include "meter.h"

#include "clock.h"

void
hw_meter_start(struct hw_meter *meter, struct hw_meter_reading reading, bool knows_coreless)
{
    *meter = (struct hw_meter){ .state = HW_RUNNING, .since = reading, .knows_coreless = knows_coreless };
}

/* A release in which the CPU clock stood still was spent waiting. On a busy machine it stands still for want of a core, too: where
 * that isn't known, most of the release decides. */
static uint64_t
computing_ns(const struct hw_meter *meter, uint64_t passed_ns, struct hw_meter_reading reading)
{
    if (!reading.own) return 0; /* whom another thread makes ready has waited for it */
    uint64_t cpu_ns = reading.cpu_ns - meter->since.cpu_ns;
    if (cpu_ns > passed_ns || (!meter->knows_coreless && cpu_ns > passed_ns / 2)) return passed_ns;
    return cpu_ns;
}

static void
end_release(struct hw_meter *meter, uint64_t passed_ns, struct hw_meter_reading reading)
{
    meter->releases++;
    if (passed_ns < HW_METER_WASTEFUL_NS) {
        meter->wasteful++;
        meter->wasteful_ns += passed_ns;
        return;
    }
    uint64_t free_cpu_ns = computing_ns(meter, passed_ns, reading);
    meter->free_cpu_ns += free_cpu_ns;
    meter->io_ns += passed_ns - free_cpu_ns;
}

/* Takes out of a time what it has spent without a core; the rest is no less than the CPU time, whatever happened while the clocks
 * were read. */
static uint64_t
with_a_core(struct hw_meter *meter, uint64_t passed_ns, struct hw_meter_reading reading)
{
    if (!meter->knows_coreless || !reading.own || !meter->since.own) return passed_ns;
    uint64_t coreless_ns = reading.coreless_ns - meter->since.coreless_ns;
    uint64_t cpu_ns = reading.cpu_ns - meter->since.cpu_ns;
    uint64_t most_ns = cpu_ns < passed_ns ? passed_ns - cpu_ns : 0;
    if (coreless_ns > most_ns) coreless_ns = most_ns;
    meter->coreless_ns += coreless_ns;
    return passed_ns - coreless_ns;
}

void
hw_meter_enter(struct hw_meter *meter, enum hw_state state, struct hw_meter_reading reading)
{
    if (meter->state == HW_SUSPENDED && state == HW_SUSPENDED) return; /* doubled */
    uint64_t passed_ns = with_a_core(meter, reading.begin_ns - meter->since.end_ns, reading);
    switch (meter->state) {
      case HW_RUNNING: meter->running_ns += passed_ns; break;
      case HW_READY: meter->ready_ns += passed_ns; break;
      case HW_SUSPENDED: end_release(meter, passed_ns, reading); break;
      case HW_STATE_COUNT: break;
    }
    meter->state = state;
    meter->since = reading;
}
