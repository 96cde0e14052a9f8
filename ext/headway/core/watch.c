/* The watch: the native thread that writes a dump when the alarm sounds, mode flight with alarm_ns. It sleeps until then. Ruby need
 * not run for it, so that a wait behind a thread that never gives up the GVL is told of while it lasts. Each dump gets a file of its
 * own, out.wait-1.headway. */
#include "recorder.h"

#include "clock.h"
#include "cond.h"
#include "teller.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

/* A program that always waits too long must not spend its time dumping. */
#define MOST_DUMPS 10
#ifdef HW_TEST
#define PAUSE_NS (50 * HW_NS_PER_MS)
#else
#define PAUSE_NS (5 * HW_NS_PER_S)
#endif
#define MOST_FILES 100000

static void
choose_path(struct hw_recorder *r, char path[HW_PATH_LONGEST])
{
    char base[HW_PATH_LONGEST], infix[24];
    hw_recorder_dump_path(r, base);
    for (unsigned number = 1; number <= MOST_FILES; number++) {
        snprintf(infix, sizeof(infix), "wait-%u", number);
        hw_recorder_variant(base, infix, path);
        if (access(path, F_OK) != 0) return;
    }
}

static void
dump(struct hw_recorder *r)
{
    char path[HW_PATH_LONGEST];
    if (r->teller == NULL || !hw_recorder_announce_dump(r)) return;
    choose_path(r, path);
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
