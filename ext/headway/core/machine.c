#include "machine.h"
#include "cond.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Two threads: one spins, as a holder computes, and is signalled; the other sleeps till it is woken for it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t woken;
static bool released;
static atomic_bool ending, signalled;
static _Atomic uint64_t handled_ns, woke_ns;

static void
on_signal(int number)
{
    (void)number;
    atomic_store(&handled_ns, hw_now_ns());
    atomic_store(&signalled, true);
}

static void *
spin(void *unused)
{
    (void)unused;
    while (!atomic_load(&ending)) {
        if (!atomic_exchange(&signalled, false)) continue;
        pthread_mutex_lock(&lock);
        released = true;
        atomic_store(&woke_ns, hw_now_ns());
        pthread_cond_signal(&woken);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

/* A machine that gives the other thread no time for so long, or a signal that doesn't reach it, can't be measured. */
#define PATIENCE_NS HW_NS_PER_S

static bool
measure_once(pthread_t spinner, uint64_t *signal_ns, uint64_t *wake_ns)
{
    struct timespec pause = { .tv_nsec = (long)HW_NS_PER_MS };
    nanosleep(&pause, NULL);
    pthread_mutex_lock(&lock);
    released = false;
    uint64_t sent_ns = hw_now_ns();
    pthread_kill(spinner, SIGURG);
    bool in_time = true;
    while (!released && in_time) in_time = hw_cond_wait_until(&woken, &lock, sent_ns + PATIENCE_NS);
    bool measured = released;
    pthread_mutex_unlock(&lock);
    *wake_ns = hw_now_ns() - atomic_load(&woke_ns);
    *signal_ns = atomic_load(&handled_ns) - sent_ns;
    return measured;
}

bool
hw_machine_measure(unsigned rounds, struct hw_machine_floor *floor)
{
    if (rounds == 0) return false;
    uint64_t *signals = calloc(2 * (size_t)rounds, sizeof(*signals));
    if (signals == NULL) return false;
    uint64_t *wakes = signals + rounds;
    struct sigaction action, before;
    memset(&action, 0, sizeof(action));
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    hw_cond_init(&woken);
    atomic_store(&ending, false);
    atomic_store(&signalled, false);

    pthread_t spinner;
    bool done = sigaction(SIGURG, &action, &before) == 0;
    if (done) {
        done = pthread_create(&spinner, NULL, spin, NULL) == 0;
        if (done) {
            for (unsigned i = 0; i < rounds && done; i++) done = measure_once(spinner, &signals[i], &wakes[i]);
            atomic_store(&ending, true);
            pthread_join(spinner, NULL);
        }
        sigaction(SIGURG, &before, NULL);
    }
    pthread_cond_destroy(&woken);
    qsort(signals, rounds, sizeof(*signals), hw_compare_ns);
    qsort(wakes, rounds, sizeof(*wakes), hw_compare_ns);
    floor->signal_ns = signals[rounds / 2];
    floor->wake_ns = wakes[rounds / 2];
    free(signals);
    return done;
}
