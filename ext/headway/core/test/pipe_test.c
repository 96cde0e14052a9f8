/* The recorder, where the trace goes to a pipe: a reader that no longer reads costs the recording, and holds nobody up. */
#include "clock.h"
#include "recorder.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

/* writer.c: how long a pipe may take nothing; the last test has its own. */
extern uint64_t hw_writer_patience_ns;

static struct hw_recorder recorder;
static struct hw_recording set;
static int reader = -1;

static void
clean_up(void)
{
    atomic_store(&recorder.recording, false);
    if (hw_recorder_claim_end(&recorder)) hw_recorder_stop(&recorder, NULL);
    if (reader >= 0) close(reader);
    reader = -1;
    unlink(set.path);
    *strrchr(set.path, '/') = '\0';
    rmdir(set.path);
}

static void
start(bool flight, uint64_t slots)
{
    static bool ready;
    test_clean_up = clean_up;
    if (!ready) hw_recorder_init(&recorder);
    ready = true;
    set = (struct hw_recording){ .flight = flight, .slots = slots, .path = "/tmp/headway-pipe-XXXXXX" };
    CHECK(mkdtemp(set.path));
    strcat(set.path, "/trace.headway");
    CHECK(mkfifo(set.path, 0600) == 0 && (reader = open(set.path, O_RDONLY | O_NONBLOCK)) >= 0);
    CHECK(hw_recorder_start(&recorder, &set) == 0);
    hw_recorder_go(&recorder);
}

static void
record(unsigned count)
{
    for (uint32_t i = 0; i < count; i++) hw_record(&recorder, HW_TRACE_READY, i, i, hw_now_ns());
}

static int
stop(struct hw_recorder_status *status)
{
    atomic_store(&recorder.recording, false);
    return hw_recorder_claim_end(&recorder) ? hw_recorder_stop(&recorder, status) : -1;
}

TEST(a_stream_that_nobody_reads_ends)
{
    struct hw_recorder_status status;
    start(false, 1 << 16);
    for (int rounds = 0; rounds < 20000 && hw_recording(&recorder); rounds++) {
        record(1000);
        usleep(1000);
    }
    CHECK(!hw_recording(&recorder));
    CHECK_EQUAL(ETIMEDOUT, stop(&status));
    CHECK_EQUAL(ETIMEDOUT, status.failure);
    CHECK(strcmp(set.path, recorder.failed_path) == 0);
    clean_up();
}

/* The writer is in the middle of it then. */
TEST(the_end_waits_no_longer_for_a_reader)
{
    start(false, 1 << 18);
    record(200000);
    CHECK_EQUAL(ETIMEDOUT, stop(NULL));
    clean_up();
}

TEST(a_dump_that_nobody_reads_is_given_up)
{
    struct hw_buffer definitions = { NULL, 0, 0 };
    start(true, 1 << 16);
    record(1 << 16);
    struct hw_dump dump = { .path = set.path, .definitions = &definitions, .now = hw_now_ns() };
    hw_ring_walk_start(&recorder.ring, &dump.walk);
    CHECK(hw_recorder_announce_dump(&recorder));
    CHECK_EQUAL(ETIMEDOUT, hw_recorder_dump(&recorder, &dump));
    CHECK(hw_recording(&recorder));
    CHECK(stop(NULL) == 0);
    clean_up();
}

/* The pipe is full more often than not. */
static void *
read_all(void *sum)
{
    static uint8_t bytes[4096];
    ssize_t length;
    while ((length = read(reader, bytes, sizeof(bytes))) > 0) {
        *(uint64_t *)sum += (uint64_t)length;
        sched_yield();
    }
    return NULL;
}

TEST(a_reader_that_is_slow_gets_everything)
{
    pthread_t thread;
    struct hw_recorder_status status;
    uint64_t read = 0;
    hw_writer_patience_ns = 60 * HW_NS_PER_S; /* on a busy machine the reader may not run for long */
    start(false, 1 << 18);
    record(200000);
    CHECK(fcntl(reader, F_SETFL, 0) == 0);
    CHECK(pthread_create(&thread, NULL, read_all, &read) == 0);
    int error = stop(&status);
    pthread_join(thread, NULL);
    CHECK_EQUAL(0, error);
    CHECK_EQUAL(200000, status.events);
    CHECK_EQUAL(status.bytes, read);
    clean_up();
}

TESTS({ "a_stream_that_nobody_reads_ends", a_stream_that_nobody_reads_ends },
      { "the_end_waits_no_longer_for_a_reader", the_end_waits_no_longer_for_a_reader },
      { "a_dump_that_nobody_reads_is_given_up", a_dump_that_nobody_reads_is_given_up },
      { "a_reader_that_is_slow_gets_everything", a_reader_that_is_slow_gets_everything })
