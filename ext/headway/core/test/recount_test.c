/* The analysis against a slow recount, on traces whose events come in any order. */
#include "analysed.h"
#include "recount.h"

/* A lane's segments are those states, without gap, and end where the thread does. */
static void
check_lane(const struct hw_analysed_thread *thread)
{
    const struct hw_lane *lane = &thread->lane;
    uint64_t units[4] = { 0 }, segments = 0, value = 0;
    unsigned shift = 0;
    for (size_t i = 0; i < lane->length; i++) {
        value |= (uint64_t)(lane->bytes[i] & 0x7f) << shift;
        shift += 7;
        if (lane->bytes[i] & 0x80) continue;
        units[value & 3] += value >> 2;
        segments++;
        value = shift = 0;
    }
    CHECK_EQUAL(lane->segments, segments);
    CHECK_EQUAL(lane->end_unit - lane->start_unit, units[0] + units[1] + units[2]);
    uint64_t origin = analysis.processes[thread->process].lane_origin_ns;
    if (thread->end_ns - thread->start_ns > HW_LANE_UNIT_NS) {
        CHECK_EQUAL((thread->start_ns - origin + 50) / 100, lane->start_unit);
        CHECK_EQUAL((thread->end_ns - origin + 50) / 100, lane->end_unit);
    }
}

static void
check_against_recount(const struct recount *r)
{
    uint64_t blame = 0, running = 0;
    for (uint32_t i = 1; i < MOST; i++) {
        if (!r->there[i]) continue;
        const struct hw_analysed_thread *thread = numbered(i);
        uint64_t assigned = waited_for(thread, NULL);
        CHECK_EQUAL(r->start[i], thread->start_ns);
        CHECK_EQUAL(r->end[i], thread->end_ns);
        for (int state = 0; state < HW_STATE_COUNT; state++) {
            CHECK_EQUAL(r->time[i][state], thread->time_ns[state]);
            CHECK_EQUAL(r->boot_time[i][state], thread->boot_ns[state]);
        }
        CHECK_EQUAL(r->waits[i], thread->wait.count);
        CHECK_EQUAL(r->wait_sum[i], thread->wait.total_ns);
        CHECK_EQUAL(r->caused[0][i], waited_for(thread, NULL));
        CHECK_EQUAL(r->caused_at_boot[0][i], waited_at_boot(thread, NULL));
        for (uint32_t j = 1; j < MOST; j++) {
            if (!r->there[j]) continue;
            CHECK_EQUAL(r->caused[j][i], waited_for(thread, numbered(j)));
            CHECK_EQUAL(r->caused_at_boot[j][i], waited_at_boot(thread, numbered(j)));
            assigned += r->caused[j][i];
        }
        CHECK_EQUAL(thread->time_ns[HW_READY], assigned);
        running += thread->time_ns[HW_RUNNING];
        check_lane(thread);
    }
    for (uint32_t i = 0; i < analysis.blame_count; i++) blame += analysis.blames[i].weight_ns;
    const struct hw_analysed_process *process = &analysis.processes[0];
    CHECK_EQUAL(r->idle, process->idle_ns);
    CHECK_EQUAL(process->end_ns - process->start_ns, running + process->idle_ns);
    CHECK_EQUAL(r->blame, blame);
    CHECK_EQUAL(r->blame, analysis.blame_ns);
    CHECK_EQUAL(r->gc, process->gc_ns);
}

static void
recount_round(unsigned count)
{
    struct recount r = { 0 };
    struct hw_trace_event *events = calloc(count, sizeof(*events));
    uint32_t threads = 2 + (uint32_t)test_random(MOST - 2);
    uint64_t rare_exits = 1 + test_random(50), first_request = test_random(2 * count);
    uint64_t time_ns = 1000000;
    for (unsigned i = 0; i < count; i++) {
        time_ns += test_random(UINT64_C(1) << test_random(22));
        uint8_t kind = (uint8_t)(1 + test_random(HW_TRACE_KNOWN));
        if (kind == HW_TRACE_EXITED && test_random(rare_exits)) kind = HW_TRACE_RESUMED;
        if (kind == HW_TRACE_MARK_BEGIN || kind == HW_TRACE_MARK_END) kind = HW_TRACE_READY;
        uint32_t thread = 1 + (uint32_t)test_random(threads - 1);
        bool request = i >= first_request && r.there[thread];
        if (request) kind = HW_TRACE_MARK_BEGIN;
        events[i] = (struct hw_trace_event){ .time_ns = time_ns, .thread = thread, .kind = kind,
                                             .detail = request ? HW_SPAN_REQUEST : 0, .value = (uint32_t)test_random(HW_STATE_COUNT) };
        if (request) first_request = i + 1 + test_random(2 * count);
        if (i == 0) r.now = time_ns;
        recount_event(&r, &events[i]);
    }
    analyse_events(events, count, true);
    check_against_recount(&r);
    hw_analysis_free(&analysis);
    free(events);
}

TEST(any_order_of_events_agrees_with_the_recount)
{
    for (unsigned round = 0; round < test_effort(400); round++) recount_round(1 + (unsigned)test_random(600));
}

TESTS({ "any_order_of_events_agrees_with_the_recount", any_order_of_events_agrees_with_the_recount })
