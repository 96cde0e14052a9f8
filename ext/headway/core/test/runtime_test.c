/* The runtime on real threads, in a VM in miniature (vm.h): nothing stalls, nothing is lost, everything is given back. */
#include "vm.h"

#include "analysis.h"
#include "feed.h"

#ifdef __SANITIZE_THREAD__
#define SLOWER 2
#else
#define SLOWER 1
#endif

/* -- the watchdog ------------------------------------------------------------------------------------------------------- */

static void
dump(void)
{
    struct hw_scheduler *s = &runtime.scheduler;
    static const char *const names[] = {
#define EACH(name, label) label,
        HW_STATES(EACH)
#undef EACH
    };
    fprintf(stderr, "holder %p, admitted %p for %" PRIu64 " us, gate %u, ready %u, interactive %u, tick in %" PRId64
            " us, ticker %d\n", (void *)s->holder, (void *)s->admitted, (hw_now_ns() - s->admitted_ns) / 1000, s->gate.length, s->counts[HW_IS_READY], s->counts[HW_IS_INTERACTIVE_ACTIVE],
            (int64_t)(runtime.tick_ns - hw_now_ns()) / 1000, runtime.ticker_runs);
    for (struct hw_thread *thread = s->threads; thread; thread = thread->next) {
        fprintf(stderr, "  %p %s%s tier %u%s%s%s%s since %" PRIu64 " us\n", (void *)thread, names[thread->state],
                thread->batch ? " batch" : "", thread->tier, thread->at_gate ? " at-gate" : "", thread->parked ? " parked" : "",
                thread->open ? " open" : "", thread->yielding ? " yielding" : "", (hw_now_ns() - thread->since_ns) / 1000);
    }
}

/* Somebody computes all the time in these tests, and main sleeps and wakes: the GVL must keep changing hands. */
static void *
watch(void *arg)
{
    (void)arg;
    unsigned long long before = 0;
    for (unsigned still = 0; still < 15 * SLOWER;) {
        sleep_ns(MS(1000));
        unsigned long long progress = atomic_load(&vm.progress);
        still = progress == before ? still + 1 : 0;
        before = progress;
    }
    fprintf(stderr, "stalled in %s\n", test_running);
    dump();
    abort();
}

static void
start_watchdog(void)
{
    pthread_t thread;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    VM_ASSERT(pthread_create(&thread, NULL, watch, NULL) == 0);
    pthread_detach(thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* -- the cast ----------------------------------------------------------------------------------------------------------- */

static atomic_bool curtain; /* everybody ends */

static void
hog(void *arg)
{
    (void)arg;
    while (!atomic_load(&curtain)) {
        vm_compute(US(200));
        atomic_fetch_add(&current->rounds, 1);
    }
}

static void
napper(void *arg)
{
    uint64_t nap_ns = arg ? *(uint64_t *)arg : US(500);
    while (!atomic_load(&curtain)) {
        vm_sleep(nap_ns);
        vm_compute(US(20));
        atomic_fetch_add(&current->rounds, 1);
    }
}

static void
mortal(void *arg)
{
    vm_compute(arg ? *(uint64_t *)arg : US(100));
    vm_sleep(US(50));
    vm_compute(US(50));
}

static void
breeder(void *arg)
{
    while (!atomic_load(&curtain)) {
        vm_thread_start(mortal, arg);
        vm_compute(US(100));
        vm_sleep(US(300));
        atomic_fetch_add(&current->rounds, 1);
    }
}

/* Wakes its partner and waits for it. */
static void
partner(void *arg)
{
    struct vm_thread *_Atomic *other = arg;
    while (atomic_load(other) == NULL && !atomic_load(&curtain)) vm_sleep(US(100));
    while (!atomic_load(&curtain)) {
        vm_compute(US(10));
        vm_wake(atomic_load(other));
        vm_wait_for_wake();
        atomic_fetch_add(&current->rounds, 1);
    }
    if (atomic_load(other)) vm_wake(atomic_load(other));
}

static struct vm_thread *_Atomic partners[2];

static void
start_partners(void)
{
    atomic_store(&partners[0], NULL);
    atomic_store(&partners[1], NULL);
    struct vm_thread *first = vm_thread_start(partner, &partners[1]), *second = vm_thread_start(partner, &partners[0]);
    atomic_store(&partners[0], first);
    atomic_store(&partners[1], second);
}

static void
end_everybody(void)
{
    atomic_store(&curtain, true);
    while (vm_alive() > 1) {
        for (int i = 0; i < VM_THREADS; i++) {
            if (vm.threads[i].asleep) vm_wake(&vm.threads[i]);
        }
        vm_sleep(MS(1));
    }
    atomic_store(&curtain, false);
}

static void
clean_up(void)
{
    vm_headway_stop();
    end_everybody();
    atomic_store(&vm.slice_ns, MS(20));
    atomic_store(&vm.first_park_ns, MS(5));
}

static bool
soon(bool (*happened)(void), uint64_t within_ns)
{
    uint64_t end_ns = hw_now_ns() + within_ns * SLOWER;
    while (!happened()) {
        if (hw_now_ns() > end_ns) return false;
        vm_sleep(US(500));
    }
    return true;
}

static bool
ticker_sleeps(void)
{
    pthread_mutex_lock(&runtime.lock);
    bool sleeps = runtime.ticker_wake_ns == HW_NEVER;
    pthread_mutex_unlock(&runtime.lock);
    return sleeps;
}

/* -- checks ------------------------------------------------------------------------------------------------------------- */

static uint64_t
park_timeouts(void)
{
    pthread_mutex_lock(&runtime.lock);
    uint64_t timeouts = runtime.park_timeouts;
    pthread_mutex_unlock(&runtime.lock);
    return timeouts;
}

/* Main is alone again. */
static void
check_given_back(void)
{
    uint64_t timeouts = park_timeouts();
    vm_headway_stop();
    CHECK_EQUAL(0, timeouts);
    CHECK(!runtime.ticker_runs && !hw_signal_installed());
    CHECK_EQUAL(0, runtime.scheduler.gate.length);
}

static void
check_everybody_moves(uint64_t within_ns)
{
    unsigned long long before[VM_THREADS];
    for (int i = 0; i < VM_THREADS; i++) before[i] = atomic_load(&vm.threads[i].rounds);
    uint64_t end_ns = hw_now_ns() + within_ns * SLOWER;
    for (;;) {
        int still = -1;
        for (int i = 1; i < VM_THREADS; i++) {
            struct vm_thread *thread = &vm.threads[i];
            if (thread->used && thread->body != mortal && atomic_load(&thread->rounds) == before[i]) still = i;
        }
        if (still < 0) return;
        if (hw_now_ns() > end_ns) {
            dump();
            CHECK(false, "thread %d stands still", still);
        }
        vm_sleep(MS(1));
    }
}

/* -- tests -------------------------------------------------------------------------------------------------------------- */

static void
churn(enum hw_policy_kind kind, enum hw_preempt preempt)
{
    vm_headway_start(kind, MS(5), preempt);
    for (int i = 0; i < 3; i++) vm_thread_start(hog, NULL);
    for (int i = 0; i < 3; i++) vm_thread_start(napper, NULL);
    for (int i = 0; i < 2; i++) vm_thread_start(breeder, NULL);
    start_partners();
    unsigned long long jobs = atomic_load(&vm.jobs);
    uint64_t end_ns = hw_now_ns() + MS(test_effort(400));
    while (hw_now_ns() < end_ns) vm_sleep(MS(1));
    check_everybody_moves(MS(5000));
    CHECK(atomic_load(&vm.jobs) > jobs);
    end_everybody();
    check_given_back();
}

TEST(threads_come_and_go_under_fair_and_signal)
{
    churn(HW_FAIR, HW_SIGNAL);
}

TEST(threads_come_and_go_under_fair_and_poll)
{
    churn(HW_FAIR, HW_POLL);
}

TEST(threads_come_and_go_under_quantum)
{
    churn(HW_QUANTUM, HW_SIGNAL);
    churn(HW_QUANTUM, HW_POLL);
}

/* New threads are batch after a millisecond: enough of them could take all turns of those that were there before. */
TEST(computing_threads_move_while_others_live_for_a_millisecond)
{
    static uint64_t life_ns = US(1500);
    vm_headway_start(HW_FAIR, MS(5), HW_SIGNAL);
    for (int i = 0; i < 3; i++) vm_thread_start(hog, NULL);
    for (int i = 0; i < 2; i++) vm_thread_start(breeder, &life_ns);
    for (int i = 0; i < 2; i++) {
        vm_sleep(MS(test_effort(100)));
        check_everybody_moves(MS(5000));
    }
    end_everybody();
    check_given_back();
}

/* Recordings begin and end while everything happens; what was recorded is what the scheduler counted. */
TEST(recordings_start_and_stop_under_load)
{
    char path[] = "/tmp/headway-runtime-XXXXXX";
    CHECK(mkstemp(path) >= 0);
    vm_headway_start(HW_FAIR, MS(5), HW_SIGNAL);
    for (int i = 0; i < 3; i++) vm_thread_start(hog, NULL);
    for (int i = 0; i < 3; i++) vm_thread_start(napper, NULL);
    vm_thread_start(breeder, NULL);
    for (unsigned round = 0; round < 6; round++) {
        struct hw_recording set = { .flight = round % 2, .slots = 1 << 16, .alarm_ns = round % 2 ? 1 : 0 };
        snprintf(set.path, sizeof(set.path), "%s", path);
        CHECK(hw_feed_start(&runtime, &set) == 0);
        uint64_t end_ns = hw_now_ns() + MS(test_effort(100));
        while (hw_now_ns() < end_ns) vm_sleep(MS(1));
        CHECK(hw_recorder_claim_end(&runtime.recorder));
        hw_feed_close(&runtime);
        uint64_t recorded = hw_ring_claimed(&runtime.recorder.ring);
        CHECK(recorded > 20);
        CHECK_EQUAL(0, hw_ring_dropped(&runtime.recorder.ring));
        CHECK(hw_recorder_stop(&runtime.recorder, NULL) == 0);
        if (round % 2) {
            CHECK(runtime.recorder.alarms > 0);
            continue;
        }
        struct hw_analysis analysis;
        struct hw_trace_damage damage;
        hw_analysis_init(&analysis, false);
        CHECK(hw_analysis_add(&analysis, path, UINT64_MAX, &damage));
        CHECK_EQUAL(recorded, analysis.processes[0].events);
        CHECK(analysis.thread_count >= 8 && analysis.wait.count > 0);
        hw_analysis_free(&analysis);
    }
    check_everybody_moves(MS(5000));
    end_everybody();
    check_given_back();
    unlink(path);
}

TEST(policies_change_under_load)
{
    vm_headway_start(HW_FAIR, MS(5), HW_SIGNAL);
    for (int i = 0; i < 3; i++) vm_thread_start(hog, NULL);
    for (int i = 0; i < 3; i++) vm_thread_start(napper, NULL);
    vm_thread_start(breeder, NULL);
    for (unsigned i = 0; i < test_effort(60); i++) {
        enum hw_policy_kind kind = (enum hw_policy_kind)test_random(HW_POLICY_COUNT);
        vm_headway_start(kind, MS(1 + test_random(20)), (enum hw_preempt)test_random(HW_PREEMPT_COUNT));
        vm_sleep(test_random(2) ? US(200) : MS(3));
    }
    vm_headway_start(HW_FAIR, MS(5), HW_SIGNAL);
    check_everybody_moves(MS(5000));
    end_everybody();
    check_given_back();
}

TEST(it_starts_and_stops_under_load)
{
    vm_headway_start(HW_FAIR, MS(5), HW_SIGNAL);
    for (int i = 0; i < 3; i++) vm_thread_start(hog, NULL);
    for (int i = 0; i < 3; i++) vm_thread_start(napper, NULL);
    vm_thread_start(breeder, NULL);
    for (unsigned i = 0; i < test_effort(60); i++) {
        vm_headway_stop();
        CHECK(!hw_signal_installed() && !runtime.ticker_runs);
        if (test_random(2)) vm_sleep(US(500));
        vm_headway_start(HW_FAIR, MS(5), test_random(4) ? HW_SIGNAL : HW_POLL);
        vm_sleep(test_random(2) ? US(200) : MS(3));
    }
    check_everybody_moves(MS(5000));
    end_everybody();
    check_given_back();
}

/* -- classes by hand ---------------------------------------------------------------------------------------------------- */

static void
hog_by_hand(void *arg)
{
    vm_set_class(HW_CLASS_BATCH);
    hog(arg);
}

TEST(who_is_batch_by_hand_survives_stops_and_starts)
{
    vm_headway_start(HW_FAIR, MS(2), HW_SIGNAL);
    for (int i = 0; i < 4; i++) vm_thread_start(hog_by_hand, NULL);
    for (unsigned i = 0; i < test_effort(30); i++) {
        vm_sleep(MS(8));
        vm_headway_stop();
        vm_headway_start(HW_FAIR, MS(2), HW_SIGNAL);
    }
    check_everybody_moves(MS(2000));
    end_everybody();
    check_given_back();
}

static struct vm_thread *
parked_thread(void)
{
    for (int i = 1; i < VM_THREADS; i++) {
        struct hw_thread *record = vm.threads[i].used ? atomic_load(&vm.threads[i].record) : NULL;
        pthread_mutex_lock(&runtime.lock);
        bool parked = record && record->parked;
        pthread_mutex_unlock(&runtime.lock);
        if (parked) return &vm.threads[i];
    }
    return NULL;
}

/* A start that follows a stop before those who are parked had time to look: to the scheduler they are suspended now. */
TEST(a_parked_thread_is_not_forgotten_by_a_start)
{
    vm_headway_start(HW_FAIR, MS(20), HW_SIGNAL);
    for (int i = 0; i < 3; i++) vm_thread_start(hog_by_hand, NULL);
    vm_sleep(MS(50));
    for (unsigned i = 0; i < 10; i++) {
        vm_sleep(MS(15));
        struct vm_thread *thread = parked_thread();
        if (thread) hw_runtime_revive(&runtime, atomic_load(&thread->record), HW_SUSPENDED);
    }
    check_everybody_moves(MS(2000));
    end_everybody();
    vm_headway_stop();
}

static atomic_ullong loose_at_ns;

static void
interactive_for_a_while(void *arg)
{
    vm_sleep(US(100));
    vm_set_class(HW_CLASS_INTERACTIVE);
    vm_compute(MS(50));
    vm_set_class(HW_CLASS_MEASURED);
    atomic_store(&loose_at_ns, hw_now_ns());
    hog(arg);
}

TEST(who_was_interactive_by_hand_gives_way_as_soon_as_it_is_not)
{
    atomic_store(&vm.slice_ns, MS(500));
    vm_headway_start(HW_FAIR, MS(100), HW_SIGNAL);
    vm_thread_start(interactive_for_a_while, NULL);
    vm_sleep(MS(5)); /* ... and waits for the other */
    uint64_t waited_ns = hw_now_ns() - atomic_load(&loose_at_ns);
    atomic_store(&vm.slice_ns, MS(20));
    end_everybody();
    check_given_back();
    CHECK(waited_ns < MS(50) * SLOWER, "%" PRIu64 " us", waited_ns / 1000);
}

/* -- interrupts --------------------------------------------------------------------------------------------------------- */

static void *
storm(void *arg)
{
    atomic_bool *over = arg;
    uint64_t state = test_seed();
    while (!atomic_load(over)) {
        struct vm_thread *thread = &vm.threads[1 + test_random_of(&state) % 4];
        vm_interrupt(thread);
        sleep_ns(US(20));
    }
    return NULL;
}

TEST(interrupts_by_the_thousand_lose_nobody)
{
    atomic_bool over = false;
    vm_headway_start(HW_FAIR, MS(5), HW_SIGNAL);
    for (int i = 0; i < 4; i++) vm_thread_start(hog, NULL);
    for (int i = 0; i < 2; i++) vm_thread_start(napper, NULL);
    unsigned long long raises = atomic_load(&vm.raises);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, storm, &over) == 0);
    vm_sleep(MS(test_effort(400)));
    check_everybody_moves(MS(5000));
    atomic_store(&over, true);
    vm_release();
    pthread_join(thread, NULL);
    vm_acquire();
    CHECK(atomic_load(&vm.raises) > raises);
    end_everybody();
    check_given_back();
}

static bool
somebody_is_parked(void)
{
    bool parked = false;
    pthread_mutex_lock(&runtime.lock);
    for (struct hw_thread *thread = runtime.scheduler.threads; thread; thread = thread->next) parked |= thread->parked;
    pthread_mutex_unlock(&runtime.lock);
    return parked;
}

static uint64_t wakes_dropped, worst_wait_ns;

/* Main makes the hog park, and sleeps; the wake-up that its sleep brings is dropped. */
static void
drop_a_wake_up(void)
{
    vm_sleep(MS(10));
    for (int i = 0; i < 100 && !somebody_is_parked(); i++) vm_compute(US(100));
    pthread_mutex_lock(&runtime.lock);
    runtime.drop_wakes = 1;
    pthread_mutex_unlock(&runtime.lock);
    unsigned long long rounds = atomic_load(&vm.threads[1].rounds);
    vm_release();
    uint64_t start_ns = hw_now_ns();
    while (atomic_load(&vm.threads[1].rounds) == rounds && hw_now_ns() - start_ns < MS(5000)) sleep_ns(MS(1));
    uint64_t waited_ns = hw_now_ns() - start_ns;
    if (waited_ns > worst_wait_ns) worst_wait_ns = waited_ns;
    vm_acquire();
    pthread_mutex_lock(&runtime.lock);
    wakes_dropped += runtime.drop_wakes == 0;
    runtime.drop_wakes = 0;
    pthread_mutex_unlock(&runtime.lock);
}

TEST(a_lost_wake_up_is_noticed_and_counted)
{
    wakes_dropped = worst_wait_ns = 0;
    vm_headway_start(HW_FAIR, MS(100), HW_SIGNAL);
    uint64_t spin_ns = runtime.spin_ns;
    runtime.spin_ns = 0; /* who spins needs no wake-up */
    atomic_store(&vm.first_park_ns, MS(10000));
    vm_thread_start(hog, NULL);
    vm_sleep(MS(30));
    for (unsigned i = 0; i < 10; i++) drop_a_wake_up();
    uint64_t timeouts = park_timeouts();
    end_everybody();
    vm_headway_stop();
    atomic_store(&vm.first_park_ns, MS(5));
    runtime.spin_ns = spin_ns;
    CHECK(wakes_dropped > 0);
    CHECK(worst_wait_ns < MS(2000), "%" PRIu64 " us", worst_wait_ns / 1000);
    CHECK(timeouts > 0 && timeouts <= wakes_dropped, "%" PRIu64 " of %" PRIu64, timeouts, wakes_dropped);
}

/* -- the signal --------------------------------------------------------------------------------------------------------- */

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

/* -- fork --------------------------------------------------------------------------------------------------------------- */

static void
live_in_child(void)
{
    VM_ASSERT(!runtime.ticker_runs && runtime.scheduler.living == 1 && runtime.scheduler.gate.length == 0);
    VM_ASSERT(runtime.scheduler.holder == atomic_load(&current->record) && runtime.scheduler.counts[HW_IS_READY] == 0);
    VM_ASSERT(atomic_load(&current->record)->account.voluntary < UINT64_MAX / 2);
    vm_thread_start(hog, NULL);
    vm_thread_start(hog, NULL);
    vm_thread_start(napper, NULL);
    VM_ASSERT(runtime.ticker_runs);
    vm_sleep(MS(20));
    end_everybody();
    VM_ASSERT(vm_alive() == 1);
    vm_headway_stop();
    _exit(0);
}

TEST(a_forked_child_goes_on)
{
    vm_headway_start(HW_FAIR, MS(2), HW_SIGNAL);
    for (int i = 0; i < 3; i++) vm_thread_start(hog, NULL);
    for (int i = 0; i < 3; i++) vm_thread_start(napper, NULL);
    vm_thread_start(breeder, NULL);
    start_partners();
    for (unsigned i = 0; i < test_effort(40); i++) {
        vm_compute(test_random(MS(1)));
        pid_t pid = vm_fork();
        if (pid == 0) {
            alarm(20);
            live_in_child();
        }
        CHECK(pid > 0);
        int status = 0;
        vm_release();
        waitpid(pid, &status, 0);
        vm_acquire();
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "child %u: status %d", i, status);
    }
    check_everybody_moves(MS(5000));
    end_everybody();
    check_given_back();
}

static const struct test tests[] = {
    { "fair_signal", threads_come_and_go_under_fair_and_signal },
    { "fair_poll", threads_come_and_go_under_fair_and_poll },
    { "young", computing_threads_move_while_others_live_for_a_millisecond },
    { "quantum", threads_come_and_go_under_quantum },
    { "policies", policies_change_under_load },
    { "restart", it_starts_and_stops_under_load },
    { "by_hand", who_is_batch_by_hand_survives_stops_and_starts },
    { "parked_start", a_parked_thread_is_not_forgotten_by_a_start },
    { "loose", who_was_interactive_by_hand_gives_way_as_soon_as_it_is_not },
    { "interrupts", interrupts_by_the_thousand_lose_nobody },
    { "lost_wake", a_lost_wake_up_is_noticed_and_counted },
    { "handler", a_handler_that_was_there_before_keeps_its_signals_and_comes_back },
    { "replaced", when_the_handler_is_replaced_preemption_goes_on_by_polling },
    { "ticker", the_ticker_sleeps_when_nobody_competes },
    { "recordings", recordings_start_and_stop_under_load },
    { "fork", a_forked_child_goes_on },
    { NULL, NULL },
};

int
main(int argc, char **argv)
{
    vm_boot();
    start_watchdog();
    test_clean_up = clean_up;
    return test_main("runtime_test", tests, argc, argv);
}
