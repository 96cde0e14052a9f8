/* The watch over an event loop: a loop is played beside its watcher. */
#include "loop_watch.h"
#include "test.h"

#include <unistd.h>

#define THRESHOLD_NS (5 * HW_NS_PER_MS)

static struct hw_loop_watch watch;
static _Atomic unsigned asked;

static void
ask(void)
{
    atomic_fetch_add(&asked, 1);
}

static void
clean_up(void)
{
    hw_loop_watch_end(&watch);
}

static void
start(void)
{
    test_clean_up = clean_up;
    atomic_store(&asked, 0);
    CHECK(hw_loop_watch_start(&watch, THRESHOLD_NS, ask));
}

static void
end(void)
{
    hw_loop_watch_end(&watch);
    hw_loop_watch_end(&watch);
    test_clean_up = NULL;
}

/* Until the watcher has asked so often, or two seconds have passed. */
static unsigned
await_asked(unsigned count)
{
    for (int i = 0; i < 2000 && atomic_load(&asked) < count; i++) usleep(1000);
    return atomic_load(&asked);
}

TEST(nothing_is_asked_while_the_loop_waits)
{
    start();
    CHECK_EQUAL(0, hw_loop_watch_idle(&watch, hw_now_ns()));
    usleep(20000);
    CHECK_EQUAL(0, atomic_load(&asked));
    CHECK(!hw_loop_watch_answer(&watch, hw_now_ns()));
    end();
}

TEST(turns_have_their_length)
{
    start();
    CHECK_EQUAL(0, hw_loop_watch_turn(&watch, 1000));
    CHECK_EQUAL(500, hw_loop_watch_turn(&watch, 1500));
    CHECK_EQUAL(250, hw_loop_watch_idle(&watch, 1750));
    CHECK_EQUAL(0, hw_loop_watch_turn(&watch, 2000));
    hw_loop_watch_idle(&watch, 2001);
    end();
}

TEST(a_long_turn_is_asked_about_until_it_is_answered)
{
    start();
    hw_loop_watch_turn(&watch, hw_now_ns());
    CHECK(await_asked(3) >= 3);
    CHECK(hw_loop_watch_answer(&watch, hw_now_ns()));
    CHECK(!hw_loop_watch_answer(&watch, hw_now_ns()));
    unsigned before = atomic_load(&asked);
    usleep(15000);
    CHECK(atomic_load(&asked) <= before + 1, "but for one that was under way");
    before = atomic_load(&asked);
    hw_loop_watch_turn(&watch, hw_now_ns()); /* the next turn is another matter */
    CHECK(await_asked(before + 1) > before);
    hw_loop_watch_idle(&watch, hw_now_ns());
    end();
}

TEST(a_dozing_watcher_is_roused)
{
    start();
    for (unsigned i = 0; i < test_effort(40); i++) {
        usleep(i % 3 * 1000);
        unsigned before = atomic_load(&asked);
        hw_loop_watch_turn(&watch, hw_now_ns());
        CHECK(await_asked(before + 1) > before);
        hw_loop_watch_idle(&watch, hw_now_ns());
    }
    end();
}

TESTS({ "nothing_is_asked_while_the_loop_waits", nothing_is_asked_while_the_loop_waits },
      { "turns_have_their_length", turns_have_their_length },
      { "a_long_turn_is_asked_about_until_it_is_answered", a_long_turn_is_asked_about_until_it_is_answered },
      { "a_dozing_watcher_is_roused", a_dozing_watcher_is_roused })
