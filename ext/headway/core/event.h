/* What a trace is made of. The recorder writes events into its ring, the trace writer encodes them, the analysis reads them.
 *
 * Events are idempotent: each says which state a thread entered, so one that is doubled or missing costs the time around it
 * and nothing more. Readers skip kinds they don't know. A recorder writes KNOWN for every living thread when it begins and
 * again when it ends, so that the time before the first and after the last switch counts. */
#ifndef HW_EVENT_H
#define HW_EVENT_H

#include <stdint.h>

/* name, number, label */
#define HW_TRACE_KINDS(EACH)                                                                                                   \
    EACH(STARTED, 1, "started")         /* the thread was created */                                                           \
    EACH(READY, 2, "ready")             /* wants the GVL */                                                                    \
    EACH(RESUMED, 3, "resumed")         /* got it */                                                                           \
    EACH(SUSPENDED, 4, "suspended")     /* gave it up of its own accord */                                                     \
    EACH(PREEMPTED, 5, "preempted")     /* gave way: running to ready at once */                                               \
    EACH(EXITED, 6, "exited")                                                                                                  \
    EACH(GC_START, 7, "gc_start")       /* thread: who runs it */                                                              \
    EACH(GC_END, 8, "gc_end")                                                                                                  \
    EACH(MARK_BEGIN, 9, "mark_begin")   /* value: string id, of the three marks */                                             \
    EACH(MARK_END, 10, "mark_end")      /* detail, of both: an enum hw_span */                                                 \
    EACH(MARK, 11, "mark")              /* an instant */                                                                       \
    EACH(BLAME, 12, "blame")            /* thread: the holder; value: stack id */                                              \
    EACH(KNOWN, 13, "known")            /* the thread is there; value: its state, an enum hw_state */                          \
    EACH(CPU, 14, "cpu")                /* before a RESUMED; value: the thread's CPU time so far, in us modulo 2^32 */         \
    EACH(MARK_NAME, 15, "mark_name")    /* the span this thread ended last has a better name: value: string id */              \
    EACH(OFF_CPU, 16, "off_cpu")        /* before the end of a hold; value: for how long it was on no processor, in us */      \
    EACH(BLOCKED, 17, "blocked")        /* after a RESUMED; value: id of the stack in which it had blocked until then */       \
    EACH(QUEUED, 18, "queued")          /* value: for how long, in us, what the thread is at stood in a queue before it began */

enum hw_trace_kind {
#define EACH(name, number, label) HW_TRACE_##name = number,
    HW_TRACE_KINDS(EACH)
#undef EACH
};

/* What a span is. A part, as a query is and whatever is done in a request or a job, is never work of its own: not even where what it is part
 * of isn't marked or was begun before the trace. What the program marks itself elsewhere is a mark. */
enum hw_span { HW_SPAN_MARK, HW_SPAN_PART, HW_SPAN_REQUEST, HW_SPAN_JOB };

struct hw_trace_event {
    uint64_t time_ns; /* CLOCK_MONOTONIC */
    uint32_t thread;  /* a number unique in the process, from 1, never used again; 0: none */
    uint32_t value;
    uint8_t kind;     /* enum hw_trace_kind */
    uint8_t detail;
};

#endif
