/* The runtime on real threads, in a VM in miniature (vm.h): nothing stalls, nothing is lost, everything is given back. */
#include "cast.h"

#ifdef __linux__
#include <dirent.h>
#include <sched.h>
#endif

#include "analysis.h"
#include "feed.h"

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
    struct patience patience = { 0, 0 };
    while (atomic_load(&vm.jobs) == jobs && waited_ns(&patience) < MS(5000)) vm_sleep(MS(1));
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

/* On a machine that is busy with others. */
static bool
too_little_happened(bool alarms)
{
    struct hw_recorder *recorder = &runtime.recorder;
    pthread_mutex_lock(&recorder->alarm_lock);
    bool none = alarms && recorder->alarms == 0;
    pthread_mutex_unlock(&recorder->alarm_lock);
    return none || hw_ring_claimed(&recorder->ring) <= 100;
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
        struct patience patience = { 0, 0 };
        while (hw_now_ns() < end_ns || (too_little_happened(round % 2) && waited_ns(&patience) < MS(5000))) vm_sleep(MS(1));
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

/* What was under way at the stop counts for nothing after the next start. */
static void
check_nobody_is_older_than_the_start(void)
{
    unsigned older = 0;
    pthread_mutex_lock(&runtime.lock);
    uint64_t now = hw_now_ns();
    for (struct hw_thread *thread = runtime.scheduler.threads; thread; thread = thread->next) {
        struct hw_account account = hw_account_at(thread, now);
        uint64_t sum_ns = account.time_ns[HW_SUSPENDED] + account.time_ns[HW_READY] + account.time_ns[HW_RUNNING];
        older += sum_ns > now - runtime.started_ns;
    }
    pthread_mutex_unlock(&runtime.lock);
    CHECK_EQUAL(0, older);
}

TEST(it_starts_and_stops_under_load)
{
    vm_headway_start(HW_FAIR, MS(5), HW_SIGNAL);
    for (int i = 0; i < 3; i++) vm_thread_start(hog, NULL);
    for (int i = 0; i < 3; i++) vm_thread_start(napper, NULL);
    vm_thread_start(breeder, NULL);
    for (unsigned i = 0; i < test_effort(60); i++) {
        vm_headway_stop();
        CHECK(!hw_signal_installed() && !runtime.ticker_runs && atomic_load(&runtime.ready) == 0);
        if (test_random(2)) vm_sleep(US(500));
        vm_headway_start(HW_FAIR, MS(5), test_random(4) ? HW_SIGNAL : HW_POLL);
        vm_sleep(test_random(2) ? US(200) : MS(3));
        check_nobody_is_older_than_the_start();
    }
    check_everybody_moves(MS(5000));
    end_everybody();
    check_given_back();
}

#ifdef __linux__
static cpu_set_t everywhere;

static bool
nobody_is_bound(void)
{
    bool free = true;
    DIR *tasks = opendir("/proc/self/task");
    VM_ASSERT(tasks != NULL);
    for (struct dirent *task; (task = readdir(tasks));) {
        cpu_set_t set;
        if (task->d_name[0] != '.' && sched_getaffinity(atoi(task->d_name), sizeof(set), &set) == 0) free = free && CPU_EQUAL(&set, &everywhere);
    }
    closedir(tasks);
    return free;
}

TEST(nobody_stays_on_the_processor_it_was_pulled_to)
{
    CHECK(sched_getaffinity(0, sizeof(everywhere), &everywhere) == 0);
    vm_headway_start(HW_FAIR, MS(5), HW_SIGNAL);
    bool pulls = runtime.pulls;
    for (int i = 0; i < 3; i++) vm_thread_start(hog, NULL);
    for (int i = 0; i < 3; i++) vm_thread_start(napper, NULL);
    for (unsigned i = 0; i < test_effort(30); i++) {
        vm_sleep(MS(20));
        bool pulled = atomic_load(&runtime.pulled) > 0;
        vm_headway_stop();
        CHECK(soon(nobody_is_bound, MS(2000)));
        CHECK(pulls || !pulled);
        vm_headway_start(HW_FAIR, MS(5), i % 2 ? HW_SIGNAL : HW_POLL);
    }
    check_everybody_moves(MS(5000));
    end_everybody();
    check_given_back();
}
#define LINUX_TESTS , { "bound", nobody_stays_on_the_processor_it_was_pulled_to }
#else
#define LINUX_TESTS
#endif

TEST(who_was_announced_and_never_came_is_swept)
{
    vm_headway_start(HW_FAIR, MS(5), HW_SIGNAL);
    atomic_load(&current->record)->seen = true;
    struct hw_thread *ending = hw_runtime_add(&runtime, HW_SUSPENDED, false), *unborn = hw_runtime_add(&runtime, HW_READY, true);
    struct hw_thread *stillborn[2] = { hw_runtime_add(&runtime, HW_READY, true), hw_runtime_add(&runtime, HW_SUSPENDED, true) };
    ending->ractor_known = unborn->seen = true;
    hw_runtime_sweep(&runtime, true);
    CHECK_EQUAL(3, runtime.scheduler.living);
    CHECK_EQUAL(1, runtime.scheduler.counts[HW_IS_READY]);
    CHECK_EQUAL(1, runtime.scheduler.unborn);
    CHECK(ending->link && unborn->link && !unborn->seen && !stillborn[0]->link && !stillborn[1]->link);
    hw_runtime_discard(&runtime, ending);
    hw_runtime_discard(&runtime, unborn);
    check_given_back();
}

TEST(a_record_is_given_back_once)
{
    vm_headway_start(HW_FAIR, MS(5), HW_SIGNAL);
    struct hw_thread *record = hw_runtime_add(&runtime, HW_SUSPENDED, false);
    hw_runtime_discard(&runtime, record);
    hw_runtime_discard(&runtime, record);
    CHECK(runtime.spare == record && record->next != record);
    check_given_back();
}

#define OWNERS 2000

TEST(a_record_is_found_by_its_owner_as_long_as_it_lives)
{
    static struct hw_thread *records[OWNERS];
    vm_headway_start(HW_FAIR, MS(5), HW_SIGNAL);
    for (uintptr_t i = 0; i < OWNERS; i++) {
        records[i] = hw_runtime_add(&runtime, HW_SUSPENDED, false);
        hw_runtime_set_owner(&runtime, records[i], 40 * (i + 1));
    }
    for (uintptr_t i = 0; i < OWNERS; i++) CHECK(hw_runtime_find(&runtime, 40 * (i + 1)) == records[i]);
    for (uintptr_t i = 0; i < OWNERS; i += 2) hw_runtime_discard(&runtime, records[i]);
    for (uintptr_t i = 0; i < OWNERS; i++) CHECK(hw_runtime_find(&runtime, 40 * (i + 1)) == (i % 2 ? records[i] : NULL));
    for (uintptr_t i = 0; i < OWNERS; i += 2) { /* of those given back, and at addresses of threads that are gone */
        records[i] = hw_runtime_add(&runtime, HW_SUSPENDED, false);
        hw_runtime_set_owner(&runtime, records[i], 40 * (i + 1));
    }
    hw_runtime_set_owner(&runtime, records[1], 8);
    CHECK(hw_runtime_find(&runtime, 8) == records[1] && hw_runtime_find(&runtime, 80) == NULL);
    CHECK(hw_runtime_find(&runtime, 40) == records[0]);
    for (uintptr_t i = 0; i < OWNERS; i++) hw_runtime_discard(&runtime, records[i]);
    CHECK(hw_runtime_find(&runtime, 8) == NULL);
    check_given_back();
}

/* A change of settings lets those go that are parked; who isn't has given nothing away. Nobody switches here: main keeps the GVL. */
TEST(who_gives_way_waits_for_the_switch_after_a_change_of_settings_too)
{
    vm_headway_start(HW_QUANTUM, MS(5), HW_SIGNAL);
    for (int i = 0; i < 2; i++) vm_thread_start(hog, NULL);
    vm_headway_start(HW_QUANTUM, MS(10), HW_SIGNAL);
    uint64_t from_ns = hw_now_ns();
    hw_runtime_await_switch(&runtime, atomic_load(&current->record));
    CHECK(hw_now_ns() - from_ns >= MS(1));
    end_everybody();
    check_given_back();
}

RUNTIME_TESTS({ "once", a_record_is_given_back_once }, { "owners", a_record_is_found_by_its_owner_as_long_as_it_lives },
              { "stillborn", who_was_announced_and_never_came_is_swept }, { "fair_signal", threads_come_and_go_under_fair_and_signal },
              { "fair_poll", threads_come_and_go_under_fair_and_poll },
              { "young", computing_threads_move_while_others_live_for_a_millisecond },
              { "quantum", threads_come_and_go_under_quantum }, { "policies", policies_change_under_load },
              { "await", who_gives_way_waits_for_the_switch_after_a_change_of_settings_too },
              { "restart", it_starts_and_stops_under_load }, { "recordings", recordings_start_and_stop_under_load } LINUX_TESTS)
