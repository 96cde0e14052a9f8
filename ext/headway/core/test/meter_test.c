/* One thread's time, told apart. */
#include "clock.h"
#include "meter.h"
#include "test.h"

#define US HW_NS_PER_US
#define MS HW_NS_PER_MS

static struct hw_meter meter;
static struct hw_meter_reading at;

static void
start(void)
{
    at = (struct hw_meter_reading){ .now_ns = 7 * MS, .cpu_ns = 3 * MS, .blocks = 5, .own = true };
    hw_meter_start(&meter, at);
}

static void
pass(uint64_t wall_ns, uint64_t cpu_ns, uint64_t blocks, enum hw_state then)
{
    at.now_ns += wall_ns;
    at.cpu_ns += cpu_ns;
    at.blocks += blocks;
    hw_meter_enter(&meter, then, at);
}

/* Away from the GVL for so long, and back at once. */
static void
release(uint64_t wall_ns, uint64_t cpu_ns, uint64_t blocks)
{
    pass(0, 0, 0, HW_SUSPENDED);
    pass(wall_ns, cpu_ns, blocks, HW_READY);
    pass(0, 0, 0, HW_RUNNING);
}

TEST(every_nanosecond_is_counted_once)
{
    start();
    uint64_t begin_ns = at.now_ns;
    for (unsigned i = 0; i < test_effort(10000); i++) {
        pass(test_random(200 * US), test_random(200 * US), test_random(2), (enum hw_state)test_random(HW_STATE_COUNT));
    }
    pass(0, 0, 0, HW_RUNNING);
    CHECK_EQUAL(at.now_ns - begin_ns, meter.running_ns + meter.ready_ns + meter.io_ns + meter.free_cpu_ns + meter.wasteful_ns);
}

TEST(running_and_waiting_for_the_gvl)
{
    start();
    pass(4 * MS, 4 * MS, 0, HW_SUSPENDED);
    pass(2 * MS, 0, 1, HW_READY);
    pass(3 * MS, 0, 1, HW_RUNNING);
    pass(1 * MS, 1 * MS, 0, HW_RUNNING);
    CHECK_EQUAL(5 * MS, meter.running_ns);
    CHECK_EQUAL(3 * MS, meter.ready_ns);
    CHECK_EQUAL(2 * MS, meter.io_ns);
    CHECK_EQUAL(1, meter.releases);
}

TEST(a_sleep_is_io)
{
    start();
    release(1 * MS, 10 * US, 1);
    CHECK_EQUAL(990 * US, meter.io_ns);
    CHECK_EQUAL(10 * US, meter.free_cpu_ns);
}

TEST(a_sleep_is_io_where_nobody_counts_waits)
{
    start();
    release(1 * MS, 10 * US, 0);
    CHECK_EQUAL(990 * US, meter.io_ns);
}

TEST(computing_is_no_io_on_a_busy_machine)
{
    start();
    release(10 * MS, 3 * MS, 0);
    release(10 * MS, 6 * MS, 1);
    CHECK_EQUAL(20 * MS, meter.free_cpu_ns);
    CHECK_EQUAL(0, meter.io_ns);
}

TEST(a_release_that_does_both_is_both)
{
    start();
    release(20 * MS, 9 * MS, 3);
    CHECK_EQUAL(9 * MS, meter.free_cpu_ns);
    CHECK_EQUAL(11 * MS, meter.io_ns);
}

TEST(cpu_time_beyond_the_time_passed_is_not_believed)
{
    start();
    release(1 * MS, 2 * MS, 3);
    CHECK_EQUAL(1 * MS, meter.free_cpu_ns);
}

TEST(short_releases_are_wasteful)
{
    start();
    release(HW_METER_WASTEFUL_NS - 1, 0, 1);
    release(HW_METER_WASTEFUL_NS, 0, 1);
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
    at.cpu_ns = at.blocks = 12345; /* the waker's */
    pass(1 * MS, 0, 0, HW_READY);
    CHECK_EQUAL(1 * MS, meter.io_ns);
    CHECK_EQUAL(0, meter.free_cpu_ns);
}

TESTS({ "every_nanosecond_is_counted_once", every_nanosecond_is_counted_once },
      { "running_and_waiting_for_the_gvl", running_and_waiting_for_the_gvl },
      { "a_sleep_is_io", a_sleep_is_io },
      { "a_sleep_is_io_where_nobody_counts_waits", a_sleep_is_io_where_nobody_counts_waits },
      { "computing_is_no_io_on_a_busy_machine", computing_is_no_io_on_a_busy_machine },
      { "a_release_that_does_both_is_both", a_release_that_does_both_is_both },
      { "cpu_time_beyond_the_time_passed_is_not_believed", cpu_time_beyond_the_time_passed_is_not_believed },
      { "short_releases_are_wasteful", short_releases_are_wasteful },
      { "woken_by_another_thread_it_waited_for_that", woken_by_another_thread_it_waited_for_that })
