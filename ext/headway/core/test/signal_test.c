/* The signal and the ticker, on real threads. */
#include "cast.h"

static atomic_int foreign_signals;

static void
foreign_handler(int number)
{
    (void)number;
    atomic_fetch_add(&foreign_signals, 1);
}

TEST(a_handler_that_was_there_before_keeps_its_signals_and_comes_back)
{
    struct sigaction foreign, found;
    memset(&foreign, 0, sizeof(foreign));
    foreign.sa_handler = foreign_handler;
    sigemptyset(&foreign.sa_mask);
    sigaction(SIGURG, &foreign, NULL);
    atomic_store(&foreign_signals, 0);

    vm_headway_start(HW_FAIR, MS(5), HW_SIGNAL);
    vm_thread_start(hog, NULL);
    vm_thread_start(napper, NULL);
    for (int i = 0; i < 5; i++) {
        kill(getpid(), SIGURG);
        vm_sleep(MS(2));
    }
    CHECK(atomic_load(&foreign_signals) > 0 && atomic_load(&foreign_signals) <= 5);
    end_everybody();
    check_given_back();
    sigaction(SIGURG, NULL, &found);
    CHECK(found.sa_handler == foreign_handler);
    signal(SIGURG, SIG_DFL);
}

TEST(a_handler_given_back_by_somebody_else_does_not_count_as_the_one_before)
{
    struct sigaction ours, found;
    signal(SIGURG, foreign_handler);
    vm_headway_start(HW_FAIR, MS(5), HW_SIGNAL);
    sigaction(SIGURG, NULL, &ours);
    signal(SIGURG, SIG_IGN);
    vm_headway_stop();
    sigaction(SIGURG, &ours, NULL); /* as who saved it does, and came to its end */
    vm_headway_start(HW_FAIR, MS(5), HW_SIGNAL);
    check_given_back();
    sigaction(SIGURG, NULL, &found);
    CHECK(found.sa_handler == foreign_handler);
    signal(SIGURG, SIG_DFL);
}

static bool
signal_is_lost(void)
{
    pthread_mutex_lock(&runtime.lock);
    bool lost = runtime.signal_lost;
    pthread_mutex_unlock(&runtime.lock);
    return lost;
}

static unsigned long long jobs_before;

static bool
jobs_go_on(void)
{
    return atomic_load(&vm.jobs) > jobs_before;
}

TEST(when_the_handler_is_replaced_preemption_goes_on_by_polling)
{
    vm_headway_start(HW_FAIR, MS(5), HW_SIGNAL);
    vm_thread_start(hog, NULL);
    vm_thread_start(napper, NULL);
    vm_sleep(MS(20));
    signal(SIGURG, SIG_IGN);
    CHECK(soon(signal_is_lost, MS(3000)));
    jobs_before = atomic_load(&vm.jobs);
    check_everybody_moves(MS(2000));
    CHECK(soon(jobs_go_on, MS(3000)));
    end_everybody();
    check_given_back();
    struct sigaction found;
    sigaction(SIGURG, NULL, &found);
    CHECK(found.sa_handler == SIG_IGN);
    signal(SIGURG, SIG_DFL);
}

/* -- the ticker --------------------------------------------------------------------------------------------------------- */

TEST(the_ticker_sleeps_when_nobody_competes)
{
    uint64_t nap_ns = MS(2);
    vm_headway_start(HW_FAIR, MS(5), HW_SIGNAL);
    CHECK(!runtime.ticker_runs); /* main is alone */
    vm_thread_start(napper, &nap_ns);
    CHECK(runtime.ticker_runs);
    vm_thread_start(hog, NULL);
    vm_sleep(MS(20));
    end_everybody();
    CHECK(soon(ticker_sleeps, MS(1000)));
    check_given_back();
}

/* Though nobody is ever preempted, and no event comes. */
TEST(under_observe_too_the_ticker_does_its_round_while_somebody_waits)
{
    atomic_store(&vm.slice_ns, MS(2500));
    vm_headway_start(HW_OBSERVE, MS(100), HW_SIGNAL);
    vm_thread_start(hog, NULL);
    struct hw_thread *stillborn = hw_runtime_add(&runtime, HW_READY, true);
    pthread_mutex_lock(&runtime.lock);
    stillborn->since_ns -= MS(59500);
    pthread_mutex_unlock(&runtime.lock);
    vm_sleep(MS(1500)); /* the hog has all of it, and then some */
    pthread_mutex_lock(&runtime.lock);
    unsigned unborn = runtime.scheduler.unborn;
    pthread_mutex_unlock(&runtime.lock);
    CHECK_EQUAL(0, unborn);
    atomic_store(&vm.slice_ns, MS(20));
    hw_runtime_discard(&runtime, stillborn);
    end_everybody();
    check_given_back();
}

TEST(where_there_is_no_thread_for_a_ticker_everybody_moves_all_the_same)
{
    static const enum hw_preempt ways[] = { HW_SIGNAL, HW_POLL };
    for (int way = 0; way < 2; way++) {
        runtime.no_ticker = true;
        vm_headway_start(HW_FAIR, MS(5), ways[way]);
        for (int i = 0; i < 3; i++) vm_thread_start(hog, NULL);
        vm_sleep(MS(20));
        CHECK(!runtime.ticker_runs);
        unsigned long long before[VM_THREADS];
        for (int i = 1; i < VM_THREADS; i++) before[i] = atomic_load(&vm.threads[i].rounds);
        atomic_store(&vm.parked_triggers, 0);
        vm_sleep(MS(2000)); /* in which no event of main's does the ticker's work */
        CHECK(ways[way] == HW_SIGNAL || atomic_load(&vm.parked_triggers) == 0, "a job for who is parked");
        for (int i = 1; i < VM_THREADS; i++) CHECK(!vm.threads[i].used || atomic_load(&vm.threads[i].rounds) > before[i], "thread %d", i);
        runtime.no_ticker = false;
        end_everybody();
        check_given_back();
    }
}

RUNTIME_TESTS({ "handler", a_handler_that_was_there_before_keeps_its_signals_and_comes_back },
              { "again", a_handler_given_back_by_somebody_else_does_not_count_as_the_one_before },
              { "replaced", when_the_handler_is_replaced_preemption_goes_on_by_polling },
              { "ticker", the_ticker_sleeps_when_nobody_competes },
              { "observe", under_observe_too_the_ticker_does_its_round_while_somebody_waits },
              { "none", where_there_is_no_thread_for_a_ticker_everybody_moves_all_the_same })
