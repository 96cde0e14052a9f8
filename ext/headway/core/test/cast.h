/* Threads for the runtime's tests to put on, a watchdog over them, and what has to be true when they are gone. */
#ifndef HW_TEST_CAST_H
#define HW_TEST_CAST_H

#include "vm.h"

#ifdef __SANITIZE_THREAD__
#define SLOWER 2
#else
#define SLOWER 1
#endif

/* -- the watchdog ------------------------------------------------------------------------------------------------------- */

static inline void
dump(void)
{
    struct hw_scheduler *s = &runtime.scheduler;
    static const char *const names[] = {
#define EACH(name, label) label,
        HW_STATES(EACH)
#undef EACH
    };
    fprintf(stderr, "holder %p, admitted %p for %" PRIu64 " us, gate %u, ready %u, interactive %u, tick in %" PRId64
            " us, ticker %d\n", (void *)s->holder, (void *)s->admitted, (hw_now_ns() - s->admitted_ns) / 1000, s->gate.length, s->counts[HW_IS_READY], s->counts[HW_IS_INTERACTIVE_ACTIVE],
            (int64_t)(runtime.tick_ns - hw_now_ns()) / 1000, runtime.ticker_runs);
    for (struct hw_thread *thread = s->threads; thread; thread = thread->next) {
        fprintf(stderr, "  %p %s%s tier %u%s%s%s%s since %" PRIu64 " us\n", (void *)thread, names[thread->state],
                thread->batch ? " batch" : "", thread->tier, thread->at_gate ? " at-gate" : "", thread->parked ? " parked" : "",
                thread->open ? " open" : "", thread->yielding ? " yielding" : "", (hw_now_ns() - thread->since_ns) / 1000);
    }
}

/* Somebody computes all the time in these tests, and main sleeps and wakes: the GVL must keep changing hands. */
static inline void *
watch(void *arg)
{
    (void)arg;
    unsigned long long before = 0;
    for (unsigned still = 0; still < 15 * SLOWER;) {
        sleep_ns(MS(1000));
        unsigned long long progress = atomic_load(&vm.progress);
        still = progress == before ? still + 1 : 0;
        before = progress;
    }
    fprintf(stderr, "stalled in %s\n", test_running);
    dump();
    abort();
}

static inline void
start_watchdog(void)
{
    pthread_t thread;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    VM_ASSERT(pthread_create(&thread, NULL, watch, NULL) == 0);
    pthread_detach(thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* -- the cast ----------------------------------------------------------------------------------------------------------- */

static atomic_bool curtain; /* everybody ends */

static inline void
hog(void *arg)
{
    (void)arg;
    while (!atomic_load(&curtain)) {
        vm_compute(US(200));
        atomic_fetch_add(&current->rounds, 1);
    }
}

static inline void
napper(void *arg)
{
    uint64_t nap_ns = arg ? *(uint64_t *)arg : US(500);
    while (!atomic_load(&curtain)) {
        vm_sleep(nap_ns);
        vm_compute(US(20));
        atomic_fetch_add(&current->rounds, 1);
    }
}

static inline void
mortal(void *arg)
{
    vm_compute(arg ? *(uint64_t *)arg : US(100));
    vm_sleep(US(50));
    vm_compute(US(50));
}

static inline void
breeder(void *arg)
{
    while (!atomic_load(&curtain)) {
        vm_thread_start(mortal, arg);
        vm_compute(US(100));
        vm_sleep(US(300));
        atomic_fetch_add(&current->rounds, 1);
    }
}

/* Wakes its partner and waits for it. */
static inline void
partner(void *arg)
{
    struct vm_thread *_Atomic *other = arg;
    while (atomic_load(other) == NULL && !atomic_load(&curtain)) vm_sleep(US(100));
    while (!atomic_load(&curtain)) {
        vm_compute(US(10));
        vm_wake(atomic_load(other));
        vm_wait_for_wake();
        atomic_fetch_add(&current->rounds, 1);
    }
    if (atomic_load(other)) vm_wake(atomic_load(other));
}

static struct vm_thread *_Atomic partners[2];

static inline void
start_partners(void)
{
    atomic_store(&partners[0], NULL);
    atomic_store(&partners[1], NULL);
    struct vm_thread *first = vm_thread_start(partner, &partners[1]), *second = vm_thread_start(partner, &partners[0]);
    atomic_store(&partners[0], first);
    atomic_store(&partners[1], second);
}

static inline void
end_everybody(void)
{
    atomic_store(&curtain, true);
    while (vm_alive() > 1) {
        for (int i = 0; i < VM_THREADS; i++) {
            if (vm.threads[i].asleep) vm_wake(&vm.threads[i]);
        }
        vm_sleep(MS(1));
    }
    atomic_store(&curtain, false);
}

static inline void
clean_up(void)
{
    vm_headway_stop();
    end_everybody();
    atomic_store(&vm.slice_ns, MS(20));
}

/* Waiting for what is to come. What lies beyond 20 ms between two looks doesn't count: a machine that is stopped or busy with others
 * gives nobody the time in which it could have come. */
struct patience {
    uint64_t looked_ns, waited_ns;
};

static inline uint64_t
waited_ns(struct patience *patience)
{
    uint64_t now = hw_now_ns(), passed_ns = patience->looked_ns ? now - patience->looked_ns : 0;
    patience->looked_ns = now;
    return patience->waited_ns += passed_ns < MS(20) ? passed_ns : MS(20);
}

static inline bool
soon(bool (*happened)(void), uint64_t within_ns)
{
    struct patience patience = { 0, 0 };
    while (!happened()) {
        if (waited_ns(&patience) > within_ns * SLOWER) return false;
        vm_sleep(US(500));
    }
    return true;
}

static inline bool
ticker_sleeps(void)
{
    pthread_mutex_lock(&runtime.lock);
    bool sleeps = runtime.ticker_wake_ns == HW_NEVER;
    pthread_mutex_unlock(&runtime.lock);
    return sleeps;
}

/* -- checks ------------------------------------------------------------------------------------------------------------- */

static inline uint64_t
park_timeouts(void)
{
    pthread_mutex_lock(&runtime.lock);
    uint64_t timeouts = runtime.park_timeouts;
    pthread_mutex_unlock(&runtime.lock);
    return timeouts;
}

/* Main is alone again. */
static inline void
check_given_back(void)
{
    uint64_t timeouts = park_timeouts();
    vm_headway_stop();
    CHECK_EQUAL(0, timeouts);
    CHECK(!runtime.ticker_runs && !hw_signal_installed());
    CHECK_EQUAL(0, runtime.scheduler.gate.length);
}

static inline void
check_everybody_moves(uint64_t within_ns)
{
    unsigned long long before[VM_THREADS];
    for (int i = 0; i < VM_THREADS; i++) before[i] = atomic_load(&vm.threads[i].rounds);
    struct patience patience = { 0, 0 };
    for (;;) {
        int still = -1;
        for (int i = 1; i < VM_THREADS; i++) {
            struct vm_thread *thread = &vm.threads[i];
            if (thread->used && thread->body != mortal && atomic_load(&thread->rounds) == before[i]) still = i;
        }
        if (still < 0) return;
        if (waited_ns(&patience) > within_ns * SLOWER) {
            dump();
            CHECK(false, "thread %d stands still", still);
        }
        vm_sleep(MS(1));
    }
}

#define RUNTIME_TESTS(...)                                                                                                     \
    int main(int argc, char **argv)                                                                                            \
    {                                                                                                                          \
        const struct test tests[] = { __VA_ARGS__, { NULL, NULL } };                                                           \
        vm_boot();                                                                                                             \
        start_watchdog();                                                                                                      \
        test_clean_up = clean_up;                                                                                              \
        return test_main(strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[0], tests, argc, argv);                      \
    }

#endif
