/* What the analysis makes of small cases, by hand; recount_test has the others.
 *
 *   HW_TEST_MEASURE=10000000 analysis_test ten_million_events     how long that many events take, and how much memory */
#include "analysed.h"
#include "clock.h"

#include <sys/resource.h>

#define US(us) ((us) * HW_NS_PER_US)

/* -- by hand ------------------------------------------------------------------------------------------------------------- */

TEST(a_wait_is_split_among_those_who_held_the_gvl)
{
    ANALYSE(EVENT(1000, 1, RESUMED), EVENT(1100, 2, READY), EVENT(1200, 3, READY), EVENT(1500, 1, PREEMPTED),
            EVENT(1510, 3, RESUMED), EVENT(1700, 3, SUSPENDED), EVENT(1720, 2, RESUMED), EVENT(1800, 2, SUSPENDED),
            EVENT(1805, 1, RESUMED), EVENT(2000, 1, EXITED));
    const struct hw_analysed_thread *one = numbered(1), *two = numbered(2), *three = numbered(3);
    CHECK_EQUAL(620, two->time_ns[HW_READY]);
    CHECK_EQUAL(400, waited_for(two, one));
    CHECK_EQUAL(190, waited_for(two, three));
    CHECK_EQUAL(30, waited_for(two, NULL));
    CHECK_EQUAL(305, one->wait.total_ns);
    CHECK_EQUAL(190, waited_for(one, three));
    CHECK_EQUAL(80, waited_for(one, two));
    CHECK_EQUAL(35, waited_for(one, NULL));
    CHECK_EQUAL(0, waited_for(one, one));
    CHECK_EQUAL(1, one->preempted);
    CHECK_EQUAL(0, one->voluntary);
    CHECK_EQUAL(1, two->voluntary);
    CHECK_EQUAL(2, one->hold.count);
    CHECK_EQUAL(500, one->hold.max_ns);
    CHECK_EQUAL(3, analysis.wait.count);
    CHECK_EQUAL(35, analysis.processes[0].idle_ns);
    CHECK_EQUAL(2000, analysis.processes[0].end_ns);
    hw_analysis_free(&analysis);
}

/* Set, not summed up; no more than the hold; and only of who has the GVL. */
TEST(a_hold_off_the_processor_is_that_part_of_it)
{
    ANALYSE(EVENT(US(10), 1, RESUMED), EVENT(US(500), 1, OFF_CPU, .value = 7), EVENT(US(1010), 1, OFF_CPU, .value = 300),
            EVENT(US(1010), 1, PREEMPTED), EVENT(US(1011), 1, OFF_CPU, .value = 1), EVENT(US(1020), 1, RESUMED),
            EVENT(US(2020), 1, SUSPENDED), EVENT(US(3020), 1, RESUMED), EVENT(US(3520), 1, OFF_CPU, .value = UINT32_MAX),
            EVENT(US(3520), 1, SUSPENDED), EVENT(US(3530), 2, OFF_CPU, .value = 5), EVENT(US(3540), 2, SUSPENDED));
    CHECK_EQUAL(US(300 + 500), numbered(1)->off_cpu_ns);
    CHECK_EQUAL(US(2500), numbered(1)->time_ns[HW_RUNNING]);
    CHECK_EQUAL(0, numbered(2)->off_cpu_ns);
    hw_analysis_free(&analysis);
}

TEST(blame_weighs_what_waited_since_the_hold_began_or_the_last_sample)
{
    ANALYSE(EVENT(1000, 2, READY), EVENT(1100, 1, RESUMED), EVENT(1150, 3, READY), EVENT(1200, 1, BLAME, .value = 8),
            EVENT(1300, 1, BLAME, .value = 9), EVENT(1300, 1, SUSPENDED), EVENT(1310, 2, RESUMED),
            EVENT(1350, 2, BLAME, .value = 8), EVENT(1400, 1, BLAME, .value = 8));
    CHECK_EQUAL(4, analysis.blame_samples);
    CHECK_EQUAL(3, analysis.blame_count);
    CHECK_EQUAL(100 + 50, analysis.blames[0].weight_ns);
    CHECK_EQUAL(2, analysis.blames[0].samples);
    CHECK_EQUAL(200, analysis.blames[1].weight_ns);
    CHECK_EQUAL(40, analysis.blames[2].weight_ns);
    CHECK_EQUAL(390, analysis.blame_ns);
    CHECK_EQUAL(0, analysis.blames[0].late_ns);
    hw_analysis_free(&analysis);
}

TEST(blame_is_late_when_one_waited_long_for_it_however_many_did)
{
    const uint64_t late = HW_LATE_NS;
    ANALYSE(EVENT(1000, 1, RESUMED), EVENT(1000, 2, READY), EVENT(1000, 3, READY), EVENT(late, 1, BLAME, .value = 8),
            EVENT(late + late - 1, 1, BLAME, .value = 8), EVENT(3 * late, 1, BLAME, .value = 8));
    CHECK_EQUAL(3, analysis.blames[0].samples);
    CHECK_EQUAL(2 * (late + 1), analysis.blames[0].late_ns);
    hw_analysis_free(&analysis);
}

TEST(marks_nest_and_end_with_their_thread)
{
    ANALYSE(EVENT(100, 1, MARK_BEGIN, .value = 1), EVENT(110, 1, MARK_BEGIN, .value = 2), EVENT(115, 1, MARK, .value = 3),
            EVENT(120, 1, MARK_BEGIN, .value = 2), EVENT(130, 1, MARK_END, .value = 2), EVENT(140, 1, MARK_END, .value = 1),
            EVENT(145, 1, MARK_NAME, .value = 7), EVENT(150, 1, MARK_END, .value = 9), EVENT(155, 1, MARK_NAME, .value = 8),
            EVENT(160, 1, MARK_BEGIN, .value = 4), EVENT(170, 1, EXITED),
            EVENT(180, 1, MARK, .value = 3), EVENT(190, 2, KNOWN));
    static const struct { uint32_t string; uint64_t start_ns, end_ns; bool instant; } expected[] = {
        { 7, 100, 140, false }, { 2, 110, 140, false }, { 3, 115, 115, true }, { 2, 120, 130, false }, { 4, 160, 170, false },
        { 3, 180, 180, true }
    };
    CHECK_EQUAL(6, analysis.mark_count);
    for (uint32_t i = 0; i < 6; i++) {
        CHECK_EQUAL(expected[i].string, analysis.marks[i].string);
        CHECK_EQUAL(expected[i].start_ns, analysis.marks[i].start_ns);
        CHECK_EQUAL(expected[i].end_ns, analysis.marks[i].end_ns);
        CHECK(expected[i].instant == analysis.marks[i].instant);
    }
    hw_analysis_free(&analysis);
}

/* Thread 1 runs for 4 ms, is off the processor for 3 of 6 more, and after 1 ms of sleep, which takes 2 off, runs for 2 more. Thread 2 was
 * only interrupted in its 8. */
TEST(what_threads_ran_beyond_their_burst)
{
    ANALYSE(EVENT(US(1), 1, RESUMED), EVENT(US(4001), 1, PREEMPTED), EVENT(US(4002), 1, RESUMED), EVENT(US(10002), 1, OFF_CPU, .value = 3000),
            EVENT(US(10002), 1, SUSPENDED), EVENT(US(11002), 1, RESUMED), EVENT(US(13002), 1, SUSPENDED));
    CHECK_EQUAL(US(2000 + 2000), numbered(1)->batch_ns);
    hw_analysis_free(&analysis);
    ANALYSE(EVENT(US(1), 2, RESUMED), EVENT(US(4001), 2, PREEMPTED), EVENT(US(4002), 1, RESUMED), EVENT(US(5002), 1, SUSPENDED),
            EVENT(US(5003), 2, RESUMED), EVENT(US(9003), 2, SUSPENDED), EVENT(US(90000), 2, RESUMED), EVENT(US(95000), 2, SUSPENDED));
    CHECK_EQUAL(US(3000), numbered(2)->batch_ns);
    CHECK_EQUAL(0, numbered(1)->batch_ns);
    CHECK_EQUAL(0, numbered(2)->batch_waits_ns);
    hw_analysis_free(&analysis);
    /* Two wait at the end of it, one of them from the middle of it on. */
    ANALYSE(EVENT(US(1), 1, RESUMED), EVENT(US(2), 2, READY), EVENT(US(4001), 1, PREEMPTED), EVENT(US(4002), 1, RESUMED),
            EVENT(US(7000), 3, READY), EVENT(US(9002), 1, SUSPENDED), EVENT(US(9003), 2, RESUMED), EVENT(US(10000), 2, SUSPENDED));
    CHECK_EQUAL(US(4000 + 2002), numbered(1)->batch_waits_ns);
    CHECK_EQUAL(0, numbered(2)->batch_waits_ns);
    hw_analysis_free(&analysis);
}

TEST(marks_beyond_the_limit_are_folded)
{
    size_t count = 3 * HW_ANALYSIS_MARKS_MOST;
    struct hw_trace_event *events = calloc(count, sizeof(*events));
    events[0] = EVENT(5, 1, MARK_BEGIN, .value = 1);
    for (size_t i = 1; i + 1 < count; i++) {
        events[i] = i % 2 ? EVENT(10 * i, 1, MARK_BEGIN, .value = 1) : EVENT(10 * i, 1, MARK_END, .value = 1);
    }
    events[count - 1] = EVENT(10 * count, 1, MARK_END, .value = 1);
    analyse_events(events, count, false);
    CHECK_EQUAL(HW_ANALYSIS_MARKS_MOST, analysis.mark_count);
    CHECK_EQUAL(count / 2 - HW_ANALYSIS_MARKS_MOST, analysis.marks_folded);
    CHECK_EQUAL(10 * count, analysis.marks[0].end_ns);
    CHECK_EQUAL(1, analysis.work_count);
    hw_analysis_free(&analysis);
    free(events);
}

TEST(gc_is_counted_once_however_often_it_is_told)
{
    ANALYSE(EVENT(1000, 1, GC_END), EVENT(2000, 1, GC_START), EVENT(2500, 2, GC_START), EVENT(3000, 1, GC_END),
            EVENT(3100, 1, GC_END), EVENT(4000, 1, GC_START), EVENT(4100, 1, KNOWN));
    CHECK_EQUAL(2, analysis.processes[0].gc_count);
    CHECK_EQUAL(1100, analysis.processes[0].gc_ns);
    CHECK_EQUAL(1000, analysis.processes[0].gc_max_ns);
    CHECK_EQUAL(4, analysis.processes[0].gc_lane.segments);
    hw_analysis_free(&analysis);
}

TEST(what_is_under_way_at_the_end_counts_as_time_only)
{
    ANALYSE(EVENT(1000, 1, RESUMED), EVENT(1000, 2, READY), EVENT(1900, 3, KNOWN));
    CHECK_EQUAL(900, numbered(1)->time_ns[HW_RUNNING]);
    CHECK_EQUAL(900, numbered(2)->time_ns[HW_READY]);
    CHECK_EQUAL(900, waited_for(numbered(2), numbered(1)));
    CHECK_EQUAL(0, analysis.wait.count);
    CHECK_EQUAL(0, analysis.hold.count);
    CHECK_EQUAL(0, analysis.processes[0].idle_ns);
    hw_analysis_free(&analysis);
}

TEST(a_thread_that_resumes_takes_the_gvl_from_who_was_thought_to_have_it)
{
    ANALYSE(EVENT(1000, 1, RESUMED), EVENT(1500, 2, RESUMED), EVENT(1600, 1, SUSPENDED), EVENT(2000, 2, SUSPENDED));
    CHECK_EQUAL(500, numbered(1)->time_ns[HW_RUNNING]);
    CHECK_EQUAL(500, numbered(1)->time_ns[HW_SUSPENDED]);
    CHECK_EQUAL(500, numbered(2)->time_ns[HW_RUNNING]);
    CHECK_EQUAL(0, numbered(1)->voluntary);
    hw_analysis_free(&analysis);
}

TEST(wait_buckets_are_in_order)
{
    for (uint32_t i = 0; i < HW_WAIT_BUCKETS; i++) CHECK(hw_wait_bucket_from_ns(i) < hw_wait_bucket_from_ns(i + 1));
    CHECK_EQUAL(100, hw_wait_bucket_from_ns(1));
    CHECK_EQUAL(150, hw_wait_bucket_from_ns(2));
    CHECK_EQUAL(1000, hw_wait_bucket_from_ns(7));
}

TEST(more_threads_than_are_kept_are_left_out)
{
    size_t count = HW_ANALYSIS_THREADS_MOST + 100;
    struct hw_trace_event *events = calloc(count, sizeof(*events));
    for (size_t i = 0; i < count; i++) events[i] = EVENT(1000 + i, (uint32_t)(1 + i), STARTED);
    analyse_events(events, count, false);
    CHECK_EQUAL(HW_ANALYSIS_THREADS_MOST, analysis.thread_count);
    CHECK_EQUAL(100, analysis.processes[0].unread);
    hw_analysis_free(&analysis);
    free(events);
}

/* -- several files -------------------------------------------------------------------------------------------------------- */

TEST(threads_of_one_number_in_two_files_are_two)
{
    struct hw_trace_event events[] = { EVENT(1000, 1, RESUMED), EVENT(1500, 1, SUSPENDED), EVENT(2000, 1, EXITED) };
    struct hw_buffer buffer = { 0 };
    struct hw_trace_damage damage;
    CHECK(hw_write_header(&buffer, &trace_header));
    write_events(&buffer, events, 3);
    CHECK(hw_write_end(&buffer));
    CHECK(analyse(&analysis, true, buffer.bytes, buffer.length, &damage));
    CHECK(hw_analysis_add(&analysis, trace_path, UINT64_MAX, &damage));
    CHECK_EQUAL(2, analysis.process_count);
    CHECK_EQUAL(2, analysis.thread_count);
    CHECK_EQUAL(1, analysis.threads[1].process);
    CHECK_EQUAL(500, analysis.threads[1].time_ns[HW_RUNNING]);
    CHECK_EQUAL(2, analysis.hold.count);
    hw_analysis_free(&analysis);
    free(buffer.bytes);
}

/* -- how fast ------------------------------------------------------------------------------------------------------------- */

/* Threads that take turns: eight of thirty want the GVL at a time; an event every microsecond; a stack every tenth hold. */
static size_t
turns(struct hw_trace_event *events, size_t count, uint64_t *time_ns, uint32_t *turn)
{
    size_t made = 0;
    while (made + 4 <= count) {
        uint32_t now = 1 + *turn % 30, later = 1 + (*turn + 8) % 30;
        events[made++] = EVENT(*time_ns += 1 + test_random(2000), now, RESUMED);
        events[made++] = EVENT(*time_ns += 1 + test_random(2000), later, READY);
        if (*turn % 10 == 0) events[made++] = EVENT(*time_ns += 1 + test_random(500), now, BLAME, .value = 1 + *turn % 100);
        events[made++] = EVENT(*time_ns += 1 + test_random(2000), now, SUSPENDED);
        ++*turn;
    }
    return made;
}

TEST(ten_million_events)
{
    const char *wanted = getenv("HW_TEST_MEASURE");
    size_t left = wanted ? strtoull(wanted, NULL, 10) : 20000, all = 0;
    struct hw_buffer buffer = { 0 };
    struct hw_trace_event *events = calloc(4096, sizeof(*events));
    uint64_t time_ns = UINT64_C(1) << 40, length = 0;
    uint32_t turn = 0;
    FILE *file = fopen(trace_file("", 0), "w");
    CHECK(file && hw_write_header(&buffer, &trace_header));
    for (size_t made = 1; left && made; left -= made, all += made) {
        made = turns(events, left < 4096 ? left : 4096, &time_ns, &turn);
        write_events(&buffer, events, made);
        length += fwrite(buffer.bytes, 1, buffer.length, file);
        buffer.length = 0;
    }
    fclose(file);
    free(events);
    free(buffer.bytes);

    for (int lanes = 0; lanes < 2; lanes++) {
        struct hw_trace_damage damage;
        uint64_t before_ns = hw_now_ns();
        hw_analysis_init(&analysis, lanes);
        CHECK(hw_analysis_add(&analysis, trace_path, UINT64_MAX, &damage), "%s", damage.what);
        CHECK_EQUAL(all, analysis.processes[0].events);
        struct rusage usage;
        getrusage(RUSAGE_SELF, &usage);
        if (wanted) {
            printf("%zu events, %.2f bytes each, lanes %s: %.2f s, at most %ld MiB\n", all, (double)length / (double)all,
                   lanes ? "yes" : "no", (double)(hw_now_ns() - before_ns) / 1e9, usage.ru_maxrss / 1024);
        }
        hw_analysis_free(&analysis);
    }
}

TESTS(NAMED(a_wait_is_split_among_those_who_held_the_gvl), NAMED(a_hold_off_the_processor_is_that_part_of_it),
      NAMED(blame_weighs_what_waited_since_the_hold_began_or_the_last_sample),
      NAMED(blame_is_late_when_one_waited_long_for_it_however_many_did), NAMED(marks_nest_and_end_with_their_thread),
      NAMED(marks_beyond_the_limit_are_folded), NAMED(what_threads_ran_beyond_their_burst),
      NAMED(gc_is_counted_once_however_often_it_is_told), NAMED(what_is_under_way_at_the_end_counts_as_time_only),
      NAMED(a_thread_that_resumes_takes_the_gvl_from_who_was_thought_to_have_it), NAMED(wait_buckets_are_in_order),
      NAMED(more_threads_than_are_kept_are_left_out), NAMED(threads_of_one_number_in_two_files_are_two), NAMED(ten_million_events))
