/* From events of threads that do no requests to tracks. */
#include "workload_of.h"

TEST(threads_without_marks_are_tracks)
{
    static const struct hw_trace_event events[] = {
        EVENT(AT(0), 7, KNOWN, .value = HW_SUSPENDED), EVENT(AT(5), 7, READY), EVENT(AT(8), 7, RESUMED),
        EVENT(AT(10), 7, SUSPENDED), EVENT(AT(30), 7, READY), EVENT(AT(33), 7, RESUMED),
        EVENT(AT(40), 7, SUSPENDED), EVENT(AT(60), 7, READY), EVENT(AT(61), 7, RESUMED), EVENT(AT(62), 7, SUSPENDED),
        EVENT(AT(70), 7, KNOWN, .value = HW_SUSPENDED),
    };
    read_trace(events, COUNT(events));
    CHECK_EQUAL(0, work.marked);
    CHECK_EQUAL(1, work.track_count);
    CHECK_EQUAL(3, work.tracks[0].requests);
    CHECK(strcmp(work.classes[work.tracks[0].class].name, "ticker") == 0);
    check_step(&work.requests[0], 0, HW_STEP_GVL, 2);
    check_step(&work.requests[0], 1, HW_STEP_DELAY, 20);
    check_step(&work.requests[1], 0, HW_STEP_GVL, 7);
    check_step(&work.requests[1], 1, HW_STEP_DELAY, 20);
    check_step(&work.requests[2], 0, HW_STEP_GVL, 1);
    check_step(&work.requests[2], 1, HW_STEP_DELAY, 8 + 5); /* its last, and what it slept before the first */
    CHECK_EQUAL(2, work.requests[2].steps);
    clean_up();
}

TEST(what_was_computed_without_the_gvl_is_no_delay)
{
    static const struct hw_trace_event events[] = {
        EVENT(AT(0), 7, KNOWN, .value = HW_RUNNING),
        EVENT(AT(100), 7, SUSPENDED), EVENT(AT(1100), 7, READY), EVENT(AT(1100), 7, CPU, .value = 5000), EVENT(AT(1100), 7, RESUMED),
        EVENT(AT(1200), 7, SUSPENDED), EVENT(AT(3200), 7, READY), EVENT(AT(3200), 7, CPU, .value = 7050), EVENT(AT(3200), 7, RESUMED),
        EVENT(AT(3300), 7, SUSPENDED), EVENT(AT(4300), 7, READY), EVENT(AT(4300), 7, CPU, .value = 7160), EVENT(AT(4300), 7, RESUMED),
        EVENT(AT(4400), 7, SUSPENDED), EVENT(AT(5400), 7, READY), EVENT(AT(5400), 7, CPU, .value = 7660), EVENT(AT(5400), 7, RESUMED),
        EVENT(AT(5500), 7, SUSPENDED), EVENT(AT(6500), 7, READY), EVENT(AT(6500), 7, CPU, .value = 8460), EVENT(AT(6500), 7, RESUMED),
    };
    read_trace(events, COUNT(events));
    check_step(&work.requests[0], 1, HW_STEP_DELAY, 1000); /* nothing to compare the clock with yet */
    check_step(&work.requests[1], 1, HW_STEP_CPU, 1950);
    check_step(&work.requests[2], 1, HW_STEP_DELAY, 1000);
    check_step(&work.requests[3], 1, HW_STEP_CPU, 400);
    check_step(&work.requests[3], 2, HW_STEP_DELAY, 600);
    check_step(&work.requests[4], 1, HW_STEP_CPU, 700); /* ... and had no core for the rest */
    CHECK_EQUAL(2, work.requests[4].steps);
    clean_up();
}

/* It hides nothing that was computed without the GVL; and whoever waited for it did so all the time. */
TEST(a_hold_off_the_processor_is_none_of_what_the_clock_gains)
{
    static const struct hw_trace_event events[] = {
        EVENT(AT(0), 7, KNOWN, .value = HW_RUNNING),
        EVENT(AT(100), 7, SUSPENDED), EVENT(AT(1100), 7, READY), EVENT(AT(1100), 7, CPU, .value = 5000), EVENT(AT(1100), 7, RESUMED),
        EVENT(AT(4200), 7, OFF_CPU, .value = 2900), EVENT(AT(4200), 7, SUSPENDED), EVENT(AT(5200), 7, READY),
        EVENT(AT(5200), 7, CPU, .value = 5900), EVENT(AT(5200), 7, RESUMED),
        EVENT(AT(5300), 7, OFF_CPU, .value = UINT32_MAX), EVENT(AT(5300), 7, SUSPENDED), EVENT(AT(5400), 7, RESUMED),
    };
    read_trace(events, COUNT(events));
    check_step(&work.requests[1], 0, HW_STEP_GVL, 3100);
    check_step(&work.requests[1], 1, HW_STEP_CPU, 700);
    CHECK_EQUAL((2900 + 100) * HW_NS_PER_US, work.processes[0].off_cpu_ns);
    CHECK_EQUAL((100 + 3100 + 100) * HW_NS_PER_US, work.processes[0].running_ns);
    clean_up();
}

TEST(beside_requests_a_thread_that_computes_is_kept_and_an_idle_one_forgotten)
{
    static const struct hw_trace_event events[] = {
        EVENT(AT(0), 2, KNOWN, .value = HW_SUSPENDED), EVENT(AT(0), 7, KNOWN, .value = HW_RUNNING),
        EVENT(AT(5000), 7, PREEMPTED), EVENT(AT(5000), 1, RESUMED), EVENT(AT(5000), 1, MARK_BEGIN, .value = 1),
        EVENT(AT(5900), 1, MARK_END, .value = 1), EVENT(AT(6000), 1, SUSPENDED), EVENT(AT(6000), 2, RESUMED),
        EVENT(AT(6001), 2, SUSPENDED), EVENT(AT(6001), 7, RESUMED), EVENT(AT(10000), 7, KNOWN, .value = HW_RUNNING),
        EVENT(AT(10000), 2, KNOWN, .value = HW_SUSPENDED),
    };
    read_trace(events, COUNT(events));
    CHECK_EQUAL(1, work.marked);
    CHECK_EQUAL(2, work.request_count);
    CHECK_EQUAL(1 * HW_NS_PER_US, work.forgotten_ns);
    check_step(&work.requests[1], 0, HW_STEP_GVL, 3999); /* not what it ran before the first request */
    clean_up();
}

/* Thread 7 lives for a moment, 8 of the same name after it, and 9 of another name lives on. */
TEST(threads_that_ended_are_one_track_with_pauses)
{
    static const struct hw_trace_event events[] = {
        EVENT(AT(0), 1, KNOWN, .value = HW_RUNNING), EVENT(AT(0), 1, MARK_BEGIN, .value = 1), EVENT(AT(50), 1, MARK_END, .value = 1),
        EVENT(AT(100), 1, SUSPENDED), EVENT(AT(100), 7, RESUMED), EVENT(AT(110), 7, SUSPENDED), EVENT(AT(110), 9, RESUMED),
        EVENT(AT(115), 9, SUSPENDED), EVENT(AT(150), 7, READY), EVENT(AT(150), 7, RESUMED), EVENT(AT(155), 7, EXITED),
        EVENT(AT(300), 8, RESUMED), EVENT(AT(320), 8, EXITED), EVENT(AT(1000), 9, READY), EVENT(AT(1000), 9, RESUMED),
    };
    read_trace(events, COUNT(events));
    CHECK_EQUAL(1, work.marked);
    CHECK_EQUAL(6, work.request_count);
    CHECK_EQUAL(3, work.tracks[0].requests);
    CHECK_EQUAL(2, work.requests[4].track);
    CHECK_EQUAL(35 * HW_NS_PER_US, work.tracks[0].running_ns);
    CHECK_EQUAL(1000 * HW_NS_PER_US, work.tracks[0].lived_ns);
    check_step(&work.requests[1], 1, HW_STEP_DELAY, 40);
    check_step(&work.requests[2], 0, HW_STEP_GVL, 5);
    CHECK_EQUAL(145 * HW_NS_PER_US + 1, work.steps[work.requests[2].first_step + 1].length_ns);
    check_step(&work.requests[3], 0, HW_STEP_GVL, 20);
    CHECK_EQUAL((680 + 100) * HW_NS_PER_US + 1, work.steps[work.requests[3].first_step + 1].length_ns);
    clean_up();
}

static uint64_t
length_of_track(uint32_t place)
{
    const struct hw_track *track = &work.tracks[place];
    uint64_t sum_ns = 0;
    for (uint32_t i = 0; i < track->requests; i++) {
        const struct hw_request *cycle = &work.requests[track->first_request + i];
        for (uint32_t k = 0; k < cycle->steps; k++) sum_ns += work.steps[cycle->first_step + k].length_ns;
    }
    return sum_ns;
}

/* Most of which ran at one time only; 10 and 11 were born late. */
TEST(beside_requests_a_thread_does_as_much_as_it_did)
{
    static const struct hw_trace_event events[] = {
        EVENT(AT(0), 1, KNOWN, .value = HW_RUNNING), EVENT(AT(0), 7, KNOWN, .value = HW_SUSPENDED),
        EVENT(AT(0), 8, KNOWN, .value = HW_SUSPENDED), EVENT(AT(0), 9, KNOWN, .value = HW_SUSPENDED), EVENT(AT(0), 1, MARK_BEGIN, .value = 1), EVENT(AT(50), 1, MARK_END, .value = 1),
        EVENT(AT(100), 1, SUSPENDED), EVENT(AT(100), 9, RESUMED), EVENT(AT(150), 9, SUSPENDED),
        EVENT(AT(200), 7, RESUMED), EVENT(AT(250), 7, SUSPENDED), EVENT(AT(300), 7, RESUMED), EVENT(AT(350), 7, SUSPENDED),
        EVENT(AT(700), 10, STARTED), EVENT(AT(800), 10, RESUMED), EVENT(AT(850), 10, SUSPENDED),
        EVENT(AT(900), 8, RESUMED), EVENT(AT(950), 8, SUSPENDED), EVENT(AT(950), 11, RESUMED), EVENT(AT(1000), 11, SUSPENDED),
    };
    read_trace(events, COUNT(events));
    CHECK_EQUAL(5, work.track_count);
    for (uint32_t i = 0; i < work.track_count; i++) {
        uint64_t length_ns = length_of_track(i);
        CHECK(length_ns >= 1000 * HW_NS_PER_US && length_ns <= 1000 * HW_NS_PER_US + 1, "%u: %" PRIu64, i, length_ns);
    }
    clean_up();
}

/* As where a process was killed just then. */
TEST(a_thread_that_had_no_time_to_do_anything_is_forgotten)
{
    static const struct hw_trace_event events[] = {
        EVENT(AT(0), 1, KNOWN, .value = HW_RUNNING), EVENT(AT(0), 1, MARK_BEGIN, .value = 1), EVENT(AT(5000), 1, MARK_END, .value = 1),
        EVENT(AT(5000), 1, SUSPENDED), EVENT(AT(5000), 7, STARTED), EVENT(AT(5000), 7, RESUMED), EVENT(AT(5001), 7, MARK, .value = 2),
    };
    read_trace(events, COUNT(events));
    CHECK_EQUAL(1, work.marked);
    CHECK_EQUAL(1, work.request_count);
    CHECK_EQUAL(1 * HW_NS_PER_US, work.forgotten_ns);
    clean_up();
}

TESTS({ "tracks", threads_without_marks_are_tracks }, { "cpu", what_was_computed_without_the_gvl_is_no_delay },
      { "off_cpu", a_hold_off_the_processor_is_none_of_what_the_clock_gains },
      { "beside", beside_requests_a_thread_that_computes_is_kept_and_an_idle_one_forgotten },
      { "ended", threads_that_ended_are_one_track_with_pauses },
      { "pace", beside_requests_a_thread_does_as_much_as_it_did },
      { "born last", a_thread_that_had_no_time_to_do_anything_is_forgotten })
