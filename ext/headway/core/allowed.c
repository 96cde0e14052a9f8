#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "allowed.h"

#ifdef __linux__
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#endif

/* Not on SPARC, where a raw clone tells parent and child apart in a way of its own. */
#if defined(SYS_sched_setattr) && defined(SYS_sched_setaffinity) && defined(PR_GET_SECCOMP) && !defined(__sparc__)

static atomic_bool affinity, slices, asked, asked_filtered;

static bool
filtered(void)
{
    return prctl(PR_GET_SECCOMP, 0UL, 0UL, 0UL, 0UL) > 0;
}

/* Both would change nothing but, of a newer Linux, whether the thread follows its cpuset: so only a child asks. Plain system calls, as it
 * is made behind libc's back. */
static bool
try_affinity(void)
{
    unsigned long mask[16];
    long size = syscall(SYS_sched_getaffinity, 0, sizeof(mask), mask);
    return size > 0 && syscall(SYS_sched_setaffinity, 0, size, mask) == 0 && sched_getcpu() >= 0;
}

static bool
try_slices(void)
{
    uint32_t attributes[16];
    return syscall(SYS_sched_getattr, 0, attributes, sizeof(attributes), 0) == 0 && syscall(SYS_sched_setattr, 0, attributes, 0) == 0;
}

/* Not by fork, which would run everybody's handlers; and without SIGCHLD, which the program may wait for. */
static bool
child_survives(bool (*attempt)(void))
{
    pid_t child = (pid_t)syscall(SYS_clone, 0UL, 0UL, 0UL, 0UL, 0UL);
    if (child < 0) return false;
    if (child == 0) {
        syscall(SYS_prctl, PR_SET_DUMPABLE, 0UL, 0UL, 0UL, 0UL); /* no core file of it */
        for (;;) syscall(SYS_exit_group, attempt() ? 0 : 1);
    }
    int status;
    pid_t waited;
    while ((waited = waitpid(child, &status, __WALL)) < 0 && errno == EINTR) continue;
    return waited == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool
known(void)
{
    return atomic_load(&asked) && (atomic_load(&asked_filtered) || !filtered());
}

void
hw_allowed_find(void)
{
    if (known()) return;
    bool by_child = filtered();
    atomic_store(&slices, !by_child || child_survives(try_slices));
    atomic_store(&affinity, !by_child || child_survives(try_affinity));
    atomic_store(&asked_filtered, by_child);
    atomic_store(&asked, true);
}

bool
hw_allowed_affinity(void)
{
    return known() && atomic_load(&affinity);
}

bool
hw_allowed_slices(void)
{
    return known() && atomic_load(&slices);
}

#else

void
hw_allowed_find(void)
{
}

bool
hw_allowed_affinity(void)
{
    return false;
}

bool
hw_allowed_slices(void)
{
    return false;
}

#endif
