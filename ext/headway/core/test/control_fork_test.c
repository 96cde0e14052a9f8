/* Processes fork while the control socket is asked for all it has. */
#include "controlled.h"

/* The lock of what ASan keeps of freed memory isn't taken across a fork (gcc 16): in a child that got it locked, who frees spins for
 * ever. Without such memory there is no lock. */
const char *
__asan_default_options(void)
{
    return "quarantine_size_mb=0";
}

TEST(forks_while_clients_ask)
{
    set_up();
    atomic_store(&over, false);
    CHECK(hw_control_open(&control) == NULL);
    pthread_t client;
    atomic_uint answers = 0;
    pthread_create(&client, NULL, ask_all, &answers);
    for (unsigned round = test_effort(40); round; round--) {
        hw_control_before_fork(&control);
        hw_runtime_before_fork(&runtime);
        pid_t child = fork();
        if (child == 0) {
            test_child_begins();
            hw_runtime_after_fork_child(&runtime);
            hw_control_after_fork_child(&control);
            bool closed = control.reopen && control.listener.fd < 0;
#ifndef __SANITIZE_THREAD__ /* which allows no threads in a child */
            closed = closed && hw_control_open(&control) == NULL && says(J("{'ping':true}\n"), "ping");
            if (hw_recorder_runs(&runtime.recorder)) closed = closed && says(J("{'record':false}\n"), "recorder");
            closed = closed && says(J("{'record':{}}\n"), "flight") && says(J("{'record':false}\n"), "flight");
            hw_control_close(&control);
#endif
            _exit(closed ? 0 : 1);
        }
        hw_runtime_after_fork_parent(&runtime);
        hw_control_after_fork_parent(&control);
        int status;
        waitpid(child, &status, 0);
        CHECK_EQUAL(0, (uint64_t)status);
    }
    CHECK_EQUAL(1, (uint64_t)files());
    atomic_store(&over, true);
    pthread_join(client, NULL);
    end_recording();
    tear_down();
}

TESTS({ "forks", forks_while_clients_ask })
