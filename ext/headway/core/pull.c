#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "pull.h"

#include "allowed.h"
#include "thread.h"

#ifdef __linux__

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WORD_BITS (8 * (int)sizeof(unsigned long))

static bool
read_processors(int native_id, struct hw_processors *processors)
{
    memset(processors, 0, sizeof(*processors));
    return syscall(SYS_sched_getaffinity, native_id, sizeof(processors->bits), processors->bits) > 0;
}

static bool
set_processors(int native_id, const struct hw_processors *processors)
{
    return syscall(SYS_sched_setaffinity, native_id, sizeof(processors->bits), processors->bits) == 0;
}

static bool
same(const struct hw_processors *a, const struct hw_processors *b)
{
    return memcmp(a, b, sizeof(*a)) == 0;
}

static struct hw_processors
only(int processor)
{
    struct hw_processors processors = { { 0 } };
    processors.bits[processor / WORD_BITS] = 1UL << (processor % WORD_BITS);
    return processors;
}

bool
hw_pull_possible(void)
{
    struct hw_processors all;
    return hw_allowed_affinity() && sysconf(_SC_NPROCESSORS_ONLN) > 1 && sched_getcpu() >= 0 && read_processors(0, &all);
}

/* Who may run wherever its cpuset lets it is set free altogether: given a mask, even that one, it would not follow a cpuset that grows.
 * What somebody else has set meanwhile stays. */
static bool
give_back(int native_id, const struct hw_pull *pull)
{
    struct hw_processors now, pulled = only(pull->to), everywhere;
    if (!read_processors(native_id, &now)) return false;
    struct hw_processors wanted = same(&now, &pulled) ? pull->before : now;
    memset(&everywhere, 0xff, sizeof(everywhere));
    bool free = set_processors(native_id, &everywhere) && read_processors(native_id, &now);
    return (free && same(&now, &wanted)) || set_processors(native_id, &wanted) || free;
}

void
hw_pull_ends(struct hw_thread *sleeper)
{
    if (!sleeper->pull.pulled) return;
    int saved_errno = errno; /* the VM's own way through its hooks leaves it alone */
    sleeper->pull.pulled = !give_back(sleeper->native_id, &sleeper->pull);
    errno = saved_errno;
}

static bool
bind_to_here(struct hw_thread *sleeper)
{
    struct hw_pull *pull = &sleeper->pull;
    int here = sched_getcpu();
    if (sleeper->native_id == 0 || here < 0 || here >= HW_PROCESSORS_MOST) return false;
    struct hw_processors target = only(here);
    if (pull->pulled && here == pull->to) return false;
    hw_pull_ends(sleeper);
    if (!read_processors(sleeper->native_id, &pull->before)) return false;
    bool allowed = pull->before.bits[here / WORD_BITS] & target.bits[here / WORD_BITS];
    if (!allowed || same(&pull->before, &target) || !set_processors(sleeper->native_id, &target)) return false;
    pull->to = here;
    return pull->pulled = true;
}

bool
hw_pull(struct hw_thread *sleeper)
{
    int saved_errno = errno;
    bool pulled = bind_to_here(sleeper);
    errno = saved_errno;
    return pulled;
}

#else

bool
hw_pull_possible(void)
{
    return false;
}

bool
hw_pull(struct hw_thread *sleeper)
{
    (void)sleeper;
    return false;
}

void
hw_pull_ends(struct hw_thread *sleeper)
{
    (void)sleeper;
}

#endif
