/* One thread's time, told apart. */
#include "clock.h"
#include "meter.h"
#include "test.h"

#define US HW_NS_PER_US
#define MS HW_NS_PER_MS

static struct hw_meter meter;
static struct hw_meter_reading at;

#define READING_NS 700

static void
start(void)
{
    at = (struct hw_meter_reading){ .begin_ns = 7 * MS, .end_ns = 7 * MS + READING_NS, .cpu_ns = 3 * MS, .coreless_ns = 5, .own = true };
    hw_meter_start(&meter, at, true);
}

static void
pass(uint64_t wall_ns, uint64_t cpu_ns, uint64_t coreless_ns, enum hw_state then)
{
    at.begin_ns = at.end_ns + wall_ns;
    at.end_ns = at.begin_ns + READING_NS;
    at.cpu_ns += cpu_ns;
    at.coreless_ns += coreless_ns;
    hw_meter_enter(&meter, then, at);
}

/* Away from the GVL for so long, and back at once. */
static void
release(uint64_t wall_ns, uint64_t cpu_ns, uint64_t coreless_ns)
{
    pass(0, 0, 0, HW_SUSPENDED);
    pass(wall_ns, cpu_ns, coreless_ns, HW_READY);
    pass(0, 0, 0, HW_RUNNING);
}

TEST(every_nanosecond_is_counted_once_but_those_of_reading)
{
    start();
    uint64_t passed_ns = 0;
    for (unsigned i = 0; i < test_effort(10000); i++) {
        uint64_t wall_ns = test_random(200 * US);
        passed_ns += wall_ns;
        /* never away from within away: such an event is a doubled one */
        enum hw_state then = (enum hw_state)test_random(HW_STATE_COUNT);
        if (meter.state == HW_SUSPENDED && then == HW_SUSPENDED) then = HW_RUNNING;
        pass(wall_ns, test_random(200 * US), test_random(200 * US), then);
    }
    CHECK_EQUAL(passed_ns, meter.running_ns + meter.ready_ns + meter.io_ns + meter.free_cpu_ns + meter.wasteful_ns +
                           meter.coreless_ns);
}

TEST(running_and_waiting_for_the_gvl)
{
    start();
    pass(4 * MS, 4 * MS, 0, HW_SUSPENDED);
    pass(2 * MS, 0, 0, HW_READY);
    pass(3 * MS, 0, 0, HW_RUNNING);
    pass(1 * MS, 1 * MS, 0, HW_RUNNING);
    CHECK_EQUAL(5 * MS, meter.running_ns);
    CHECK_EQUAL(3 * MS, meter.ready_ns);
    CHECK_EQUAL(2 * MS, meter.io_ns);
    CHECK_EQUAL(1, meter.releases);
}

TEST(a_doubled_event_changes_nothing)
{
    start();
    pass(0, 0, 0, HW_SUSPENDED);
    pass(1 * MS, 0, 0, HW_SUSPENDED);
    pass(1 * MS, 0, 0, HW_RUNNING);
    CHECK_EQUAL(2 * MS + READING_NS, meter.io_ns);
    CHECK_EQUAL(1, meter.releases);
}

TEST(a_sleep_is_io)
{
    start();
    release(1 * MS, 10 * US, 0);
    CHECK_EQUAL(990 * US, meter.io_ns);
    CHECK_EQUAL(10 * US, meter.free_cpu_ns);
}

TEST(what_a_busy_machine_adds_is_kept_apart)
{
    start();
    pass(5 * MS, 2 * MS, 3 * MS, HW_RUNNING);
    release(20 * MS, 3 * MS, 17 * MS);
    release(2 * MS, 0, 1 * MS);
    release(2 * MS, 10 * US, 2 * MS - 10 * US);
    CHECK_EQUAL(2 * MS, meter.running_ns);
    CHECK_EQUAL(3 * MS, meter.free_cpu_ns);
    CHECK_EQUAL(1 * MS, meter.io_ns);
    CHECK_EQUAL(1, meter.wasteful);
    CHECK_EQUAL(23 * MS - 10 * US, meter.coreless_ns);
}

TEST(a_release_that_does_both_is_both)
{
    start();
    release(20 * MS, 4 * MS, 5 * MS);
    CHECK_EQUAL(4 * MS, meter.free_cpu_ns);
    CHECK_EQUAL(11 * MS, meter.io_ns);
}

TEST(most_of_a_release_decides_where_only_the_cpu_clock_is_known)
{
    start();
    meter.knows_coreless = false;
    release(1 * MS, 10 * US, 0);
    CHECK_EQUAL(990 * US, meter.io_ns);
    release(1 * MS, 800 * US, 0);
    CHECK_EQUAL(990 * US, meter.io_ns);
    CHECK_EQUAL(1010 * US, meter.free_cpu_ns);
}

TEST(more_than_the_time_passed_is_not_believed)
{
    start();
    release(1 * MS, 2 * MS, 0);
    CHECK_EQUAL(1 * MS, meter.free_cpu_ns);
    release(1 * MS, 2 * MS, 3 * MS);
    release(1 * MS, 600 * US, 3 * MS);
    CHECK_EQUAL(2600 * US, meter.free_cpu_ns);
    CHECK_EQUAL(400 * US, meter.coreless_ns);
    CHECK_EQUAL(0, meter.io_ns);
}

TEST(short_releases_are_wasteful)
{
    start();
    release(HW_METER_WASTEFUL_NS - 1, 0, 0);
    release(HW_METER_WASTEFUL_NS, 0, 0);
    CHECK_EQUAL(1, meter.wasteful);
    CHECK_EQUAL(2, meter.releases);
    CHECK_EQUAL(HW_METER_WASTEFUL_NS - 1, meter.wasteful_ns);
    CHECK_EQUAL(HW_METER_WASTEFUL_NS, meter.io_ns);
}

TEST(woken_by_another_thread_it_waited_for_that)
{
    start();
    pass(0, 0, 0, HW_SUSPENDED);
    at.own = false;
    at.cpu_ns = at.coreless_ns = 12345; /* the waker's */
    pass(1 * MS, 0, 0, HW_READY);
    CHECK_EQUAL(1 * MS, meter.io_ns);
    CHECK_EQUAL(0, meter.free_cpu_ns);
}

TESTS({ "every_nanosecond_is_counted_once_but_those_of_reading", every_nanosecond_is_counted_once_but_those_of_reading },
      { "running_and_waiting_for_the_gvl", running_and_waiting_for_the_gvl },
      { "a_doubled_event_changes_nothing", a_doubled_event_changes_nothing },
      { "a_sleep_is_io", a_sleep_is_io },
      { "what_a_busy_machine_adds_is_kept_apart", what_a_busy_machine_adds_is_kept_apart },
      { "a_release_that_does_both_is_both", a_release_that_does_both_is_both },
      { "most_of_a_release_decides_where_only_the_cpu_clock_is_known", most_of_a_release_decides_where_only_the_cpu_clock_is_known },
      { "more_than_the_time_passed_is_not_believed", more_than_the_time_passed_is_not_believed },
      { "short_releases_are_wasteful", short_releases_are_wasteful },
      { "woken_by_another_thread_it_waited_for_that", woken_by_another_thread_it_waited_for_that })
