/* A server's boot, by hand: what came before its first request or job. Whatever the events are, recount_test.c has it. */
#include "analysed.h"

static uint64_t
blamed_ns(uint32_t stack)
{
    uint64_t sum_ns = 0;
    for (uint32_t i = 0; i < analysis.blame_count; i++) {
        if (analysis.blames[i].stack == stack) sum_ns += analysis.blames[i].weight_ns;
    }
    return sum_ns;
}

/* Thread 1 boots in stack 1, which thread 2 waits for, and nobody has the GVL for 5. Then it is in stack 2 while thread 2 waits on, which is
 * no boot any more where thread 1 began a request meanwhile. The first event of thread 2 says whether it was there before. */
static void
boot_and_go_on(uint8_t span, uint8_t first)
{
    ANALYSE(EVENT(100, 1, KNOWN, .value = 2), { .time_ns = 100, .thread = 2, .kind = first }, EVENT(100, 2, READY), EVENT(130, 1, BLAME, .value = 1), EVENT(135, 1, SUSPENDED), EVENT(140, 1, RESUMED),
            EVENT(150, 1, MARK_BEGIN, .value = 5, .detail = span), EVENT(170, 1, BLAME, .value = 2),
            EVENT(175, 1, MARK_END, .value = 5, .detail = span), EVENT(180, 1, SUSPENDED), EVENT(180, 2, RESUMED), EVENT(200, 2, SUSPENDED));
}

TEST(what_came_before_the_first_request_is_told_apart)
{
    for (uint8_t span = HW_SPAN_REQUEST; span <= HW_SPAN_JOB; span++) {
        boot_and_go_on(span, HW_TRACE_STARTED);
        CHECK_EQUAL(45, numbered(1)->boot_ns[HW_RUNNING]);
        CHECK_EQUAL(5, numbered(1)->boot_ns[HW_SUSPENDED]);
        CHECK_EQUAL(50, numbered(2)->boot_ns[HW_READY]);
        CHECK_EQUAL(0, numbered(2)->boot_ns[HW_RUNNING]);
        CHECK_EQUAL(45, waited_at_boot(numbered(2), numbered(1)));
        CHECK_EQUAL(5, waited_at_boot(numbered(2), NULL));
        CHECK_EQUAL(75, waited_for(numbered(2), numbered(1)));
        CHECK_EQUAL(80, numbered(2)->time_ns[HW_READY]);
        CHECK_EQUAL(0, blamed_ns(1));
        CHECK_EQUAL(20, blamed_ns(2)); /* not what it held before the request, in the same hold */
        CHECK_EQUAL(20, analysis.blame_ns);
        CHECK_EQUAL(1, analysis.blame_samples);
        CHECK_EQUAL(20, analysis.works[0].blamed_ns);
        hw_analysis_free(&analysis);
    }
}

TEST(a_program_that_marks_its_parts_has_no_boot)
{
    for (uint8_t span = HW_SPAN_MARK; span <= HW_SPAN_PART; span++) {
        boot_and_go_on(span, HW_TRACE_STARTED);
        CHECK_EQUAL(0, numbered(1)->boot_ns[HW_RUNNING] + numbered(2)->boot_ns[HW_READY] + waited_at_boot(numbered(2), numbered(1)));
        CHECK_EQUAL(30, blamed_ns(1));
        CHECK_EQUAL(30, blamed_ns(2));
        CHECK_EQUAL(60, analysis.blame_ns);
        hw_analysis_free(&analysis);
    }
}

TEST(nor_has_a_recording_of_a_server_at_work)
{
    boot_and_go_on(HW_SPAN_REQUEST, HW_TRACE_KNOWN);
    CHECK_EQUAL(0, numbered(1)->boot_ns[HW_RUNNING] + numbered(2)->boot_ns[HW_READY] + waited_at_boot(numbered(2), numbered(1)));
    CHECK_EQUAL(60, analysis.blame_ns);
    hw_analysis_free(&analysis);
    /* But where the thread of the first request was started meanwhile, it has. */
    ANALYSE(EVENT(100, 1, KNOWN, .value = 2), EVENT(100, 2, KNOWN), EVENT(110, 2, READY), EVENT(120, 3, STARTED), EVENT(130, 1, SUSPENDED),
            EVENT(130, 3, RESUMED), EVENT(140, 3, MARK_BEGIN, .value = 5, .detail = HW_SPAN_REQUEST), EVENT(150, 3, MARK_END, .value = 5));
    CHECK_EQUAL(30, numbered(2)->boot_ns[HW_READY]);
    hw_analysis_free(&analysis);
}

/* Mark 7 is a part of the boot, and mark 8 is under way, in thread 3, as the request begins. */
TEST(nor_do_marks_before_it_have_what_was_blamed_in_them)
{
    ANALYSE(EVENT(100, 1, RESUMED), EVENT(100, 2, STARTED), EVENT(100, 2, READY), EVENT(100, 1, MARK_BEGIN, .value = 7), EVENT(120, 1, BLAME, .value = 1),
            EVENT(125, 1, MARK_END, .value = 7), EVENT(130, 1, SUSPENDED), EVENT(130, 3, STARTED),
            EVENT(130, 3, RESUMED), EVENT(130, 3, MARK_BEGIN, .value = 8),
            EVENT(150, 3, BLAME, .value = 1), EVENT(160, 3, SUSPENDED), EVENT(160, 1, RESUMED),
            EVENT(160, 1, MARK_BEGIN, .value = 5, .detail = HW_SPAN_REQUEST), EVENT(170, 1, MARK_END, .value = 5), EVENT(180, 1, SUSPENDED),
            EVENT(180, 3, RESUMED), EVENT(190, 3, BLAME, .value = 1), EVENT(195, 3, MARK_END, .value = 8), EVENT(200, 3, SUSPENDED));
    CHECK_EQUAL(10, blamed_ns(1));
    for (uint32_t i = 0; i < analysis.work_count; i++) CHECK_EQUAL(analysis.works[i].string == 8 ? 10 : 0, analysis.works[i].blamed_ns);
    CHECK_EQUAL(3, analysis.work_count);
    hw_analysis_free(&analysis);
}

TESTS(NAMED(what_came_before_the_first_request_is_told_apart), NAMED(a_program_that_marks_its_parts_has_no_boot),
      NAMED(nor_has_a_recording_of_a_server_at_work),
      NAMED(nor_do_marks_before_it_have_what_was_blamed_in_them))
