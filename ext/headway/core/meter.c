#include "meter.h"

#include "clock.h"

void
hw_meter_start(struct hw_meter *meter, struct hw_meter_reading reading)
{
    *meter = (struct hw_meter){ .state = HW_RUNNING, .since = reading };
}

/* Whether it computed all the time, even where the system took its core away meanwhile: when it never waited in the kernel, or so
 * briefly that most of the time is CPU time all the same. Systems that don't count waits say it never did; there, hardly any CPU
 * time tells a sleep. */
static bool
computed_throughout(uint64_t passed_ns, uint64_t cpu_ns, uint64_t blocks)
{
    return cpu_ns > passed_ns / (blocks == 0 ? 8 : 2);
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
    /* Whom another thread makes ready has waited for it. */
    uint64_t cpu_ns = reading.own ? reading.cpu_ns - meter->since.cpu_ns : 0;
    uint64_t blocks = reading.own ? reading.blocks - meter->since.blocks : 1;
    if (computed_throughout(passed_ns, cpu_ns, blocks)) cpu_ns = passed_ns;
    meter->free_cpu_ns += cpu_ns;
    meter->io_ns += passed_ns - cpu_ns;
}

void
hw_meter_enter(struct hw_meter *meter, enum hw_state state, struct hw_meter_reading reading)
{
    uint64_t passed_ns = reading.now_ns - meter->since.now_ns;
    switch (meter->state) {
      case HW_RUNNING: meter->running_ns += passed_ns; break;
      case HW_READY: meter->ready_ns += passed_ns; break;
      case HW_SUSPENDED:
        if (state == HW_SUSPENDED) return; /* doubled */
        end_release(meter, passed_ns, reading);
        break;
      case HW_STATE_COUNT: break;
    }
    meter->state = state;
    meter->since = reading;
}
