/* Fork, on real threads. */
#include "cast.h"

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
            alarm(60);
            test_forgive_leaks_of_fork();
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

RUNTIME_TESTS({ "fork", a_forked_child_goes_on })
