/* The watch: the native thread that writes a dump when the alarm sounds, mode flight with alarm_ns. It sleeps until then. Ruby need
 * not run for it, so that a wait behind a thread that never gives up the GVL is told of while it lasts. Each dump gets a file of its
 * own, out.wait-1.headway. */
#include "recorder.h"

#include "clock.h"
#include "cond.h"
#include "teller.h"

#include <errno.h>
#include <stdio.h>

/* A program that always waits too long must not spend its time dumping. */
#define MOST_DUMPS 10
#ifdef HW_TEST
#define PAUSE_NS (50 * HW_NS_PER_MS)
#else
#define PAUSE_NS (5 * HW_NS_PER_S)
#endif

static void
dump(struct hw_recorder *r)
{
    char base[HW_PATH_LONGEST], path[HW_PATH_LONGEST];
    if (r->teller == NULL || !hw_recorder_announce_dump(r)) return;
    hw_recorder_dump_path(r, base);
    hw_recorder_next_path(base, "wait", path);
    int error = hw_teller_dump(r->teller, path);
    if (error == 0) return;
    pthread_mutex_lock(&r->alarm_lock);
    snprintf(r->undumped_path, sizeof(r->undumped_path), "%s", path);
    atomic_store(&r->undumped, error);
    pthread_mutex_unlock(&r->alarm_lock);
}

/* Alarms in a pause count when it is over. Lock held. */
static void
pause_watch(struct hw_recorder *r)
{
    uint64_t until_ns = hw_now_ns() + PAUSE_NS;
    while (!r->watch_must_end && hw_now_ns() < until_ns) hw_cond_wait_until(&r->alarm_cond, &r->alarm_lock, until_ns);
}

void *
hw_watch(void *arg)
{
    struct hw_recorder *r = arg;
    unsigned dumps = 0;
    pthread_mutex_lock(&r->alarm_lock);
    while (!r->watch_must_end) {
        if (r->alarms == r->heeded || dumps == MOST_DUMPS) {
            hw_cond_wait_until(&r->alarm_cond, &r->alarm_lock, HW_NEVER);
            continue;
        }
        r->heeded = r->alarms;
        pthread_mutex_unlock(&r->alarm_lock);
        dump(r);
        dumps++;
        pthread_mutex_lock(&r->alarm_lock);
        pause_watch(r);
    }
    pthread_mutex_unlock(&r->alarm_lock);
    return NULL;
}
