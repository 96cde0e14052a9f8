/* Trace files for tests: one temporary file, written again and again, and small traces to put into it. */
#ifndef HW_TEST_TRACE_FILE_H
#define HW_TEST_TRACE_FILE_H

#include "analysis.h"
#include "event.h"
#include "test.h"
#include "trace_format.h"
#include "trace_writer.h"

#include <unistd.h>

static char trace_path[4096];
static int trace_fd = -1;

static inline void
trace_file_remove(void)
{
    unlink(trace_path);
}

static inline const char *
trace_file(const void *bytes, size_t length)
{
    if (trace_fd < 0) {
        const char *directory = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : getenv("TMPDIR"); /* memory, where there is one */
        snprintf(trace_path, sizeof(trace_path), "%s/headway-trace-XXXXXX", directory ? directory : "/tmp");
        trace_fd = mkstemp(trace_path);
        if (trace_fd < 0) abort();
        atexit(trace_file_remove);
    }
    if (ftruncate(trace_fd, 0) != 0 || pwrite(trace_fd, bytes, length, 0) != (ssize_t)length) abort();
    return trace_path;
}

static const struct hw_trace_header trace_header = {
    .ruby = "3.4.7", .headway = "0.1.0", .policy = "fair", .preempt = "signal", .command = "ruby server.rb",
    .pid = 4242, .parent_pid = 1, .clock_ns = UINT64_C(1000000), .wall_ns = UINT64_C(1700000000000000000),
    .quantum_ns = UINT64_C(100000000), .cpus = 2
};

#define EVENT(at, who, what, ...)                                                                                              \
    ((struct hw_trace_event){ .time_ns = (at), .thread = (who), .kind = HW_TRACE_##what, __VA_ARGS__ })

static inline void
write_events(struct hw_buffer *buffer, const struct hw_trace_event *events, size_t count)
{
    CHECK(hw_write_events(buffer, events, count));
}

/* One of everything. */
static inline struct hw_buffer
small_trace(void)
{
    static const struct hw_trace_event events[] = {
        EVENT(1000000, 1, KNOWN, .value = HW_RUNNING), EVENT(1000500, 2, STARTED), EVENT(1001000, 2, READY),
        EVENT(1050000, 1, BLAME, .value = 1), EVENT(1060000, 1, PREEMPTED), EVENT(1061000, 2, RESUMED),
        EVENT(1062000, 2, MARK_BEGIN, .value = 3), EVENT(1063000, 2, GC_START), EVENT(1065000, 2, GC_END),
        EVENT(1066000, 2, MARK, .value = 3, .detail = 7), EVENT(1067000, 2, MARK_END, .value = 3),
        EVENT(1070000, 2, SUSPENDED), EVENT(1071000, 2, EXITED), EVENT(1071500, 1, RESUMED),
        EVENT(1080000, 1, KNOWN, .value = HW_RUNNING),
    };
    static const uint32_t frames[] = { 1, 2 };
    struct hw_buffer buffer = { 0 };
    CHECK(hw_write_header(&buffer, &trace_header));
    CHECK(hw_write_string(&buffer, 1, "Report#render", 13));
    CHECK(hw_write_string(&buffer, 2, "app/report.rb", 13));
    CHECK(hw_write_string(&buffer, 3, "request", 7));
    CHECK(hw_write_thread(&buffer, 1, "main", 4, "", 0));
    CHECK(hw_write_thread(&buffer, 2, "worker", 6, "pool.rb:12", 10));
    CHECK(hw_write_frame(&buffer, 1, 1, 2, 17));
    CHECK(hw_write_frame(&buffer, 2, 1, 2, 30));
    CHECK(hw_write_stack(&buffer, 1, frames, 2));
    write_events(&buffer, events, 7);
    write_events(&buffer, events + 7, sizeof(events) / sizeof(*events) - 7);
    CHECK(hw_write_dropped(&buffer, 5, 2));
    CHECK(hw_write_quota(&buffer, &(struct hw_quota){ .periods = 40, .exhausted = 30 }));
    CHECK(hw_write_end(&buffer));
    return buffer;
}

/* Reads bytes as a file; the caller frees the analysis. */
static inline bool
analyse(struct hw_analysis *analysis, bool lanes, const void *bytes, size_t length, struct hw_trace_damage *damage)
{
    hw_analysis_init(analysis, lanes);
    return hw_analysis_add(analysis, trace_file(bytes, length), UINT64_MAX, damage);
}

#endif
