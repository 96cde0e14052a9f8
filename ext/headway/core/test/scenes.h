/* What happens to threads in the scheduler's tests, on a clock of the test's own. */
#ifndef HW_TEST_SCENES_H
#define HW_TEST_SCENES_H

#include "world.h"

/* A turn of a thread that has yet to compute for a second, by default. */
#define TURN_NS MS(300)

static struct hw_scheduler *const s = &world.scheduler;

/* The thread gets the GVL the ordinary way and keeps it for so long. */
static inline void
runs(struct hw_thread *thread, uint64_t ns)
{
    ready(thread);
    resumed(thread);
    advance(ns);
}

static inline void
blocks(struct hw_thread *thread)
{
    suspended(thread);
}

/* The holder's job gives way and the thread parks, unless the gate is open. */
static inline void
gives_way(struct hw_thread *thread)
{
    thread->yielding = true;
    suspended(thread);
    thread->parked = !hw_scheduler_gate_open(s, thread, world.now);
    atomic_store(&thread->open, false);
}

/* It comes back from the gate and gets the GVL. */
static inline void
comes_back(struct hw_thread *thread)
{
    thread->parked = false;
    ready(thread);
    resumed(thread);
    thread->yielding = false;
}

/* It gives way to a thread that blocks at once, and goes on. */
static inline void
gives_way_to(struct hw_thread *thread, struct hw_thread *io)
{
    gives_way(thread);
    resumed(io);
    blocks(io);
    comes_back(thread);
}

static inline struct hw_thread *
sleeper(void)
{
    return world_thread(HW_SUSPENDED, false);
}

/* A thread that has run for long, is in the last tier, and runs now. */
static inline struct hw_thread *
running_hog(void)
{
    struct hw_thread *hog = sleeper();
    runs(hog, MS(5000));
    tick();
    return hog;
}

static inline struct hw_thread *
parked_hog(void)
{
    struct hw_thread *hog = sleeper();
    hog->burst_ns = MS(5000);
    ready(hog);
    resumed(hog);
    CHECK(must_yield(hog));
    gives_way(hog);
    CHECK(hog->at_gate && hog->parked);
    return hog;
}

static inline void
check_all(void)
{
    world_check();
    world_check_orders();
}

#endif
