/* Between the files of the binding that read traces. */
#ifndef HW_BINDING_TRACE_H
#define HW_BINDING_TRACE_H

#include "analysis.h"
#include "hash.h"

#include <ruby.h>

/* Defines Headway::Native::Traces. */
void hw_trace_init(VALUE native);

/* Over one file of several, without the GVL. */
struct hw_trace_pass {
    void *into; /* what is made of all of them */
    const char *path;
    uint64_t size;
    bool whole; /* no damage was met */
    struct hw_trace_damage damage;
};

/* Over [[path, bytes that count], ...]; false: the one at place couldn't be read. */
bool hw_trace_passes(struct hw_trace_pass *pass, void *(*run)(void *), rb_unblock_function_t *cancel, VALUE files, long *place);

/* [the file's place, offset, what is wrong with it] */
VALUE hw_trace_failure(const struct hw_trace_damage *damage, long place);

/* trace_result.c: everything an analysis found, as one Hash: times in nanoseconds of each process's own clock. */
VALUE hw_trace_result(const struct hw_analysis *analysis);

VALUE hw_trace_text(struct hw_trace_text text);

/* [count, total, each of the percentiles], in nanoseconds */
VALUE hw_trace_durations(const struct hw_durations *durations, const double *percentiles, int count);

/* [method, file, line] */
VALUE hw_trace_frame(const struct hw_tables *tables, uint32_t id);

/* trace_events.c: Headway::Native::Traces::File */
void hw_trace_file_init(VALUE traces);

/* trace_lanes.c: Headway::Native::Traces::Holds */
void hw_trace_lanes_init(VALUE traces);

/* simulation.c: Headway::Native::Workload */
void hw_simulation_init(VALUE native);

#endif
