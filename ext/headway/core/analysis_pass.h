/* The pass over one file's events, for the files analysis*.c only. */
#ifndef HW_ANALYSIS_PASS_H
#define HW_ANALYSIS_PASS_H

#include "analysis.h"
#include "event.h"

struct hw_waiter {
    uint64_t charged_ns; /* until when its wait is assigned to holders */
    uint32_t index;      /* of the thread */
};

struct hw_pass {
    struct hw_analysis *analysis;
    struct hw_analysed_process *process;
    struct hw_number_map thread_at; /* number -> index of the thread */
    struct hw_number_map work_at;   /* string -> place in works */
    uint64_t now_ns;
    uint32_t holder;                /* index, or HW_NOBODY */
    uint64_t holder_since_ns;       /* that it holds; that nobody does */
    struct hw_waiter *ready;
    uint32_t ready_count, ready_capacity;
    bool in_gc;
    uint64_t gc_since_ns;
    uint64_t blamed_before_ns, samples_before; /* by the processes before this one */
    bool begun;                     /* there was an event */
    bool booted;                    /* and a request or a job */
    bool failed;                    /* no memory */
};

/* analysis_states.c */
void hw_pass_event(struct hw_pass *pass, const struct hw_trace_event *event);
void hw_pass_finish(struct hw_pass *pass);

/* analysis_causes.c: every wait is assigned to whoever holds the GVL meanwhile. */
void hw_pass_becomes_ready(struct hw_pass *pass, uint32_t index);
void hw_pass_leaves_ready(struct hw_pass *pass, uint32_t index);
void hw_pass_set_holder(struct hw_pass *pass, uint32_t index);
void hw_pass_charge_all(struct hw_pass *pass);
void hw_pass_blame(struct hw_pass *pass, uint32_t index, uint32_t stack);

/* analysis_marks.c */
void hw_pass_mark(struct hw_pass *pass, uint32_t index, const struct hw_trace_event *event);
void hw_pass_close_marks(struct hw_pass *pass, uint32_t index);
void hw_pass_gc(struct hw_pass *pass, bool runs);

/* analysis_work.c */
void hw_pass_work(struct hw_pass *pass, uint32_t index, const struct hw_trace_event *event);
void hw_pass_end_work(struct hw_pass *pass, uint32_t index);
void hw_pass_blocked(struct hw_pass *pass, uint32_t index, uint32_t stack);
void hw_pass_behind(struct hw_pass *pass, uint32_t index, uint32_t stack, uint64_t waited_ns);
void hw_pass_queued(struct hw_pass *pass, uint32_t index, uint64_t queued_ns);
/* blame: where it is added up, too; NULL: nowhere. */
void hw_pass_blame_work(struct hw_pass *pass, struct hw_analysed_thread *holder, struct hw_analysed_blame *blame, uint64_t weight_ns);

/* analysis_boot.c: a request or a job of that thread begins. */
void hw_pass_end_boot(struct hw_pass *pass, const struct hw_analysed_thread *thread);

/* Makes room for one more entry of an array that grows up to `most`. False: it is full. NULL out of memory: fails the pass. */
bool hw_pass_room(struct hw_pass *pass, void *array, uint32_t count, uint32_t *capacity, uint32_t most, size_t size);

static inline bool
hw_pass_has(const struct hw_pass *pass, const struct hw_analysed_thread *thread)
{
    return thread->process == pass->analysis->process_count - 1;
}

static inline uint64_t
hw_pass_lane_time_ns(const struct hw_pass *pass, uint64_t time_ns)
{
    return time_ns - pass->process->lane_origin_ns;
}

#endif
