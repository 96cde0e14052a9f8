/* The watcher's thread. */
#include "loop_watch.h"
#include "cond.h"

#include <signal.h>
#include <unistd.h>

#define ASK_AGAIN_NS HW_NS_PER_MS

static uint64_t
look(struct hw_loop_watch *watch)
{
    uint64_t began = atomic_load(&watch->began_ns), now = hw_now_ns();
    if (began == 0) {
        atomic_store(&watch->dozing, true);
        return atomic_load(&watch->began_ns) == 0 ? HW_NEVER : now;
    }
    if (now < began + watch->threshold_ns) return began + watch->threshold_ns;
    if (atomic_load(&watch->answered_ns) == began) return now + watch->threshold_ns;
    pthread_mutex_unlock(&watch->lock);
    watch->ask();
    pthread_mutex_lock(&watch->lock);
    return now + ASK_AGAIN_NS;
}

static void *
run(void *arg)
{
    struct hw_loop_watch *watch = arg;
    pthread_mutex_lock(&watch->lock);
    while (!watch->must_end) {
        uint64_t until = look(watch);
        if (!watch->must_end) hw_cond_wait_until(&watch->cond, &watch->lock, until);
        atomic_store(&watch->dozing, false);
    }
    pthread_mutex_unlock(&watch->lock);
    return NULL;
}

void
hw_loop_watch_rouse(struct hw_loop_watch *watch)
{
    if (watch->pid != getpid()) return;
    pthread_mutex_lock(&watch->lock);
    pthread_cond_signal(&watch->cond);
    pthread_mutex_unlock(&watch->lock);
}

bool
hw_loop_watch_start(struct hw_loop_watch *watch, uint64_t threshold_ns, void (*ask)(void))
{
    watch->threshold_ns = threshold_ns;
    watch->ask = ask;
    atomic_init(&watch->began_ns, 0);
    atomic_init(&watch->answered_ns, 0);
    atomic_init(&watch->dozing, false);
    watch->must_end = false;
    watch->pid = getpid();
    pthread_mutex_init(&watch->lock, NULL);
    hw_cond_init(&watch->cond);

    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    watch->runs = pthread_create(&watch->watcher, NULL, run, watch) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return watch->runs;
}

void
hw_loop_watch_end(struct hw_loop_watch *watch)
{
    if (!watch->runs || watch->pid != getpid()) return;
    pthread_mutex_lock(&watch->lock);
    watch->must_end = true;
    pthread_cond_signal(&watch->cond);
    pthread_mutex_unlock(&watch->lock);
    pthread_join(watch->watcher, NULL);
    watch->runs = false;
    pthread_cond_destroy(&watch->cond);
    pthread_mutex_destroy(&watch->lock);
}
