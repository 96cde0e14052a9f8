/* Between the files workload_t*.c only: a trace that is being read, and its threads (workload_threads.c). */
#ifndef HW_WORKLOAD_THREADS_H
#define HW_WORKLOAD_THREADS_H

#include "event.h"
#include "thread.h"
#include "workload.h"

#define HW_READING_NONE UINT32_MAX

struct collected {
    enum hw_step_kind kind;
    uint32_t load;
    uint64_t length_ns;
};

struct reading_thread {
    uint32_t number;
    enum hw_state state;
    bool exited;
    uint64_t since_ns, start_ns, end_ns;
    uint64_t worked_ns; /* begin of its first request that was done */
    uint64_t running_ns;
    uint64_t slept_ns;  /* before it first ran */
    struct collected *steps;
    uint32_t step_count, step_capacity;
    uint64_t begun_ns, wait_ns; /* of what is collected */
    uint32_t cpu_us;            /* its CPU clock when it was last read; 0: never */
    uint64_t cpu_held_ns;       /* what it has computed with the GVL since then */
    uint32_t load;              /* of the delay it is in */
    bool delayed;               /* counted among those in a delay */
    uint32_t depth, outermost;  /* open marks; the name of the outermost */
    uint8_t span;               /* what that is, an enum hw_span */
    uint32_t alike;             /* marks of that name open inside it */
    bool was_queued;            /* for so long, before it began: */
    uint64_t queued_ns;
    bool last_is_job;           /* beside requests: what it is at, or was last */
    uint32_t last_request;      /* HW_READING_NONE */
    uint32_t track;             /* its cycles'; HW_READING_NONE: none yet */
};

struct reading {
    struct hw_workload *workload;
    struct hw_workload_process *process;
    struct hw_tables tables;
    struct reading_thread *threads;
    uint32_t thread_count, thread_capacity;
    struct hw_number_map thread_at;
    struct hw_number_map class_at; /* string -> class of requests */
    uint64_t now_ns, freed_ns;
    uint32_t holder;               /* place + 1 */
    uint32_t in_delay, in_request;
    bool serves;                   /* there are requests: jobs go on beside them */
    bool begun, worked, over, failed; /* worked: a request has begun; over: no more events, who hasn't ended goes on */
};

/* NULL: there are too many, or memory is short. */
struct reading_thread *hw_reading_thread(struct reading *reading, uint32_t number);

void hw_reading_enter(struct reading *reading, struct reading_thread *thread, enum hw_state state);
void hw_reading_resume(struct reading *reading, struct reading_thread *thread);
void hw_reading_preempt(struct reading *reading, struct reading_thread *thread);
void hw_reading_name_mark(struct reading *reading, struct reading_thread *thread, uint32_t string);
void hw_reading_classify(struct reading *reading, uint32_t first_request); /* once all events are read */
void hw_reading_exit(struct reading *reading, struct reading_thread *thread);
void hw_reading_cpu(struct reading *reading, struct reading_thread *thread, uint32_t cpu_us);
void hw_reading_off_cpu(struct reading *reading, struct reading_thread *thread, uint32_t off_us);
void hw_reading_begin_mark(struct reading *reading, struct reading_thread *thread, const struct hw_trace_event *event);
void hw_reading_queued(struct reading_thread *thread, uint32_t queued_us);
void hw_reading_end_mark(struct reading *reading, struct reading_thread *thread, uint32_t string);

/* Its name, else where it was started; of no length when neither is known. (workload_idle.c) */
struct hw_trace_text hw_reading_name(const struct reading *reading, const struct reading_thread *thread);

/* At the end, before threads are taken for exited, and after. */
void hw_reading_count_idle(struct reading *reading);
void hw_reading_count_workers(struct reading *reading);

#endif
