/* What recording costs: make bench. Not a test: prints figures. */
#include "clock.h"
#include "feed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct hw_recorder recorder;
static char path[] = "/tmp/headway-bench-XXXXXX";

static int
compare(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static void
print_median(const char *what, double *figures, int count)
{
    qsort(figures, (size_t)count, sizeof(*figures), compare);
    printf("%-52s median %6.1f  min %6.1f  max %6.1f  n %d\n", what, figures[count / 2], figures[0], figures[count - 1], count);
}

static void
start(bool flight)
{
    struct hw_recording set = { .flight = flight, .slots = 1 << 20 };
    if (!flight) snprintf(set.path, sizeof(set.path), "%s", path);
    if (hw_recorder_start(&recorder, &set) != 0) abort();
    hw_recorder_go(&recorder);
}

/* The thread's own time: others on this machine count less. */
static uint64_t
spent_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (uint64_t)ts.tv_sec * HW_NS_PER_S + (uint64_t)ts.tv_nsec;
}

#define ROUNDS 15
#define EVENTS 500000

static void
cost_per_event(const char *what, bool flight, bool clock)
{
    double ns[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        start(flight);
        uint64_t from_ns = spent_ns(), now = from_ns;
        for (uint32_t i = 0; i < EVENTS; i++) {
            if (clock) now = hw_now_ns();
            hw_record(&recorder, HW_TRACE_READY + i % 3, i % 8 + 1, 0, now + i * !clock);
        }
        ns[round] = (double)(spent_ns() - from_ns) / EVENTS;
        atomic_store(&recorder.recording, false);
        hw_recorder_stop(&recorder, NULL);
    }
    print_median(what, ns, ROUNDS);
}

static void
cost_when_off(void)
{
    double ns[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t from_ns = spent_ns();
        for (uint32_t i = 0; i < EVENTS; i++) {
            hw_record(&recorder, HW_TRACE_READY, 1, 0, i);
            __asm__ volatile("" ::: "memory");
        }
        ns[round] = (double)(spent_ns() - from_ns) / EVENTS;
    }
    print_median("nothing records, ns an event", ns, ROUNDS);
}

/* A million events a second for five seconds, in the rhythm of the hooks: one at a time, by the clock. */
static void
a_million_a_second(void)
{
    enum { SECONDS = 5, RATE = 1000000 };
    start(false);
    uint64_t from_ns = hw_now_ns();
    for (uint32_t i = 0; i < SECONDS * RATE; i++) {
        uint64_t due_ns = from_ns + (uint64_t)i * 1000, now;
        while ((now = hw_now_ns()) < due_ns) {}
        hw_record(&recorder, HW_TRACE_READY + i % 3, i / 3 % 8 + 1, 0, now);
    }
    double seconds = (double)(hw_now_ns() - from_ns) / 1e9;
    uint64_t dropped = hw_ring_dropped(&recorder.ring), events = hw_ring_claimed(&recorder.ring);
    atomic_store(&recorder.recording, false);
    hw_recorder_stop(&recorder, NULL);
    printf("streamed %.2f million events a second for %.2f s: %llu dropped, %.2f bytes an event\n", events / seconds / 1e6, seconds,
           (unsigned long long)dropped, (double)recorder.bytes / (double)events);
}

/* -- the scheduler's events, attribution included ----------------------------------------------------------------------- */

static void
cost_of_switches(const char *what, unsigned threads, unsigned waiting)
{
    static struct hw_thread cast[64];
    struct hw_scheduler scheduler;
    struct hw_policy policy = hw_policy_default;
    struct hw_orders orders;
    double ns[ROUNDS];
    policy.kind = HW_OBSERVE;
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t now = HW_NS_PER_S;
        memset(cast, 0, sizeof(cast));
        hw_scheduler_init(&scheduler, &policy);
        for (unsigned i = 0; i < threads; i++) {
            hw_account_init(&cast[i].account, 2);
            hw_scheduler_add(&scheduler, &cast[i], HW_SUSPENDED, now);
        }
        for (unsigned i = 0; i < waiting; i++) hw_scheduler_ready(&scheduler, &cast[i], now, &orders);
        uint64_t from_ns = spent_ns();
        for (unsigned i = 0; i < EVENTS / 3; i++) {
            struct hw_thread *thread = &cast[i % threads];
            hw_scheduler_ready(&scheduler, &cast[(i + waiting) % threads], now += 1000, &orders);
            hw_scheduler_resumed(&scheduler, thread, now += 1000, &orders);
            hw_scheduler_suspended(&scheduler, thread, now += 1000, &orders);
        }
        ns[round] = (double)(spent_ns() - from_ns) / EVENTS;
        for (unsigned i = 0; i < threads; i++) hw_account_free(&cast[i].account);
        hw_scheduler_free(&scheduler);
    }
    print_median(what, ns, ROUNDS);
}

/* -- all that a hook does: the lock, the clock, the scheduler, the recorder ----------------------------------------------- */

enum recording { NONE, FLIGHT, STREAM };

static void
ignore_trigger(void)
{
}

/* Two threads hand the GVL to each other, on one core: on two it is dearer, and much depends on which two. */
static void
cost_of_a_hook(const char *what, enum recording recording)
{
    static struct hw_runtime runtime;
    struct hw_policy policy = hw_policy_default;
    double ns[ROUNDS];
    policy.kind = HW_OBSERVE;
    if (!hw_runtime_init(&runtime, ignore_trigger) || !hw_runtime_start(&runtime, &policy, HW_POLL, false)) abort();
    struct hw_thread *threads[] = { hw_runtime_add(&runtime, HW_RUNNING, false), hw_runtime_add(&runtime, HW_SUSPENDED, false) };
    struct hw_recording set = { .flight = recording == FLIGHT, .slots = 1 << 20 };
    if (recording == STREAM) snprintf(set.path, sizeof(set.path), "%s", path);
    if (recording != NONE && hw_feed_start(&runtime, &set) != 0) abort();
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t from_ns = spent_ns();
        for (unsigned i = 0; i < EVENTS / 3; i++) {
            hw_runtime_event(&runtime, threads[~i & 1], HW_EVENT_READY);
            hw_runtime_event(&runtime, threads[i & 1], HW_EVENT_SUSPENDED);
            hw_runtime_event(&runtime, threads[~i & 1], HW_EVENT_RESUMED);
        }
        ns[round] = (double)(spent_ns() - from_ns) / EVENTS;
    }
    if (hw_recorder_claim_end(&runtime.recorder)) {
        hw_feed_close(&runtime);
        hw_recorder_stop(&runtime.recorder, NULL);
    }
    hw_runtime_stop(&runtime);
    print_median(what, ns, ROUNDS);
}

int
main(void)
{
    if (mkstemp(path) < 0) return 1;
    hw_recorder_init(&recorder);
    cost_when_off();
    cost_per_event("stream, ns an event, the time given", false, false);
    cost_per_event("stream, ns an event, with reading the clock", false, true);
    cost_per_event("flight, ns an event, the time given", true, false);
    cost_of_switches("scheduler, ns an event, 8 threads, nobody waits", 8, 0);
    cost_of_switches("scheduler, ns an event, 8 threads, 4 wait", 8, 4);
    cost_of_switches("scheduler, ns an event, 60 threads, 50 wait", 60, 50);
    cost_of_a_hook("a hook's own part, ns an event, nothing records", NONE);
    cost_of_a_hook("a hook's own part, ns an event, a flight", FLIGHT);
    cost_of_a_hook("a hook's own part, ns an event, a stream", STREAM);
    a_million_a_second();
    unlink(path);
    return 0;
}
