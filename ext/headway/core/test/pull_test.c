/* Who is pulled wakes where it was pulled to, and gets back what it had. Where threads can't be pulled nothing must happen. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "allowed.h"
#include "cond.h"
#include "names.h"
#include "pull.h"
#include "test.h"
#include "thread.h"

#include <sched.h>
#include <unistd.h>

#ifdef __linux__

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn = PTHREAD_COND_INITIALIZER;
static struct hw_thread sleeper;
static bool asleep, called, ending;
static int woke_on;
static cpu_set_t everywhere, had; /* had: before it slept; then what it has after it woke */

static void *
sleeps(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&lock);
    sleeper.native_id = hw_native_id();
    while (!ending) {
        asleep = true;
        while (!called) pthread_cond_wait(&turn, &lock);
        woke_on = sched_getcpu();
        hw_pull_ends(&sleeper);
        sched_getaffinity(0, sizeof(had), &had);
        called = asleep = false;
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void
wait_until(const bool *flag, bool wanted)
{
    for (;;) {
        pthread_mutex_lock(&lock);
        bool now = *flag;
        pthread_mutex_unlock(&lock);
        if (now == wanted) return;
        usleep(200);
    }
}

static void
call(void)
{
    pthread_mutex_lock(&lock);
    called = true;
    pthread_cond_signal(&turn);
    pthread_mutex_unlock(&lock);
    wait_until(&called, false);
}

static cpu_set_t
only(int processor)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(processor, &set);
    return set;
}

static void
run_on(int processor)
{
    cpu_set_t set = only(processor);
    CHECK_EQUAL(0, sched_setaffinity(0, sizeof(set), &set));
}

static void
set_sleeper(const cpu_set_t *set)
{
    CHECK_EQUAL(0, sched_setaffinity(sleeper.native_id, sizeof(*set), set));
}

/* The first two processors of this process; false when it has but one. */
static int processors[2];

static bool
two_processors(void)
{
    int found = 0;
    for (int i = 0; i < CPU_SETSIZE && found < 2; i++)
        if (CPU_ISSET(i, &everywhere)) processors[found++] = i;
    return found == 2;
}

static pthread_t thread;

/* Whether it can be pulled. */
static bool
start(void)
{
    hw_allowed_find();
    CHECK_EQUAL(0, sched_getaffinity(0, sizeof(everywhere), &everywhere));
    memset(&sleeper, 0, sizeof(sleeper));
    asleep = called = ending = false;
    CHECK_EQUAL(0, pthread_create(&thread, NULL, sleeps, NULL));
    wait_until(&asleep, true);
    bool possible = hw_pull_possible();
    CHECK(possible == (two_processors() && hw_allowed_affinity()));
    return possible;
}

static void
end(void)
{
    ending = true;
    call();
    pthread_join(thread, NULL);
    sched_setaffinity(0, sizeof(everywhere), &everywhere);
}

TEST(who_is_pulled_wakes_there_and_is_free_again)
{
    bool possible = start();
    for (unsigned i = 0; possible && i < test_effort(100); i++) {
        wait_until(&asleep, true);
        int here = processors[i % 2];
        run_on(here);
        CHECK(hw_pull(&sleeper));
        CHECK(!hw_pull(&sleeper), "it is there");
        call();
        CHECK_EQUAL(here, woke_on);
        CHECK(CPU_EQUAL(&had, &everywhere) && !sleeper.pull.pulled);
    }
    end();
}

TEST(a_mask_of_its_own_stays)
{
    if (start()) {
        cpu_set_t own = only(processors[0]);
        set_sleeper(&own);
        for (int i = 0; i < 2; i++) {
            run_on(processors[i]);
            CHECK(!hw_pull(&sleeper), "it may not run elsewhere");
        }
        call();
        CHECK(CPU_EQUAL(&had, &own));
        CHECK_EQUAL(processors[0], woke_on);
    }
    end();
}

TEST(what_somebody_sets_meanwhile_stays)
{
    if (start()) {
        run_on(processors[0]);
        CHECK(hw_pull(&sleeper));
        cpu_set_t other = only(processors[1]);
        set_sleeper(&other);
        call();
        CHECK(CPU_EQUAL(&had, &other));
    }
    end();
}

TEST(who_is_pulled_twice_goes_where_it_was_pulled_last)
{
    if (start()) {
        run_on(processors[0]);
        CHECK(hw_pull(&sleeper));
        run_on(processors[1]);
        CHECK(hw_pull(&sleeper));
        call();
        CHECK_EQUAL(processors[1], woke_on);
        CHECK(CPU_EQUAL(&had, &everywhere));
    }
    end();
}

TEST(what_is_set_between_two_pulls_stays)
{
    if (start()) {
        run_on(processors[0]);
        CHECK(hw_pull(&sleeper));
        cpu_set_t other = only(processors[1]);
        set_sleeper(&other);
        run_on(processors[1]);
        CHECK(!hw_pull(&sleeper), "it is let go, and may run nowhere else");
        call();
        CHECK(CPU_EQUAL(&had, &other));
    }
    end();
}

/* As a stop does it for those that still sleep. */
TEST(another_thread_can_set_it_free)
{
    if (start()) {
        run_on(processors[0]);
        CHECK(hw_pull(&sleeper));
        hw_pull_ends(&sleeper);
        cpu_set_t now;
        sched_getaffinity(sleeper.native_id, sizeof(now), &now);
        CHECK(CPU_EQUAL(&now, &everywhere));
    }
    end();
}

#else

TEST(nobody_is_pulled)
{
    static struct hw_thread thread;
    thread.native_id = 1;
    CHECK(!hw_pull_possible() && !hw_pull(&thread));
    hw_pull_ends(&thread);
}

#endif

TEST(whose_native_thread_is_not_known_is_not_pulled)
{
    static struct hw_thread unknown;
    CHECK(!hw_pull(&unknown));
    hw_pull_ends(&unknown);
}

#ifdef __linux__
TESTS({ "there", who_is_pulled_wakes_there_and_is_free_again }, { "own", a_mask_of_its_own_stays },
          { "meanwhile", what_somebody_sets_meanwhile_stays }, { "twice", who_is_pulled_twice_goes_where_it_was_pulled_last },
          { "between", what_is_set_between_two_pulls_stays }, { "free", another_thread_can_set_it_free }, { "unknown", whose_native_thread_is_not_known_is_not_pulled })
#else
TESTS({ "nobody", nobody_is_pulled }, { "unknown", whose_native_thread_is_not_known_is_not_pulled })
#endif
