/* Fork, on real threads. */
#include "cast.h"

#define OWNER_LEFT_BEHIND 4711

static void
live_in_child(void)
{
    VM_ASSERT(!runtime.ticker_runs && runtime.scheduler.living == 1 && runtime.scheduler.gate.length == 0);
    VM_ASSERT(runtime.scheduler.holder == atomic_load(&current->record) && runtime.scheduler.counts[HW_IS_READY] == 0);
    VM_ASSERT(atomic_load(&current->record)->account.voluntary < UINT64_MAX / 2);
    VM_ASSERT(hw_runtime_find(&runtime, OWNER_LEFT_BEHIND) == NULL);
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
    struct hw_thread *left_behind = hw_runtime_add(&runtime, HW_SUSPENDED, false);
    hw_runtime_set_owner(&runtime, left_behind, OWNER_LEFT_BEHIND);
    for (unsigned i = 0; i < test_effort(40); i++) {
        vm_compute(test_random(MS(1)));
        pid_t pid = vm_fork();
        if (pid == 0) {
            test_child_begins();
            live_in_child();
        }
        CHECK(pid > 0);
        int status = 0;
        vm_release();
        waitpid(pid, &status, 0);
        vm_acquire();
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "child %u: status %d", i, status);
    }
    CHECK(hw_runtime_find(&runtime, OWNER_LEFT_BEHIND) == left_behind);
    hw_runtime_discard(&runtime, left_behind);
    check_everybody_moves(MS(5000));
    end_everybody();
    check_given_back();
}

static atomic_bool told;

static void *
comes_back(void *thread)
{
    hw_runtime_event(&runtime, thread, HW_EVENT_READY);
    atomic_store(&told, true);
    return NULL;
}

/* It would do so with the VM's lock: the head of fork.c. */
TEST(whoever_comes_back_during_a_fork_waits_for_no_lock)
{
    vm_headway_start(HW_FAIR, MS(100), HW_SIGNAL);
    struct hw_thread *threads[3];
    pthread_t natives[3];
    for (int i = 0; i < 3; i++) threads[i] = hw_runtime_add(&runtime, HW_SUSPENDED, false);
    hw_runtime_before_fork(&runtime);
    for (int i = 0; i < 3; i++) {
        atomic_store(&told, false);
        CHECK(pthread_create(&natives[i], NULL, comes_back, threads[i]) == 0);
        pthread_join(natives[i], NULL);
        CHECK(atomic_load(&told) && threads[i]->state == HW_SUSPENDED);
    }
    hw_runtime_after_fork_parent(&runtime);
    for (int i = 0; i < 3; i++) CHECK(threads[i]->state == HW_READY);
    comes_back(threads[0]); /* once more, and with no fork under way */
    for (int i = 0; i < 3; i++) hw_runtime_discard(&runtime, threads[i]);
    check_given_back();
}

static struct hw_thread *
resumed_here(void)
{
    struct hw_thread *thread = hw_runtime_add(&runtime, HW_SUSPENDED, false);
    hw_runtime_event(&runtime, thread, HW_EVENT_RESUMED);
    hw_runtime_event(&runtime, thread, HW_EVENT_SUSPENDED);
    return thread;
}

TEST(of_threads_that_shared_a_native_thread_the_last_one_lives)
{
    vm_headway_start(HW_OBSERVE, MS(100), HW_SIGNAL);
    struct hw_thread *before = resumed_here(), *last = resumed_here(), *older = resumed_here();
    hw_runtime_event(&runtime, last, HW_EVENT_RESUMED);
    pid_t pid = vm_fork();
    if (pid == 0) {
        test_child_begins();
        VM_ASSERT(runtime.scheduler.living == 1 && runtime.scheduler.threads == last && runtime.scheduler.holder == last);
        _exit(0);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %d", status);
    hw_runtime_event(&runtime, last, HW_EVENT_SUSPENDED);
    hw_runtime_event(&runtime, atomic_load(&current->record), HW_EVENT_RESUMED);
    hw_runtime_discard(&runtime, before);
    hw_runtime_discard(&runtime, last);
    hw_runtime_discard(&runtime, older);
    check_given_back();
}

RUNTIME_TESTS({ "shared", of_threads_that_shared_a_native_thread_the_last_one_lives }, { "fork", a_forked_child_goes_on }, { "ready", whoever_comes_back_during_a_fork_waits_for_no_lock })
