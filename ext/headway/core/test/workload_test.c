/* From events to requests. */
#include "workload_of.h"

#include <pthread.h>
#include <unistd.h>

TEST(a_request_is_what_was_marked_without_its_waits)
{
    static const struct hw_trace_event events[] = {
        EVENT(AT(0), 1, KNOWN, .value = HW_SUSPENDED), EVENT(AT(0), 2, KNOWN, .value = HW_RUNNING),
        EVENT(AT(10), 1, READY), EVENT(AT(12), 2, SUSPENDED), EVENT(AT(17), 1, RESUMED),
        EVENT(AT(20), 1, MARK_BEGIN, .value = 1),
        EVENT(AT(25), 1, MARK_BEGIN, .value = 2),
        EVENT(AT(30), 1, PREEMPTED), EVENT(AT(31), 2, RESUMED), EVENT(AT(40), 2, SUSPENDED), EVENT(AT(41), 1, RESUMED),
        EVENT(AT(50), 1, SUSPENDED), EVENT(AT(55), 1, PREEMPTED), EVENT(AT(60), 1, RESUMED), /* the VM's slice */
        EVENT(AT(61), 1, MARK_END, .value = 2), EVENT(AT(61), 1, MARK_NAME, .value = 3), /* inside: no request's */
        EVENT(AT(70), 1, SUSPENDED), EVENT(AT(170), 1, READY), EVENT(AT(175), 1, RESUMED),
        EVENT(AT(180), 1, MARK_END, .value = 1),
        EVENT(AT(190), 1, SUSPENDED), EVENT(AT(290), 1, READY), EVENT(AT(290), 1, RESUMED), /* waits for work */
        EVENT(AT(295), 1, MARK_BEGIN, .value = 3), EVENT(AT(300), 1, MARK_END, .value = 3), EVENT(AT(300), 1, MARK_NAME, .value = 1),
        EVENT(AT(310), 1, MARK_BEGIN, .value = 1), EVENT(AT(315), 1, SUSPENDED), /* isn't done at the end */
    };
    read_trace(events, COUNT(events));
    CHECK_EQUAL(2, work.marked);
    const struct hw_request *first = &work.requests[0], *second = &work.requests[1];
    CHECK_EQUAL(3, first->steps);
    check_step(first, 0, HW_STEP_GVL, 10 + 9 + 10);
    check_step(first, 1, HW_STEP_DELAY, 100);
    check_step(first, 2, HW_STEP_GVL, 5);
    CHECK_EQUAL(160 * HW_NS_PER_US, first->latency_ns);
    CHECK_EQUAL((11 + 10 + 5) * HW_NS_PER_US, first->wait_ns);
    CHECK_EQUAL(15 * HW_NS_PER_US, first->after_ns);
    CHECK_EQUAL(1, second->steps);
    check_step(second, 0, HW_STEP_GVL, 5);
    CHECK_EQUAL(10 * HW_NS_PER_US, second->after_ns);

    uint32_t light = hw_workload_class(&work, "light", 5);
    CHECK_EQUAL(2, work.classes[light].count);
    CHECK_EQUAL(2, work.class_count); /* with the other thread's: a name a request had before is no class */
    CHECK_EQUAL(1, work.processes[0].workers);
    CHECK_EQUAL(1, work.processes[0].most_at_once);
    CHECK_EQUAL(3, work.processes[0].dropped);
    CHECK_EQUAL(165 * HW_NS_PER_US, work.processes[0].busy_ns);
    CHECK_EQUAL(2, work.handover.count); /* 12 to 17 and 40 to 41: of the other nobody knows that it waited */
    clean_up();
}

/* Of what was done, that is: not of what came before or after it, nor of what is under way at the end. */
TEST(how_long_requests_stood_in_a_queue_is_summed_up)
{
    static const struct hw_trace_event events[] = {
        EVENT(AT(0), 1, KNOWN, .value = HW_RUNNING), EVENT(AT(5), 1, QUEUED, .value = 1000),
        EVENT(AT(10), 1, MARK_BEGIN, .value = 1), EVENT(AT(10), 1, QUEUED, .value = 30), EVENT(AT(20), 1, MARK_END, .value = 1),
        EVENT(AT(30), 1, MARK_BEGIN, .value = 1), EVENT(AT(40), 1, MARK_END, .value = 1), EVENT(AT(40), 1, QUEUED, .value = 1000),
        EVENT(AT(50), 1, MARK_BEGIN, .value = 1), EVENT(AT(50), 1, QUEUED, .value = 9), EVENT(AT(60), 1, MARK_BEGIN, .value = 2),
        EVENT(AT(65), 1, MARK_END, .value = 2), EVENT(AT(70), 1, MARK_END, .value = 1),
        EVENT(AT(80), 1, MARK_BEGIN, .value = 1), EVENT(AT(80), 1, QUEUED, .value = 1000), EVENT(AT(90), 1, KNOWN, .value = HW_RUNNING),
    };
    read_trace(events, COUNT(events));
    CHECK_EQUAL(3, work.marked);
    CHECK_EQUAL(2, work.queued);
    CHECK_EQUAL(39 * HW_NS_PER_US, work.queued_ns);
    clean_up();
}

/* The first to begin is not the first to end, and one that the trace cuts off is none, but its thread was busy. */
TEST(requests_that_overlap_are_busy_from_the_first_begin_to_the_last_end)
{
    static const struct hw_trace_event events[] = {
        EVENT(AT(0), 1, KNOWN, .value = HW_RUNNING), EVENT(AT(10), 1, MARK_BEGIN, .value = 1), EVENT(AT(20), 1, SUSPENDED),
        EVENT(AT(20), 2, RESUMED), EVENT(AT(60), 2, MARK_BEGIN, .value = 1), EVENT(AT(70), 2, MARK_END, .value = 1),
        EVENT(AT(80), 2, MARK_BEGIN, .value = 1), EVENT(AT(90), 2, SUSPENDED), EVENT(AT(90), 1, READY), EVENT(AT(90), 1, RESUMED),
        EVENT(AT(110), 1, MARK_END, .value = 1), EVENT(AT(120), 1, MARK_BEGIN, .value = 1),
        EVENT(AT(200), 1, KNOWN, .value = HW_RUNNING),
    };
    read_trace(events, COUNT(events));
    const struct hw_workload_process *process = &work.processes[0];
    CHECK_EQUAL(2, process->requests);
    CHECK_EQUAL(AT(10), process->first_ns);
    CHECK_EQUAL(AT(110), process->last_ns);
    CHECK_EQUAL((100 + 10 + 30) * HW_NS_PER_US, process->busy_ns);
    CHECK_EQUAL(1, process->under_way); /* the last one came later */
    clean_up();
}

/* Queries at the application's start, and one in a request that was begun before the trace. */
TEST(a_part_is_no_request_wherever_it_is)
{
    static const struct hw_trace_event events[] = {
        EVENT(AT(0), 1, KNOWN, .value = HW_RUNNING), EVENT(AT(10), 1, MARK_BEGIN, .value = 2, .detail = HW_SPAN_PART),
        EVENT(AT(20), 1, MARK_END, .value = 2, .detail = HW_SPAN_PART), EVENT(AT(30), 1, MARK_BEGIN, .value = 1),
        EVENT(AT(32), 1, MARK_BEGIN, .value = 1, .detail = HW_SPAN_PART), EVENT(AT(34), 1, MARK_END, .value = 1, .detail = HW_SPAN_PART),
        EVENT(AT(40), 1, MARK_END, .value = 1), EVENT(AT(41), 1, KNOWN, .value = HW_RUNNING),
    };
    read_trace(events, COUNT(events));
    CHECK_EQUAL(1, work.marked);
    CHECK_EQUAL(10 * HW_NS_PER_US, work.requests[0].latency_ns);
    CHECK_EQUAL(1, work.processes[0].requests);
    clean_up();
}

/* A method that calls itself, say. */
static const struct hw_trace_event alike[] = {
    EVENT(AT(0), 1, KNOWN, .value = HW_RUNNING), EVENT(AT(10), 1, MARK_BEGIN, .value = 1), EVENT(AT(20), 1, MARK_BEGIN, .value = 2),
    EVENT(AT(30), 1, MARK_BEGIN, .value = 1), EVENT(AT(40), 1, MARK_END, .value = 1), EVENT(AT(50), 1, MARK_END, .value = 2),
    EVENT(AT(60), 1, MARK_BEGIN, .value = 1), EVENT(AT(70), 1, MARK_END, .value = 1), EVENT(AT(80), 1, MARK_END, .value = 1),
    EVENT(AT(90), 1, MARK_BEGIN, .value = 1), EVENT(AT(95), 1, MARK_END, .value = 1), EVENT(AT(99), 1, KNOWN, .value = HW_RUNNING),
};

TEST(marks_of_one_name_nest)
{
    read_lossy_trace(0, alike, COUNT(alike));
    CHECK_EQUAL(2, work.marked);
    CHECK_EQUAL(70 * HW_NS_PER_US, work.requests[0].latency_ns);
    CHECK_EQUAL(5 * HW_NS_PER_US, work.requests[1].latency_ns);
    clean_up();
}

TEST(where_events_were_dropped_an_end_is_the_end)
{
    read_lossy_trace(1, alike, COUNT(alike));
    CHECK_EQUAL(3, work.marked);
    CHECK_EQUAL(30 * HW_NS_PER_US, work.requests[0].latency_ns);
    clean_up();
}

TEST(idle_threads_are_those_named_as_one_that_did_requests)
{
    static const struct hw_trace_event events[] = {
        EVENT(AT(0), 1, KNOWN, .value = HW_SUSPENDED), EVENT(AT(0), 2, KNOWN, .value = HW_SUSPENDED),
        EVENT(AT(0), 3, KNOWN, .value = HW_SUSPENDED), EVENT(AT(0), 4, KNOWN, .value = HW_SUSPENDED),
        EVENT(AT(0), 5, KNOWN, .value = HW_SUSPENDED), EVENT(AT(1), 5, EXITED), EVENT(AT(2), 2, MARK_BEGIN, .value = 1),
        EVENT(AT(5), 2, MARK_END, .value = 1), EVENT(AT(6), 4, MARK_BEGIN, .value = 1), /* isn't done at the end */
    };
    static const char *const names[] = { "", "tp 001", "tp 002", "tp reap", "tp 003", "tp 004" };
    struct hw_trace_damage damage;
    test_clean_up = clean_up;
    hw_workload_init(&work);
    CHECK(hw_write_header(&buffer, &trace_header));
    CHECK(hw_write_events(&buffer, events, COUNT(events)));
    for (uint32_t i = 1; i <= 5; i++) CHECK(hw_write_thread(&buffer, i, names[i], strlen(names[i]), "", 0));
    CHECK(hw_write_end(&buffer));
    CHECK(hw_workload_read(&work, trace_file(buffer.bytes, buffer.length), UINT64_MAX, &damage));
    CHECK_EQUAL(1, work.processes[0].workers);
    CHECK_EQUAL(1, work.processes[0].idle); /* thread 1: 3 is another kind, 4 is at work, 5 has ended */
    clean_up();
}

/* A thread for each request, three at a time: as many threads at work as a pool of three. */
TEST(threads_that_work_one_after_another_are_no_larger_pool)
{
    enum { REQUESTS = 12 };
    struct hw_trace_event events[5 * REQUESTS];
    for (uint32_t i = 0; i < REQUESTS; i++) {
        uint32_t round = i / 3, place = i % 3, number = 10 + i;
        uint64_t at = round * 100;
        struct hw_trace_event own[] = {
            EVENT(AT(at + place), number, RESUMED), EVENT(AT(at + place), number, MARK_BEGIN, .value = 1),
            EVENT(AT(at + 50 + place * 10), number, RESUMED), EVENT(AT(at + 50 + place * 10), number, MARK_END, .value = 1),
            EVENT(AT(at + 51 + place * 10), number, EXITED),
        };
        for (int k = 0; k < 5; k++) events[round * 15 + (k < 2 ? place * 2 + k : 6 + place * 3 + (k - 2))] = own[k];
    }
    read_trace(events, COUNT(events));
    CHECK_EQUAL(REQUESTS, work.processes[0].requests);
    CHECK_EQUAL(3, work.processes[0].workers);
    CHECK_EQUAL(3, work.processes[0].most_at_once);
    clean_up();
}

/* As a name in UTF-16 is. */
TEST(a_class_is_found_again_whatever_bytes_its_name_has)
{
    hw_workload_init(&work);
    test_clean_up = clean_up;
    uint32_t a = hw_workload_class(&work, "j\0a", 3), b = hw_workload_class(&work, "j\0b", 3), j = hw_workload_class(&work, "j", 1);
    CHECK_EQUAL(a, hw_workload_class(&work, "j\0a", 3));
    CHECK_EQUAL(b, hw_workload_class(&work, "j\0b", 3));
    CHECK_EQUAL(j, hw_workload_class(&work, "j", 1));
    CHECK_EQUAL(3, work.class_count);
    clean_up();
}

/* A job's class and the thread that queues such jobs may well be of one name, and a program may give each of its threads another. */
TEST(classes_of_requests_and_of_threads_are_apart)
{
    hw_workload_init(&work);
    test_clean_up = clean_up;
    char name[16];
    uint32_t job = hw_workload_class(&work, "job", 3), thread = hw_workload_thread_class(&work, "job", 3);
    CHECK(job != thread);
    for (int i = 0; i < 2 * HW_CLASSES_MOST; i++) {
        size_t length = (size_t)snprintf(name, sizeof(name), "thread %d", i);
        thread = hw_workload_thread_class(&work, name, length);
    }
    CHECK(strcmp(work.classes[thread].name, "(others)") == 0);
    uint32_t order = hw_workload_class(&work, "order", 5);
    CHECK(strcmp(work.classes[order].name, "order") == 0);
    CHECK_EQUAL(job, hw_workload_class(&work, "job", 3));
    uint32_t last = order;
    for (int i = 0; i < 2 * HW_CLASSES_MOST; i++) {
        size_t length = (size_t)snprintf(name, sizeof(name), "request %d", i);
        last = hw_workload_class(&work, name, length);
    }
    CHECK(strcmp(work.classes[last].name, "(others)") == 0 && last != thread);
    CHECK_EQUAL(2 * HW_CLASSES_MOST, work.class_count);
    clean_up();
}

/* Delays of requests of one kind, `load` of them at a time. */
static void
crowd(uint32_t load, double length_ms, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        hw_workload_request(&work, hw_workload_class(&work, "r", 1));
        hw_workload_step(&work, HW_STEP_GVL, 1000, 0);
        hw_workload_step(&work, HW_STEP_DELAY, (uint64_t)(length_ms * 1e6), load);
    }
}

TEST(delays_that_grow_with_load_are_noticed)
{
    static const struct { double alone_ms, crowded_ms; bool grows; } cases[] = { { 5, 5, false }, { 5, 5.2, false }, { 5, 20, true } };
    for (int i = 0; i < 3; i++) {
        double ratio, crowd_ratio;
        test_clean_up = clean_up;
        hw_workload_init(&work);
        crowd(1, cases[i].alone_ms, 500);
        crowd(4, cases[i].crowded_ms, 500);
        CHECK(hw_workload_finish(&work));
        CHECK(hw_workload_delays_by_load(&work, &ratio, &crowd_ratio));
        CHECK(crowd_ratio > 3.9 && crowd_ratio < 4.1);
        CHECK((ratio > 1.25) == cases[i].grows, "%g", ratio);
        clean_up();
    }
    double ratio, crowd_ratio;
    crowd(1, 5, 1000);
    CHECK(hw_workload_finish(&work));
    CHECK(!hw_workload_delays_by_load(&work, &ratio, &crowd_ratio)); /* nothing to compare */
    clean_up();
}

/* Whatever the events are, nothing is read or written where it mustn't be, and time adds up to no more than passed. */
TEST(any_events_can_be_read)
{
    for (unsigned round = 0; round < test_effort(300); round++) {
        enum { MOST = 400 };
        struct hw_trace_event events[MOST];
        uint64_t at_us = 0;
        for (unsigned i = 0; i < MOST; i++) {
            at_us += test_random(50);
            events[i] = (struct hw_trace_event){ .time_ns = AT(at_us), .thread = (uint32_t)test_random(6),
                                                 .kind = (uint8_t)(1 + test_random(HW_TRACE_QUEUED)), .value = (uint32_t)test_random(4),
                                                 .detail = (uint8_t)test_random(round % 2 ? 1 : 5) };
        }
        read_trace(events, MOST);
        uint64_t gvl_ns = 0;
        for (uint32_t i = 0; i < work.class_count; i++) gvl_ns += work.classes[i].time_ns[HW_STEP_GVL] + work.classes[i].after_ns;
        CHECK(gvl_ns <= at_us * HW_NS_PER_US + MOST, "%" PRIu64 " of %" PRIu64, gvl_ns, at_us * HW_NS_PER_US);
        for (uint32_t i = 0; i < work.request_count; i++) CHECK(work.requests[i].steps > 0);
        clean_up();
    }
}

static unsigned cancelled_after_us;

static void *
cancel(void *unused)
{
    (void)unused;
    usleep(cancelled_after_us);
    atomic_store(&work.cancelled, true);
    return NULL;
}

#define THREADS 64

/* As where `headway predict` is interrupted. */
TEST(reading_may_be_given_up_at_any_moment)
{
    struct hw_trace_event events[2 * THREADS];
    struct hw_trace_damage damage;
    uint64_t at_us = 0;
    test_clean_up = clean_up;
    CHECK(hw_write_header(&buffer, &trace_header));
    for (unsigned round = 0; round < 20000; round++) {
        for (unsigned i = 0; i < THREADS; i++, at_us += 2) {
            events[2 * i] = EVENT(AT(at_us), i + 1, MARK_BEGIN, .value = 1);
            events[2 * i + 1] = EVENT(AT(at_us + 1), i + 1, MARK_END, .value = 1);
        }
        CHECK(hw_write_events(&buffer, events, COUNT(events)));
    }
    CHECK(hw_write_end(&buffer));
    const char *path = trace_file(buffer.bytes, buffer.length);
    for (cancelled_after_us = 1000; cancelled_after_us < 200000; cancelled_after_us += 10000) {
        pthread_t canceller;
        hw_workload_init(&work);
        CHECK(pthread_create(&canceller, NULL, cancel, NULL) == 0);
        hw_workload_read(&work, path, UINT64_MAX, &damage);
        pthread_join(canceller, NULL);
        for (uint32_t i = 0; i < work.process_count; i++) CHECK(work.processes[i].workers <= THREADS, "%u", work.processes[i].workers);
        hw_workload_free(&work);
    }
    clean_up();
}

/* A job is one where there are no requests; beside these it is what its thread goes on with. One that the trace
 * doesn't begin with, and one inside a request, change nothing. */
TEST(jobs_in_a_server_go_on_beside_its_requests)
{
    static const struct hw_trace_event jobs[] = {
        EVENT(AT(0), 1, KNOWN, .value = HW_RUNNING), EVENT(AT(5), 1, MARK_END, .value = 2, .detail = HW_SPAN_JOB),
        EVENT(AT(10), 1, MARK_BEGIN, .value = 2, .detail = HW_SPAN_JOB), EVENT(AT(20), 1, MARK_BEGIN, .value = 3, .detail = HW_SPAN_PART),
        EVENT(AT(30), 1, SUSPENDED), EVENT(AT(5000), 1, READY), EVENT(AT(5000), 1, RESUMED), EVENT(AT(5010), 1, MARK_END, .value = 3, .detail = HW_SPAN_PART),
        EVENT(AT(5020), 1, MARK_END, .value = 2, .detail = HW_SPAN_JOB), EVENT(AT(5020), 1, MARK_NAME, .value = 3),
        EVENT(AT(9000), 1, SUSPENDED),
    }, requests[] = {
        EVENT(AT(0), 2, RESUMED), EVENT(AT(1), 2, MARK_BEGIN, .value = 1, .detail = HW_SPAN_REQUEST), EVENT(AT(2), 2, MARK_BEGIN, .value = 2),
        EVENT(AT(3), 2, MARK_END, .value = 2), EVENT(AT(4), 2, MARK_END, .value = 1, .detail = HW_SPAN_REQUEST), EVENT(AT(4), 2, SUSPENDED),
    };
    struct hw_trace_event both[COUNT(requests) + COUNT(jobs)];
    memcpy(both, requests, sizeof(requests));
    memcpy(both + COUNT(requests), jobs, sizeof(jobs));
    read_trace(jobs, COUNT(jobs));
    CHECK_EQUAL(1, work.marked);
    CHECK_EQUAL(1, work.processes[0].jobs);
    CHECK_EQUAL(5010 * HW_NS_PER_US, work.requests[0].latency_ns);
    CHECK_EQUAL(1, work.processes[0].workers);
    clean_up();

    for (unsigned i = 0; i < COUNT(jobs); i++) both[COUNT(requests) + i].time_ns += AT(10) - AT(0);
    read_trace(both, COUNT(both));
    CHECK_EQUAL(1, work.marked);
    CHECK_EQUAL(0, work.processes[0].jobs);
    CHECK_EQUAL(3 * HW_NS_PER_US, work.requests[0].latency_ns);
    CHECK_EQUAL(1, work.processes[0].workers);
    CHECK_EQUAL(1, work.processes[0].requests);
    CHECK_EQUAL(1, work.track_count);
    CHECK(work.tracks[0].requests > 0);
    clean_up();

    static const struct hw_trace_event dropped[] = { /* the end of a job, of a thread that then does a request */
        EVENT(AT(0), 1, RESUMED), EVENT(AT(1), 1, MARK_BEGIN, .value = 2, .detail = HW_SPAN_JOB), EVENT(AT(2), 1, SUSPENDED),
        EVENT(AT(3), 1, RESUMED), EVENT(AT(4), 1, MARK_BEGIN, .value = 1, .detail = HW_SPAN_REQUEST),
        EVENT(AT(9), 1, MARK_END, .value = 1, .detail = HW_SPAN_REQUEST), EVENT(AT(9), 1, SUSPENDED),
    };
    read_trace(dropped, COUNT(dropped));
    CHECK_EQUAL(1, work.marked);
    clean_up();
}

TESTS({ "request", a_request_is_what_was_marked_without_its_waits },
      { "queued", how_long_requests_stood_in_a_queue_is_summed_up },
      { "busy", requests_that_overlap_are_busy_from_the_first_begin_to_the_last_end },
      { "part", a_part_is_no_request_wherever_it_is }, { "jobs", jobs_in_a_server_go_on_beside_its_requests },
      { "alike", marks_of_one_name_nest }, { "alike, dropped", where_events_were_dropped_an_end_is_the_end },
      { "idle", idle_threads_are_those_named_as_one_that_did_requests },
      { "workers", threads_that_work_one_after_another_are_no_larger_pool },
      { "classes", classes_of_requests_and_of_threads_are_apart },
      { "bytes", a_class_is_found_again_whatever_bytes_its_name_has },
      { "load", delays_that_grow_with_load_are_noticed }, { "any", any_events_can_be_read },
      { "cancelled", reading_may_be_given_up_at_any_moment })
