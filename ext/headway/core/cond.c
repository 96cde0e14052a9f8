#include "cond.h"

#include "clock.h"

void
hw_cond_init(pthread_cond_t *cond)
{
#ifdef HAVE_PTHREAD_CONDATTR_SETCLOCK
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attr);
    pthread_condattr_destroy(&attr);
#else
    pthread_cond_init(cond, NULL);
#endif
}

static struct timespec
timespec_of(uint64_t ns)
{
    return (struct timespec){ .tv_sec = (time_t)(ns / HW_NS_PER_S), .tv_nsec = (long)(ns % HW_NS_PER_S) };
}

bool
hw_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t until_ns)
{
    if (until_ns == HW_NEVER) {
        pthread_cond_wait(cond, lock);
        return true;
    }
#ifdef HAVE_PTHREAD_CONDATTR_SETCLOCK
    struct timespec until = timespec_of(until_ns);
    return pthread_cond_timedwait(cond, lock, &until) == 0;
#else /* macOS has no monotonic condition variables, but waits for a length of time */
    uint64_t now = hw_now_ns();
    struct timespec length = timespec_of(until_ns > now ? until_ns - now : 0);
    return pthread_cond_timedwait_relative_np(cond, lock, &length) == 0;
#endif
}
