/* What the analysis makes of work: by hand, and what holds whatever the events are. */
#include "analysed.h"
#include "clock.h"

#define US(us) ((us) * HW_NS_PER_US)

static void
check_work(uint32_t string, uint64_t count, uint64_t time_ns, uint64_t running_ns, uint64_t ready_ns, uint64_t blamed_ns)
{
    for (uint32_t i = 0; i < analysis.work_count; i++) {
        const struct hw_analysed_work *work = &analysis.works[i];
        if (work->string != string) continue;
        CHECK_EQUAL(count, work->count);
        CHECK_EQUAL(time_ns, work->time_ns);
        CHECK_EQUAL(running_ns, work->running_ns);
        CHECK_EQUAL(ready_ns, work->ready_ns);
        CHECK_EQUAL(blamed_ns, work->blamed_ns);
        return;
    }
    CHECK(count == 0, "no work %u", string);
}

/* Request 1 of thread 1 becomes 7; inside it a mark of another name, and one of the same. Thread 2 waits behind request 4 of
 * thread 3, which lasts to the end. */
TEST(work_is_what_outermost_marks_say)
{
    ANALYSE(EVENT(100, 1, RESUMED), EVENT(100, 1, MARK_BEGIN, .value = 1), EVENT(110, 1, MARK_BEGIN, .value = 2),
            EVENT(120, 1, MARK_END, .value = 2), EVENT(121, 1, MARK_NAME, .value = 9), EVENT(125, 1, MARK_BEGIN, .value = 1),
            EVENT(126, 1, MARK_END, .value = 1), EVENT(130, 1, SUSPENDED), EVENT(140, 1, READY), EVENT(160, 1, RESUMED),
            EVENT(170, 1, MARK_END, .value = 1), EVENT(170, 1, MARK_NAME, .value = 7), EVENT(171, 1, MARK_END, .value = 3),
            EVENT(172, 1, MARK_NAME, .value = 8), EVENT(180, 1, MARK_BEGIN, .value = 7), EVENT(185, 1, MARK_END, .value = 7),
            EVENT(190, 1, SUSPENDED), EVENT(200, 2, RESUMED), EVENT(200, 2, MARK_BEGIN, .value = 5), EVENT(210, 2, SUSPENDED),
            EVENT(220, 3, RESUMED), EVENT(220, 3, MARK_BEGIN, .value = 4), EVENT(230, 2, READY), EVENT(280, 3, BLAME, .value = 1),
            EVENT(290, 3, SUSPENDED), EVENT(290, 2, RESUMED), EVENT(300, 2, MARK_END, .value = 5), EVENT(320, 2, SUSPENDED));
    check_work(7, 2, 75, 45, 20, 0);
    check_work(5, 1, 100, 20, 60, 0);
    check_work(4, 1, 100, 70, 0, 50);
    for (uint32_t none = 1; none < 10; none++) {
        if (none != 7 && none != 5 && none != 4) check_work(none, 0, 0, 0, 0, 0);
    }
    hw_analysis_free(&analysis);
}

TEST(a_part_is_a_mark_and_no_work)
{
    ANALYSE(EVENT(100, 1, RESUMED), EVENT(100, 1, MARK_BEGIN, .value = 1, .detail = HW_SPAN_PART),
            EVENT(110, 1, MARK_END, .value = 1, .detail = HW_SPAN_PART), EVENT(120, 1, MARK_BEGIN, .value = 2),
            EVENT(125, 1, MARK_END, .value = 2), EVENT(130, 1, SUSPENDED));
    CHECK_EQUAL(2, analysis.mark_count);
    check_work(1, 0, 0, 0, 0, 0);
    check_work(2, 1, 5, 5, 0, 0);
    hw_analysis_free(&analysis);
}

/* Request 1 hashes a password for 3 of the 5 ms that it is away, request 2 sleeps, and what thread 2 did before its first reading is
 * unknown. */
TEST(what_work_computed_without_the_gvl)
{
    ANALYSE(EVENT(US(1), 1, CPU, .value = 100), EVENT(US(1), 1, RESUMED), EVENT(US(101), 1, MARK_BEGIN, .value = 1),
            EVENT(US(1001), 1, SUSPENDED), EVENT(US(6001), 1, CPU, .value = 100 + 1000 + 3000), EVENT(US(6001), 1, RESUMED),
            EVENT(US(6101), 1, MARK_END, .value = 1), EVENT(US(6201), 1, MARK_BEGIN, .value = 2),
            EVENT(US(7201), 1, OFF_CPU, .value = 500), EVENT(US(7201), 1, SUSPENDED),
            EVENT(US(9201), 1, CPU, .value = 4100 + 700 + 40), EVENT(US(9201), 1, RESUMED), EVENT(US(9301), 1, MARK_END, .value = 2),
            EVENT(US(9401), 1, SUSPENDED), EVENT(US(9501), 2, RESUMED), EVENT(US(9501), 2, MARK_BEGIN, .value = 3),
            EVENT(US(9601), 2, SUSPENDED), EVENT(US(10601), 2, CPU, .value = 5000), EVENT(US(10601), 2, RESUMED),
            EVENT(US(10701), 2, MARK_END, .value = 3), EVENT(US(10801), 2, SUSPENDED));
    CHECK_EQUAL(3, analysis.work_count);
    CHECK_EQUAL(US(3000), analysis.works[0].computed_ns);
    CHECK_EQUAL(US(6000), analysis.works[0].time_ns);
    CHECK_EQUAL(0, analysis.works[1].computed_ns); /* 40 us are the way there and back */
    CHECK_EQUAL(0, analysis.works[2].computed_ns);
    CHECK_EQUAL(US(3000), numbered(1)->computed_ns);
    hw_analysis_free(&analysis);
    ANALYSE(EVENT(US(1), 1, CPU, .value = 100), EVENT(US(1), 1, RESUMED), EVENT(US(2), 1, SUSPENDED),
            EVENT(US(12), 1, CPU, .value = UINT32_MAX), EVENT(US(12), 1, RESUMED), EVENT(US(13), 1, SUSPENDED));
    CHECK_EQUAL(US(11), numbered(1)->computed_ns); /* never more than there was time for */
    hw_analysis_free(&analysis);
}

/* Thread 1 slept for 40 before its request, which it is told of late, and for 10 in it, then twice in stack 5 and once where the trace says
 * nothing; the second time its READY is missing. What it is told of is taken once, and the request has a better name in the end. */
TEST(where_work_was_blocked)
{
    ANALYSE(EVENT(50, 1, SUSPENDED), EVENT(90, 1, RESUMED), EVENT(90, 1, MARK_BEGIN, .value = 1), EVENT(91, 1, BLOCKED, .value = 3),
            EVENT(100, 1, SUSPENDED), EVENT(110, 1, READY), EVENT(115, 1, RESUMED), EVENT(115, 1, BLOCKED, .value = 4),
            EVENT(116, 1, BLOCKED, .value = 4), EVENT(120, 1, SUSPENDED), EVENT(150, 1, RESUMED), EVENT(151, 1, BLOCKED, .value = 5),
            EVENT(160, 1, SUSPENDED), EVENT(170, 1, READY), EVENT(170, 1, RESUMED), EVENT(180, 1, SUSPENDED), EVENT(190, 1, RESUMED),
            EVENT(190, 1, BLOCKED, .value = 5), EVENT(200, 1, MARK_END, .value = 1), EVENT(200, 1, MARK_NAME, .value = 2),
            EVENT(210, 1, SUSPENDED), EVENT(300, 1, RESUMED), EVENT(300, 1, BLOCKED, .value = 6));
    const struct hw_analysed_work *work = &analysis.works[1];
    CHECK_EQUAL(2, work->string);
    CHECK(hw_number_map_find(&work->blocked, 3) == NULL);
    CHECK_EQUAL(10, *hw_number_map_find(&work->blocked, 4));
    CHECK_EQUAL(30 + 10, *hw_number_map_find(&work->blocked, 5));
    CHECK(hw_number_map_find(&work->blocked, 6) == NULL);
    CHECK_EQUAL(0, *hw_number_map_find(&analysis.works[0].blocked, 5));
    hw_analysis_free(&analysis);
}

/* Thread 1 for 20 and 10 in stack 4, 30 in 5, said twice, and thread 2 in 6 before the first mark; what comes later is its work's, or idle. */
TEST(where_threads_were_blocked_before_there_was_work)
{
    ANALYSE(EVENT(90, 1, RESUMED), EVENT(90, 1, BLOCKED, .value = 3), EVENT(100, 1, SUSPENDED), EVENT(120, 1, READY), EVENT(125, 1, RESUMED),
            EVENT(125, 1, BLOCKED, .value = 4), EVENT(130, 1, SUSPENDED), EVENT(160, 1, RESUMED), EVENT(161, 1, BLOCKED, .value = 5),
            EVENT(161, 1, BLOCKED, .value = 5), EVENT(170, 1, SUSPENDED), EVENT(180, 1, RESUMED), EVENT(181, 1, BLOCKED, .value = 4),
            EVENT(190, 2, RESUMED), EVENT(200, 2, SUSPENDED), EVENT(300, 2, RESUMED), EVENT(301, 2, BLOCKED, .value = 6),
            EVENT(310, 2, MARK_BEGIN, .value = 1), EVENT(320, 2, SUSPENDED), EVENT(400, 2, RESUMED), EVENT(400, 2, BLOCKED, .value = 7),
            EVENT(410, 2, SUSPENDED), EVENT(500, 1, RESUMED), EVENT(501, 1, BLOCKED, .value = 4));
    const struct hw_number_map *one = &numbered(1)->blocked, *two = &numbered(2)->blocked;
    CHECK(hw_number_map_find(one, 3) == NULL);
    CHECK_EQUAL(20 + 10, *hw_number_map_find(one, 4));
    CHECK_EQUAL(30, *hw_number_map_find(one, 5));
    CHECK_EQUAL(100, *hw_number_map_find(two, 6));
    CHECK(hw_number_map_find(two, 7) == NULL);
    CHECK_EQUAL(80, *hw_number_map_find(&analysis.works[0].blocked, 7));
    hw_analysis_free(&analysis);
}

/* One after the other, each in another stack, one of them for long; the 17th takes the place of the shortest. */
TEST(where_work_was_blocked_longest)
{
    struct hw_trace_event events[2 + 3 * (HW_PLACES_OF_WORK + 2)];
    size_t count = 0;
    uint64_t now = 100;
    events[count++] = (struct hw_trace_event)EVENT(now, 1, MARK_BEGIN, .value = 1);
    for (uint32_t stack = 1; stack <= HW_PLACES_OF_WORK + 2; stack++) {
        events[count++] = (struct hw_trace_event)EVENT(now, 1, SUSPENDED);
        now += stack == 3 ? 5 : stack == HW_PLACES_OF_WORK + 1 ? 1000 : stack == HW_PLACES_OF_WORK + 2 ? 1 : 10 + stack;
        events[count++] = (struct hw_trace_event)EVENT(now, 1, RESUMED);
        events[count++] = (struct hw_trace_event)EVENT(now, 1, BLOCKED, .value = stack);
    }
    events[count++] = (struct hw_trace_event)EVENT(now, 1, MARK_END, .value = 1);
    analyse_events(events, count, true);
    const struct hw_number_map *blocked = &analysis.works[0].blocked;
    CHECK_EQUAL(1000, *hw_number_map_find(blocked, HW_PLACES_OF_WORK + 1));
    CHECK_EQUAL(11, *hw_number_map_find(blocked, 1));
    CHECK(hw_number_map_find(blocked, 3) == NULL && hw_number_map_find(blocked, HW_PLACES_OF_WORK + 2) == NULL);
    hw_analysis_free(&analysis);
}

/* Whatever events come, known or not; but who marks has the GVL. */
TEST(work_was_blocked_and_waited_behind_others_no_longer_than_it_took)
{
    for (unsigned round = 0; round < test_effort(400); round++) {
        struct hw_trace_event events[300];
        size_t count = 0, wanted = 1 + test_random(sizeof(events) / sizeof(*events) - 1);
        uint64_t now = 1000000;
        while (count < wanted) {
            now += test_random(UINT64_C(1) << test_random(22));
            struct hw_trace_event event = { .time_ns = now, .thread = 1 + (uint32_t)test_random(3), .value = (uint32_t)test_random(4),
                                            .kind = (uint8_t)(1 + test_random(HW_TRACE_QUEUED + 3)) };
            if (test_random(20) == 0) event.value = (uint32_t)test_random(UINT32_MAX);
            if (event.kind == HW_TRACE_MARK_BEGIN) events[count++] = (struct hw_trace_event)EVENT(now, event.thread, RESUMED);
            events[count++] = event;
        }
        analyse_events(events, count, false);
        for (uint32_t i = 0; i < analysis.work_count; i++) {
            const struct hw_analysed_work *work = &analysis.works[i];
            uint64_t blocked_ns = 0;
            for (uint32_t j = 0; j < work->blocked.slots; j++) blocked_ns += work->blocked.keys[j] ? work->blocked.values[j] : 0;
            CHECK(blocked_ns <= hw_elapsed_ns(work->running_ns + work->ready_ns, work->time_ns), "%llu of %llu, work %u of %u",
                  (unsigned long long)blocked_ns, (unsigned long long)work->time_ns, i, analysis.work_count);
            const struct hw_single_work *longest = &work->longest;
            uint64_t behind_ns = 0;
            for (unsigned j = 0; j < longest->behind.count; j++) behind_ns += longest->behind.at[j].ns;
            CHECK(behind_ns <= longest->ready_ns && longest->running_ns + longest->ready_ns <= longest->time_ns);
            CHECK(longest->ready_ns <= work->ready_ns && longest->time_ns <= work->time_ns);
        }
        hw_analysis_free(&analysis);
    }
}

/* Thread 2 waits for thread 1, which has two requests of one name, the second of which gets another one in the end, and computes on. */
TEST(in_which_stacks_work_had_others_wait)
{
    ANALYSE(EVENT(100, 1, RESUMED), EVENT(100, 1, MARK_BEGIN, .value = 1), EVENT(110, 2, READY), EVENT(150, 1, BLAME, .value = 7),
            EVENT(170, 1, BLAME, .value = 8), EVENT(180, 1, BLAME, .value = 7), EVENT(180, 1, MARK_END, .value = 1),
            EVENT(181, 1, MARK_BEGIN, .value = 1), EVENT(190, 1, BLAME, .value = 7), EVENT(190, 1, MARK_END, .value = 1),
            EVENT(190, 1, MARK_NAME, .value = 2), EVENT(200, 1, BLAME, .value = 7), EVENT(210, 1, SUSPENDED), EVENT(210, 2, RESUMED));
    const struct hw_analysed_work *first = &analysis.works[0], *second = &analysis.works[1];
    CHECK_EQUAL(40 + 20 + 10, first->blamed_ns);
    CHECK_EQUAL(40 + 10, *hw_number_map_find(&first->blamed, 7));
    CHECK_EQUAL(20, *hw_number_map_find(&first->blamed, 8));
    CHECK_EQUAL(10, *hw_number_map_find(&second->blamed, 7));
    CHECK(hw_number_map_find(&second->blamed, 8) == NULL);
    hw_analysis_free(&analysis);
}

/* As a line of it that calls others comes to more stacks than work was blocked in. */
TEST(work_is_blamed_in_all_its_stacks)
{
    enum { STACKS = 3 * HW_PLACES_OF_WORK };
    struct hw_trace_event events[4 + 2 * STACKS];
    size_t count = 0;
    uint64_t now = 100;
    events[count++] = (struct hw_trace_event)EVENT(now, 1, RESUMED);
    events[count++] = (struct hw_trace_event)EVENT(now, 2, READY);
    for (unsigned round = 0; round < 2; round++) {
        if (round == 1) events[count++] = (struct hw_trace_event)EVENT(now, 1, MARK_BEGIN, .value = 1);
        for (uint32_t stack = 1; stack <= STACKS; stack++) {
            events[count++] = (struct hw_trace_event)EVENT(now += 10, 1, BLAME, .value = stack);
        }
    }
    events[count++] = (struct hw_trace_event)EVENT(now, 1, MARK_END, .value = 1);
    analyse_events(events, count, true);
    for (uint32_t stack = 1; stack <= STACKS; stack++) {
        uint64_t *blamed_ns = hw_number_map_find(&analysis.works[0].blamed, stack);
        CHECK(blamed_ns && *blamed_ns == 10, "stack %u", stack);
    }
    hw_analysis_free(&analysis);
}

/* A server boots until 200, collecting for 30 and on no processor for 40; its first request comes in a hold from 180 on. */
TEST(what_came_since_work_began_is_told_apart)
{
    ANALYSE(EVENT(100, 1, RESUMED), EVENT(110, 1, GC_START), EVENT(140, 1, GC_END), EVENT(170, 1, OFF_CPU, .value = 40),
            EVENT(170, 1, SUSPENDED), EVENT(180, 2, RESUMED), EVENT(200, 2, MARK_BEGIN, .value = 1), EVENT(1210, 2, GC_START),
            EVENT(1215, 2, GC_END), EVENT(2220, 2, OFF_CPU, .value = 1), EVENT(2220, 2, SUSPENDED), EVENT(2230, 1, RESUMED),
            EVENT(4290, 1, OFF_CPU, .value = 2), EVENT(4290, 1, SUSPENDED), EVENT(4300, 2, RESUMED),
            EVENT(4305, 2, MARK_END, .value = 1), EVENT(4310, 2, SUSPENDED));
    const struct hw_since_work *since = &analysis.processes[0].since_work;
    CHECK(since->any);
    CHECK_EQUAL(200, since->start_ns);
    CHECK_EQUAL(2020 + 2060 + 10, since->running_ns);
    CHECK_EQUAL(2000, since->off_cpu_ns);
    CHECK_EQUAL(1, since->gc_count);
    CHECK_EQUAL(5, since->gc_ns);
    hw_analysis_free(&analysis);
    ANALYSE(EVENT(100, 1, RESUMED), EVENT(110, 1, GC_START), EVENT(140, 1, GC_END), EVENT(170, 1, SUSPENDED));
    CHECK(!analysis.processes[0].since_work.any);
    hw_analysis_free(&analysis);
}

/* Thread 1 is at 1 from 100 to 300 (what is marked within is part of it), thread 2 at 2 from 200 until it ends, at 400, and thread 3 at 3
 * from 500 until the trace ends, at 600. */
TEST(how_many_threads_were_at_work_at_once)
{
    ANALYSE(EVENT(90, 1, RESUMED), EVENT(100, 1, MARK_BEGIN, .value = 1), EVENT(110, 1, MARK_BEGIN, .value = 4),
            EVENT(120, 1, SUSPENDED), EVENT(190, 2, RESUMED), EVENT(200, 2, MARK_BEGIN, .value = 2), EVENT(210, 2, SUSPENDED),
            EVENT(220, 1, RESUMED), EVENT(230, 1, MARK_END, .value = 4), EVENT(300, 1, MARK_END, .value = 1), EVENT(310, 1, SUSPENDED),
            EVENT(390, 2, RESUMED), EVENT(400, 2, EXITED), EVENT(500, 3, RESUMED), EVENT(500, 3, MARK_BEGIN, .value = 3),
            EVENT(600, 3, SUSPENDED));
    const struct hw_at_work *at_work = &analysis.processes[0].at_work;
    CHECK_EQUAL(100, at_work->time_ns[0]);
    CHECK_EQUAL(100 + 100 + 100, at_work->time_ns[1]);
    CHECK_EQUAL(100, at_work->time_ns[2]);
    CHECK_EQUAL(0, at_work->time_ns[3]);
    CHECK_EQUAL(0, at_work->threads);
    CHECK(numbered(1)->work.any && numbered(2)->work.any && numbered(3)->work.any);
    hw_analysis_free(&analysis);

    static struct hw_trace_event crowd[HW_AT_WORK_MOST + 3]; /* more at once than are told apart, of which one ends early */
    for (uint32_t i = 0; i < HW_AT_WORK_MOST + 2; i++) crowd[i] = EVENT(100 + i, i + 1, MARK_BEGIN, .value = 1);
    crowd[HW_AT_WORK_MOST + 2] = EVENT(1100 + HW_AT_WORK_MOST, 1, MARK_END, .value = 1);
    analyse_events(crowd, HW_AT_WORK_MOST + 3, false);
    CHECK_EQUAL(1, analysis.processes[0].at_work.time_ns[1]);
    CHECK_EQUAL(1001, analysis.processes[0].at_work.time_ns[HW_AT_WORK_MOST]); /* since so many were */
    hw_analysis_free(&analysis);
}

/* Work 1 of thread 1 stood in a queue for 5 us (said twice), 2 of thread 2, which lasts to the end, for 9, the next of thread 1 nobody knows
 * for how long; what is said of none, or of what has ended, counts nowhere. */
TEST(how_long_work_stood_in_a_queue)
{
    ANALYSE(EVENT(90, 1, RESUMED), EVENT(95, 1, QUEUED, .value = 4000), EVENT(100, 1, MARK_BEGIN, .value = 1),
            EVENT(100, 1, QUEUED, .value = 5), EVENT(101, 1, QUEUED, .value = 5), EVENT(110, 1, MARK_BEGIN, .value = 4),
            EVENT(120, 1, MARK_END, .value = 4), EVENT(200, 1, MARK_END, .value = 1), EVENT(200, 1, MARK_NAME, .value = 7),
            EVENT(210, 1, QUEUED, .value = 3000), EVENT(220, 1, MARK_BEGIN, .value = 1), EVENT(230, 1, MARK_END, .value = 1),
            EVENT(300, 2, RESUMED), EVENT(300, 2, MARK_BEGIN, .value = 2), EVENT(300, 2, QUEUED, .value = 9));
    const struct hw_queued *queued = &analysis.processes[0].queued;
    CHECK_EQUAL(2, queued->count);
    CHECK_EQUAL(14000, queued->total_ns);
    CHECK_EQUAL(9000, queued->max_ns);
    hw_analysis_free(&analysis);
}

/* Job 2 of thread 2 lasts from 100 to 500, the next to the end of the trace, and no longer counts once request 1 of thread 1 begins, at 200,
 * nor how long it stood in a queue; what is marked in the request, a job say, is part of it. */
TEST(jobs_in_a_server_are_not_of_its_pool)
{
    ANALYSE(
        EVENT(90, 2, RESUMED), EVENT(100, 2, MARK_BEGIN, .value = 2, .detail = HW_SPAN_JOB), EVENT(100, 2, QUEUED, .value = 3000),
        EVENT(110, 2, SUSPENDED), EVENT(190, 1, RESUMED), EVENT(200, 1, MARK_BEGIN, .value = 1, .detail = HW_SPAN_REQUEST),
        EVENT(200, 1, QUEUED, .value = 5), EVENT(250, 1, MARK_BEGIN, .value = 3), EVENT(260, 1, MARK_END, .value = 3),
        EVENT(300, 1, MARK_END, .value = 1, .detail = HW_SPAN_REQUEST), EVENT(310, 1, SUSPENDED), EVENT(490, 2, RESUMED),
        EVENT(500, 2, MARK_END, .value = 2, .detail = HW_SPAN_JOB), EVENT(510, 2, MARK_BEGIN, .value = 2, .detail = HW_SPAN_JOB),
        EVENT(510, 2, QUEUED, .value = 4000), EVENT(600, 2, SUSPENDED));
    const struct hw_analysed_process *process = &analysis.processes[0];
    CHECK(process->at_work.serves);
    CHECK_EQUAL(100, process->at_work.time_ns[1]);
    CHECK_EQUAL(0, process->at_work.time_ns[2]);
    CHECK_EQUAL(0, process->at_work.threads);
    CHECK_EQUAL(1, process->at_work.count);
    CHECK_EQUAL(100, process->at_work.took_ns);
    CHECK(numbered(1)->of_pool && !numbered(2)->of_pool);
    CHECK_EQUAL(1, process->queued.count);
    CHECK_EQUAL(5000, process->queued.max_ns);
    CHECK_EQUAL(2, analysis.work_count);
    for (uint32_t i = 0; i < analysis.work_count; i++) {
        CHECK_EQUAL(analysis.works[i].string == 1 ? HW_SPAN_REQUEST : HW_SPAN_JOB, analysis.works[i].span);
        CHECK_EQUAL(analysis.works[i].string, analysis.works[i].count);
    }
    hw_analysis_free(&analysis);

    ANALYSE(EVENT(90, 2, RESUMED), EVENT(100, 2, MARK_BEGIN, .value = 2, .detail = HW_SPAN_JOB), EVENT(100, 2, QUEUED, .value = 3),
            EVENT(200, 2, MARK_END, .value = 2, .detail = HW_SPAN_JOB), EVENT(210, 2, SUSPENDED));
    CHECK_EQUAL(100, analysis.processes[0].at_work.time_ns[1]);
    CHECK_EQUAL(1, analysis.processes[0].queued.count);
    CHECK(numbered(2)->of_pool);
    hw_analysis_free(&analysis);

    /* The program's own marks, 3, are around all requests, of thread 1 and 3: both count. */
    ANALYSE(EVENT(90, 3, RESUMED), EVENT(100, 3, MARK_BEGIN, .value = 3), EVENT(110, 3, SUSPENDED), EVENT(120, 1, RESUMED),
            EVENT(150, 1, MARK_BEGIN, .value = 3), EVENT(200, 1, MARK_BEGIN, .value = 1, .detail = HW_SPAN_REQUEST),
            EVENT(300, 1, MARK_END, .value = 1, .detail = HW_SPAN_REQUEST), EVENT(400, 1, MARK_END, .value = 3), EVENT(410, 1, SUSPENDED),
            EVENT(420, 2, RESUMED), EVENT(450, 2, MARK_BEGIN, .value = 2, .detail = HW_SPAN_JOB), EVENT(470, 2, SUSPENDED),
            EVENT(480, 3, RESUMED), EVENT(500, 3, MARK_END, .value = 3), EVENT(510, 3, SUSPENDED), EVENT(600, 2, KNOWN));
    CHECK_EQUAL(200, analysis.processes[0].at_work.time_ns[2]);
    CHECK_EQUAL(100, analysis.processes[0].at_work.time_ns[1]);
    CHECK(numbered(1)->of_pool && !numbered(2)->of_pool && numbered(3)->of_pool);
    hw_analysis_free(&analysis);
}

/* Whatever begins and ends, who is at work is counted once, and in a server from its first request on. */
TEST(any_marks_are_counted_once)
{
    for (unsigned round = 0; round < test_effort(300); round++) {
        enum { MOST = 300, THREADS = 5 };
        static struct hw_trace_event events[MOST];
        uint64_t at_ns = 100;
        for (unsigned i = 0; i < MOST; i++) {
            at_ns += test_random(50);
            bool exits = test_random(100) == 0;
            enum hw_trace_kind kind = exits ? HW_TRACE_EXITED : test_random(2) ? HW_TRACE_MARK_BEGIN : HW_TRACE_MARK_END;
            events[i] = (struct hw_trace_event){ .time_ns = at_ns, .thread = (uint32_t)(1 + test_random(THREADS)), .kind = (uint8_t)kind,
                                                 .value = (uint32_t)(1 + test_random(3)), .detail = (uint8_t)test_random(round % 2 ? 4 : 5) };
        }
        analyse_events(events, MOST, false);
        const struct hw_analysed_process *process = &analysis.processes[0];
        uint64_t counted_ns = 0;
        for (unsigned i = 0; i <= HW_AT_WORK_MOST; i++) {
            counted_ns += process->at_work.time_ns[i];
            CHECK(i <= THREADS || process->at_work.time_ns[i] == 0);
        }
        CHECK_EQUAL(0, process->at_work.threads);
        CHECK(counted_ns <= at_ns - process->since_work.start_ns, "%" PRIu64, counted_ns);
        hw_analysis_free(&analysis);
    }
}

/* Request 1 of thread 2 waits for 10, then behind thread 1 for 100 in stack 7, 50 in stack 8 and 15 that nobody saw, and is called 5 in the
 * end, as is the next, which waits less; request 2 of thread 3, which lasts to the end of the trace, for 30. What was waited before work began
 * is none of it. */
TEST(which_work_waited_longest_and_behind_what)
{
    ANALYSE(EVENT(100, 3, READY), EVENT(120, 3, RESUMED), EVENT(130, 3, MARK_BEGIN, .value = 2), EVENT(200, 3, SUSPENDED),
            EVENT(200, 2, RESUMED), EVENT(210, 2, MARK_BEGIN, .value = 1), EVENT(300, 2, SUSPENDED), EVENT(400, 2, READY),
            EVENT(410, 2, RESUMED), EVENT(420, 2, SUSPENDED), EVENT(500, 1, RESUMED), EVENT(600, 2, READY),
            EVENT(700, 1, BLAME, .value = 7), EVENT(750, 1, BLAME, .value = 8), EVENT(760, 1, SUSPENDED), EVENT(765, 2, RESUMED),
            EVENT(800, 2, MARK_END, .value = 1), EVENT(800, 2, MARK_NAME, .value = 5), EVENT(810, 2, MARK_BEGIN, .value = 1),
            EVENT(811, 2, PREEMPTED), EVENT(815, 2, RESUMED), EVENT(820, 2, MARK_END, .value = 1), EVENT(820, 2, MARK_NAME, .value = 5),
            EVENT(821, 2, SUSPENDED), EVENT(870, 3, READY), EVENT(900, 2, SUSPENDED));
    CHECK_EQUAL(3, analysis.work_count);
    const struct hw_single_work *five = &analysis.works[1].longest, *two = &analysis.works[2].longest;
    CHECK(analysis.works[1].string == 5 && analysis.works[1].count == 2 && analysis.works[2].string == 2);
    CHECK_EQUAL(0, analysis.works[0].longest.ready_ns); /* for none kept that name */
    CHECK(&analysis.threads[five->thread] == numbered(2) && &analysis.threads[two->thread] == numbered(3));
    CHECK_EQUAL(210, five->start_ns);
    CHECK_EQUAL(590, five->time_ns);
    CHECK_EQUAL(90 + 10 + 35, five->running_ns);
    CHECK_EQUAL(10 + 165, five->ready_ns);
    CHECK_EQUAL(2, five->behind.count);
    CHECK_EQUAL(7, five->behind.at[0].stack);
    CHECK_EQUAL(100, five->behind.at[0].ns);
    CHECK_EQUAL(50, five->behind.at[1].ns);
    CHECK_EQUAL(30, two->ready_ns);
    CHECK_EQUAL(0, two->behind.count);
    hw_analysis_free(&analysis);
}

TESTS(NAMED(work_is_what_outermost_marks_say), NAMED(a_part_is_a_mark_and_no_work), NAMED(what_work_computed_without_the_gvl),
      NAMED(where_work_was_blocked), NAMED(where_threads_were_blocked_before_there_was_work), NAMED(where_work_was_blocked_longest), NAMED(work_was_blocked_and_waited_behind_others_no_longer_than_it_took),
      NAMED(in_which_stacks_work_had_others_wait), NAMED(work_is_blamed_in_all_its_stacks),
      NAMED(what_came_since_work_began_is_told_apart), NAMED(jobs_in_a_server_are_not_of_its_pool), NAMED(any_marks_are_counted_once), NAMED(how_many_threads_were_at_work_at_once), NAMED(how_long_work_stood_in_a_queue),
      NAMED(which_work_waited_longest_and_behind_what))
