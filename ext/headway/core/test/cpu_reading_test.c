/* When a thread's CPU clock is read. */
#include "clock.h"
#include "cpu_reading.h"
#include "test.h"

#define US HW_NS_PER_US
#define MS HW_NS_PER_MS

static struct hw_cpu_reading reading;
static uint64_t cpu_ns, running_ns;

/* One absence after `held_ns` with the GVL, in which so much was computed: whether the clock was read at its end. */
static bool
comes_back(uint64_t held_ns, uint64_t away_ns, uint64_t computed_ns)
{
    running_ns += held_ns;
    cpu_ns += held_ns + computed_ns;
    if (!hw_cpu_reading_due(&reading, away_ns)) return false;
    hw_cpu_reading_take(&reading, cpu_ns, running_ns);
    return true;
}

static unsigned
readings(unsigned absences, uint64_t away_ns, uint64_t computed_ns)
{
    unsigned read = 0;
    for (unsigned i = 0; i < absences; i++) read += comes_back(100 * US, away_ns, computed_ns);
    return read;
}

static void
start(void)
{
    reading = (struct hw_cpu_reading){ 0 };
    cpu_ns = 77 * MS;
    running_ns = 5 * MS;
}

TEST(the_shortest_absences_are_never_looked_at)
{
    start();
    CHECK_EQUAL(0, readings(1000, 199 * US, 0));
}

TEST(long_absences_are_always_looked_at)
{
    start();
    CHECK_EQUAL(1000, readings(1000, 2 * MS, 0));
}

TEST(short_ones_ever_more_rarely_where_nothing_is_computed)
{
    start();
    CHECK(comes_back(0, 500 * US, 0)); /* what it computed before nobody knows */
    CHECK(comes_back(0, 500 * US, 10 * US));
    CHECK_EQUAL(0, readings(1, 500 * US, 10 * US));
    CHECK_EQUAL(1, readings(1, 500 * US, 10 * US));
    CHECK_EQUAL(0, readings(3, 500 * US, 10 * US));
    CHECK_EQUAL(1, readings(1, 500 * US, 10 * US));
    readings(100, 500 * US, 10 * US);
    CHECK_EQUAL(100, readings(1600, 500 * US, 10 * US));
}

TEST(a_thread_that_computes_in_them_is_read_each_time)
{
    start();
    CHECK_EQUAL(100, readings(100, 500 * US, 400 * US));
}

TEST(one_that_begins_to_is_found_out)
{
    start();
    readings(1000, 500 * US, 0);
    unsigned late = 0;
    do CHECK(++late <= 32); while (!comes_back(100 * US, 500 * US, 400 * US) || reading.pass > 0);
    CHECK_EQUAL(100, readings(100, 500 * US, 400 * US));
}

/* A hold of which so much was on no processor: what the clock says of that; UINT64_MAX: it wasn't read. */
static uint64_t
holds(uint64_t held_ns, uint64_t off_ns)
{
    running_ns += held_ns;
    cpu_ns += held_ns - off_ns;
    return hw_cpu_reading_hold_due(&reading, running_ns) ? hw_cpu_reading_take_hold(&reading, cpu_ns, running_ns) : UINT64_MAX;
}

TEST(holds_are_looked_at_once_a_millisecond_of_them)
{
    start();
    holds(10 * MS, 0);
    unsigned read = 0;
    for (unsigned i = 0; i < 1000; i++) read += holds(100 * US, 0) != UINT64_MAX;
    CHECK_EQUAL(100, read);
    CHECK_EQUAL(0, holds(1 * MS, 0));
}

TEST(a_hold_tells_how_long_it_was_off_the_processor)
{
    start();
    CHECK_EQUAL(0, holds(10 * MS, 4 * MS)); /* nothing to compare the clock with yet */
    CHECK_EQUAL(4 * MS, holds(10 * MS, 4 * MS));
    CHECK_EQUAL(0, holds(10 * MS, 0));
    CHECK_EQUAL(0, holds(10 * MS, 49 * US)); /* as imprecise as that */
    CHECK_EQUAL(50 * US, holds(10 * MS, 50 * US));
    CHECK(comes_back(0, 2 * MS, 3 * MS));
    CHECK_EQUAL(1 * MS, holds(1 * MS, 1 * MS)); /* what was computed before is none of it */
}

/* As when Headway is started again while it records. */
TEST(an_account_that_begins_anew_is_not_off_the_processor)
{
    start();
    running_ns = 1000 * MS;
    holds(10 * MS, 0);
    running_ns = 0;
    CHECK_EQUAL(0, holds(2 * MS, 0));
    CHECK_EQUAL(1 * MS, holds(2 * MS, 1 * MS));
}

/* Else a thread that computes without the GVL would, on a busy machine, be taken for one that never does. */
TEST(what_a_hold_was_off_the_processor_hides_nothing_computed_in_an_absence)
{
    start();
    CHECK(comes_back(0, 500 * US, 400 * US));
    for (unsigned i = 0; i < 100; i++) {
        holds(5 * MS, 4 * MS);
        CHECK(comes_back(0, 500 * US, 400 * US));
    }
}

TESTS({ "the_shortest_absences_are_never_looked_at", the_shortest_absences_are_never_looked_at },
      { "long_absences_are_always_looked_at", long_absences_are_always_looked_at },
      { "short_ones_ever_more_rarely_where_nothing_is_computed", short_ones_ever_more_rarely_where_nothing_is_computed },
      { "a_thread_that_computes_in_them_is_read_each_time", a_thread_that_computes_in_them_is_read_each_time },
      { "one_that_begins_to_is_found_out", one_that_begins_to_is_found_out },
      { "holds_are_looked_at_once_a_millisecond_of_them", holds_are_looked_at_once_a_millisecond_of_them },
      { "a_hold_tells_how_long_it_was_off_the_processor", a_hold_tells_how_long_it_was_off_the_processor },
      { "an_account_that_begins_anew_is_not_off_the_processor", an_account_that_begins_anew_is_not_off_the_processor },
      { "what_a_hold_was_off_the_processor_hides_nothing_computed_in_an_absence",
        what_a_hold_was_off_the_processor_hides_nothing_computed_in_an_absence })
