/* What a forced switch costs on this machine: measured, or given up. */
#include "machine.h"
#include "test.h"

#include <signal.h>

TEST(a_signal_and_a_waking_are_measured)
{
    struct hw_machine_floor floor;
    CHECK(hw_machine_measure(5, &floor));
    CHECK(floor.signal_ns > 0 && floor.wake_ns > 0);
}

/* The thread that is started inherits the mask. */
TEST(a_signal_that_does_not_arrive_is_not_waited_for)
{
    sigset_t urgent, before;
    sigemptyset(&urgent);
    sigaddset(&urgent, SIGURG);
    pthread_sigmask(SIG_BLOCK, &urgent, &before);
    struct hw_machine_floor floor;
    bool measured = hw_machine_measure(5, &floor);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    CHECK(!measured);
    CHECK(hw_machine_measure(5, &floor));
}

TESTS({ "measured", a_signal_and_a_waking_are_measured }, { "blocked", a_signal_that_does_not_arrive_is_not_waited_for })
