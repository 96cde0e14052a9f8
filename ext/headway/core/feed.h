/* What the runtime's events put into the recorder. Called with the runtime's lock held, which is also what makes it safe to free
 * the ring: it is only freed after `recording` was turned off under this lock. */
#ifndef HW_FEED_H
#define HW_FEED_H

#include "runtime.h"

/* After the scheduler has taken the event in; preempted: it counted a preemption; waited_ns: of a thread that was ready.
 * The VM's own time slice shows as SUSPENDED and, once the scheduler has recognised it, PREEMPTED in place of READY. True: where the
 * thread had blocked is worth a look. */
bool hw_feed_event(struct hw_runtime *runtime, struct hw_thread *thread, enum hw_event event, bool preempted,
                   uint64_t waited_ns, uint64_t now);
/* Lock not held: what is no thread event, marks, collections and blame. */
void hw_feed_aside(struct hw_runtime *runtime, enum hw_trace_kind kind, uint32_t thread, uint32_t value, uint64_t now);
void hw_feed_span(struct hw_runtime *runtime, enum hw_trace_kind kind, uint32_t thread, uint32_t name, uint8_t detail,
                  uint64_t now);
void hw_feed_started(struct hw_runtime *runtime, const struct hw_thread *thread, uint64_t now);

/* Every living thread's state. */
void hw_feed_known(struct hw_runtime *runtime, uint64_t now);

/* Locks not held: the instant that a dump is of. Its `known` is the caller's to free. */
void hw_feed_instant(struct hw_runtime *runtime, struct hw_dump *dump);

/* Locks not held: starts a recording, makes the living threads known and lets events in; as hw_recorder_start. And half of the way
 * back, of who has claimed the end. */
int hw_feed_start(struct hw_runtime *runtime, const struct hw_recording *recording);
void hw_feed_close(struct hw_runtime *runtime);

/* Lock held, on the ticker: sounds the alarm for waits that have lasted too long and last on. */
void hw_feed_watch(struct hw_runtime *runtime, uint64_t now);

#endif
