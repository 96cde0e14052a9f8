/* The recorder: what was recorded is in the file, whatever happens to threads, processes and disks. */
#include "analysis.h"
#include "feed.h"
#include "clock.h"
#include "test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PRODUCERS 3

static struct hw_recorder recorder;
static struct hw_analysis analysis;
static char directory[] = "/tmp/headway-recorder-XXXXXX";
static char path[HW_PATH_LONGEST];

static void
clean_up(void)
{
    atomic_store(&recorder.recording, false);
    if (hw_recorder_claim_end(&recorder)) hw_recorder_stop(&recorder, NULL);
    hw_analysis_free(&analysis);
    unlink(path);
}

static int
start(const char *file, bool flight, uint64_t slots)
{
    static bool ready;
    struct hw_recording set = { .flight = flight, .slots = slots };
    test_clean_up = clean_up;
    if (!ready) {
        hw_recorder_init(&recorder);
        CHECK(mkdtemp(directory));
    }
    ready = true;
    snprintf(path, sizeof(path), "%s/trace.headway", directory);
    snprintf(set.path, sizeof(set.path), "%s", file ? file : path);
    hw_analysis_init(&analysis, false);
    int error = hw_recorder_start(&recorder, &set);
    if (error == 0) hw_recorder_go(&recorder);
    return error;
}

static int
stop(void)
{
    atomic_store(&recorder.recording, false);
    return hw_recorder_claim_end(&recorder) ? hw_recorder_stop(&recorder, NULL) : atomic_load(&recorder.failure);
}

/* The file, read back. */
static const struct hw_analysed_process *
read_back(const char *file)
{
    struct hw_trace_damage damage = { 0 };
    CHECK(hw_analysis_add(&analysis, file, UINT64_MAX, &damage));
    return &analysis.processes[analysis.process_count - 1];
}

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER; /* the runtime's lock */

static void *
produce(void *arg)
{
    uint32_t thread = (uint32_t)(uintptr_t)arg;
    for (unsigned i = 0; i < test_effort(40000); i++) {
        enum hw_trace_kind kind = (enum hw_trace_kind)(HW_TRACE_READY + i % 3);
        pthread_mutex_lock(&turn);
        hw_record(&recorder, kind, thread, 0, hw_now_ns());
        pthread_mutex_unlock(&turn);
        if (i % 1000 == 0) sched_yield();
    }
    return NULL;
}

static void
run_producers(void)
{
    pthread_t threads[PRODUCERS];
    for (uintptr_t i = 0; i < PRODUCERS; i++) CHECK(pthread_create(&threads[i], NULL, produce, (void *)(i + 1)) == 0);
    for (int i = 0; i < PRODUCERS; i++) pthread_join(threads[i], NULL);
}

TEST(a_stream_has_everything)
{
    CHECK(start(NULL, false, 1 << 20) == 0);
    hw_recorder_name_thread(&recorder, 1, "first", 5, "a.rb:1", 6);
    run_producers();
    uint64_t recorded = hw_ring_claimed(&recorder.ring);
    CHECK_EQUAL(PRODUCERS * test_effort(40000), recorded);
    CHECK(stop() == 0);
    const struct hw_analysed_process *process = read_back(path);
    CHECK_EQUAL(recorded, process->events);
    CHECK_EQUAL(0, process->dropped);
    CHECK_EQUAL(getpid(), process->header.pid);
    CHECK(process->damage.what[0] == 0);
    clean_up();
}

TEST(what_found_no_place_is_counted)
{
    CHECK(start(NULL, false, 4) == 0);
    run_producers();
    uint64_t recorded = hw_ring_claimed(&recorder.ring), dropped = hw_ring_dropped(&recorder.ring);
    CHECK_EQUAL(PRODUCERS * test_effort(40000), recorded + dropped);
    CHECK(stop() == 0);
    const struct hw_analysed_process *process = read_back(path);
    CHECK_EQUAL(recorded, process->events);
    CHECK_EQUAL(dropped, process->dropped);
    clean_up();
}

TEST(it_stops_and_starts)
{
    for (unsigned round = 0; round < 20; round++) {
        CHECK(start(NULL, round % 2, 64) == 0);
        for (unsigned i = 0; i < 30; i++) hw_record(&recorder, HW_TRACE_READY, 1, 0, hw_now_ns());
        CHECK(stop() == 0);
        CHECK(stop() == 0);
        if (round % 2 == 0) CHECK_EQUAL(30, read_back(path)->events);
        hw_analysis_free(&analysis);
    }
    clean_up();
}

TEST(a_file_that_cannot_be_written_is_refused)
{
    CHECK_EQUAL(ENOENT, start("/nonexistent/trace", false, 64));
    CHECK(recorder.ring.slots == NULL);
    if (access("/dev/full", W_OK) == 0) CHECK_EQUAL(ENOSPC, start("/dev/full", false, 64));
    clean_up();
}

/* As if the disk were full: files can't grow beyond that. RLIM_INFINITY: no longer. */
static void
limit_files(rlim_t bytes)
{
    struct rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
}

static unsigned
files(void)
{
    unsigned count = 0;
    DIR *opened = opendir(directory);
    for (struct dirent *entry; opened && (entry = readdir(opened));) count += entry->d_name[0] != '.';
    closedir(opened);
    return count;
}

TEST(a_full_disk_at_the_start_leaves_what_was_there)
{
    clean_up();
    limit_files(0);
    CHECK_EQUAL(EFBIG, start(NULL, false, 64));
    CHECK_EQUAL(0, files());
    limit_files(RLIM_INFINITY);
    CHECK(start(NULL, false, 64) == 0);
    for (unsigned i = 0; i < 30; i++) hw_record(&recorder, HW_TRACE_READY, 1, 0, hw_now_ns());
    CHECK(stop() == 0);
    limit_files(0);
    CHECK_EQUAL(EFBIG, start(NULL, false, 64));
    limit_files(RLIM_INFINITY);
    CHECK_EQUAL(30, read_back(path)->events);
    hw_analysis_free(&analysis);
    CHECK(start(NULL, false, 64) == 0 && stop() == 0);
    const struct hw_analysed_process *process = read_back(path);
    CHECK(process->damage.what[0] == 0 && process->events == 0);
    clean_up();
}

TEST(a_disk_that_fills_up_ends_the_recording)
{
    CHECK(start(NULL, false, 1 << 16) == 0);
    limit_files(20000);
    uint64_t until_ns = hw_now_ns() + 20 * HW_NS_PER_S;
    while (hw_recording(&recorder) && hw_now_ns() < until_ns) {
        for (uint32_t i = 0; i < 1000; i++) hw_record(&recorder, HW_TRACE_READY, i, i, hw_now_ns());
        usleep(1000);
    }
    limit_files(RLIM_INFINITY);
    CHECK(!hw_recording(&recorder));
    CHECK_EQUAL(EFBIG, atomic_load(&recorder.failure));
    CHECK(strcmp(path, recorder.failed_path) == 0);
    CHECK_EQUAL(EFBIG, stop());
    read_back(path); /* what is there can be read */
    clean_up();
}

/* As programs do that become daemons, or that start others. */
TEST(a_file_that_the_program_closed_is_written_to_no_more)
{
    char others[HW_PATH_LONGEST + 16];
    struct stat facts;
    CHECK(start(NULL, false, 64) == 0);
    snprintf(others, sizeof(others), "%s.others", path);
    int fd = open(others, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    pthread_mutex_lock(&recorder.lock);
    int number = recorder.file.fd;
    CHECK(fd >= 0 && dup2(fd, number) == number);
    pthread_mutex_unlock(&recorder.lock);
    for (unsigned i = 0; i < 30; i++) hw_record(&recorder, HW_TRACE_READY, 1, 0, hw_now_ns());
    CHECK_EQUAL(EBADF, stop());
    CHECK(fstat(fd, &facts) == 0 && facts.st_size == 0);
    CHECK(close(number) == 0, "it was left open");
    close(fd);
    unlink(others);
    clean_up();
}

/* -- dumps -------------------------------------------------------------------------------------------------------------- */

static int
dump(uint64_t *events)
{
    struct hw_buffer definitions = { NULL, 0, 0 };
    struct hw_known known = { .since_ns = 1, .thread = 77, .state = HW_SUSPENDED };
    struct hw_dump dump = { .path = path, .definitions = &definitions, .known = &known, .known_count = 1, .now = hw_now_ns() };
    hw_ring_walk_start(&recorder.ring, &dump.walk);
    CHECK(hw_recorder_announce_dump(&recorder));
    int error = hw_recorder_dump(&recorder, &dump);
    *events = dump.events;
    return error;
}

TEST(a_dump_has_the_newest_and_who_was_there)
{
    uint64_t events;
    CHECK(start(NULL, true, 1024) == 0);
    for (unsigned i = 0; i < 5000; i++) hw_record(&recorder, HW_TRACE_READY + i % 3, 1, 0, hw_now_ns());
    hw_recorder_name_thread(&recorder, 1, "first", 5, "a.rb:1", 6);
    CHECK(dump(&events) == 0);
    CHECK_EQUAL(1024 + 2, events);
    const struct hw_analysed_process *process = read_back(path);
    CHECK_EQUAL(events, process->events);
    CHECK_EQUAL(2, analysis.thread_count);
    CHECK(stop() == 0);
    clean_up();
}

TEST(a_dump_that_begins_later_lost_nothing)
{
    struct hw_buffer definitions = { NULL, 0, 0 };
    struct hw_dump dump = { .path = path, .definitions = &definitions, .now = hw_now_ns() };
    CHECK(start(NULL, true, 1024) == 0);
    for (unsigned i = 0; i < 5000; i++) hw_record(&recorder, HW_TRACE_READY + i % 3, 1, 0, hw_now_ns());
    hw_ring_walk_start(&recorder.ring, &dump.walk);
    for (unsigned i = 0; i < 100; i++) hw_record(&recorder, HW_TRACE_READY + i % 3, 1, 0, hw_now_ns());
    CHECK(hw_recorder_announce_dump(&recorder) && hw_recorder_dump(&recorder, &dump) == 0);
    const struct hw_analysed_process *process = read_back(path);
    CHECK_EQUAL(1024 - 100, process->events);
    CHECK_EQUAL(0, process->dropped);
    CHECK(stop() == 0);
    clean_up();
}

TEST(a_dump_that_fails_leaves_the_one_before)
{
    uint64_t events, unwritten;
    struct stat before, after;
    clean_up();
    CHECK(start(NULL, true, 1024) == 0);
    limit_files(500);
    for (unsigned i = 0; i < 1000; i++) hw_record(&recorder, HW_TRACE_READY + i % 3, 1, 0, hw_now_ns());
    CHECK_EQUAL(EFBIG, dump(&unwritten));
    CHECK_EQUAL(0, files());
    limit_files(RLIM_INFINITY);
    CHECK(dump(&events) == 0);
    chmod(path, 0640);
    limit_files(500);
    CHECK_EQUAL(EFBIG, dump(&unwritten));
    CHECK_EQUAL(1, files());
    const struct hw_analysed_process *process = read_back(path);
    CHECK(process->damage.what[0] == 0 && process->events == events);
    limit_files(RLIM_INFINITY);
    CHECK(stat(path, &before) == 0 && dump(&events) == 0 && stat(path, &after) == 0);
    CHECK(before.st_ino != after.st_ino && after.st_mode == before.st_mode);
    CHECK_EQUAL(1, files());
    CHECK(stop() == 0);
    clean_up();
}

static void
write_text(const char *text)
{
    FILE *file = fopen(path, "w");
    CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

TEST(what_is_no_trace_is_left_alone)
{
    static const char text[] = "puts 1\n";
    char held[sizeof(text)] = "";
    uint64_t events;
    clean_up();
    CHECK(start(NULL, true, 64) == 0);
    write_text(text);
    CHECK_EQUAL(ENOEXEC, dump(&events));
    CHECK(stop() == 0);
    CHECK_EQUAL(ENOEXEC, start(NULL, false, 64));
    CHECK_EQUAL(ENOEXEC, start(NULL, true, 64));
    FILE *file = fopen(path, "r");
    CHECK(file && fgets(held, sizeof(held), file) && fclose(file) == 0);
    CHECK(strcmp(text, held) == 0);

    write_text("\x89HW"); /* of a trace that was cut short */
    CHECK(start(NULL, false, 64) == 0);
    clean_up();
}

TEST(a_dump_goes_where_a_link_points)
{
    uint64_t events;
    char target[HW_PATH_LONGEST];
    struct stat facts;
    clean_up();
    CHECK(start(NULL, true, 64) == 0);
    snprintf(target, sizeof(target), "%s/elsewhere", directory);
    CHECK(symlink("elsewhere", path) == 0);
    for (int round = 0; round < 2; round++) {
        CHECK(dump(&events) == 0);
        CHECK(lstat(path, &facts) == 0 && S_ISLNK(facts.st_mode));
        CHECK(read_back(target)->damage.what[0] == 0);
    }
    CHECK(stop() == 0);
    unlink(target);
    clean_up();
}

static atomic_bool dumping;

static void *
keep_dumping(void *unused)
{
    (void)unused;
    uint64_t events;
    do {
        if (dump(&events) != 0) abort();
    } while (atomic_load(&dumping));
    return NULL;
}

TEST(a_dump_disturbs_nobody)
{
    pthread_t dumper;
    CHECK(start(NULL, true, 4096) == 0);
    atomic_store(&dumping, true);
    CHECK(pthread_create(&dumper, NULL, keep_dumping, NULL) == 0);
    run_producers();
    atomic_store(&dumping, false);
    pthread_join(dumper, NULL);
    CHECK(read_back(path)->damage.what[0] == 0);
    CHECK(stop() == 0);
    clean_up();
}

/* -- blocks -------------------------------------------------------------------------------------------------------------- */

/* Blocked for so long, then ready for so long. */
static bool
looked_at(uint64_t blocked_ns, uint64_t waited_ns)
{
    static struct hw_runtime runtime;
    struct hw_thread thread = { .number = 1, .state = HW_SUSPENDED };
    if (runtime.recorder.ring.slots == NULL) CHECK(hw_ring_init(&runtime.recorder.ring, 64, true));
    uint64_t now = HW_NS_PER_S;
    CHECK(!hw_feed_event(&runtime, &thread, HW_EVENT_SUSPENDED, false, 0, now));
    thread.state = HW_READY;
    CHECK(!hw_feed_event(&runtime, &thread, HW_EVENT_READY, blocked_ns == 0, 0, now += blocked_ns));
    thread.state = HW_RUNNING;
    return hw_feed_event(&runtime, &thread, HW_EVENT_RESUMED, false, waited_ns, now + waited_ns);
}

TEST(who_was_blocked_for_long_is_looked_at_however_long_it_waited)
{
    CHECK(looked_at(10 * HW_NS_PER_MS, 0));
    CHECK(looked_at(10 * HW_NS_PER_MS, HW_NS_PER_S));
    CHECK(!looked_at(9 * HW_NS_PER_MS, 0));
    CHECK(!looked_at(9 * HW_NS_PER_MS, HW_NS_PER_S));
    CHECK(!looked_at(0, HW_NS_PER_S)); /* the VM's own time slice */
}

/* -- fork --------------------------------------------------------------------------------------------------------------- */

static void
child(bool tells)
{
    if (tells) {
        for (unsigned i = 0; i < 10; i++) hw_record(&recorder, HW_TRACE_READY, 5, 0, hw_now_ns());
        hw_recorder_ensure(&recorder);
        _exit(stop() == 0 ? 0 : 1);
    }
    _exit(0);
}

TEST(a_child_writes_its_own)
{
    char own[HW_PATH_LONGEST], one[32];
    CHECK(start(NULL, false, 4096) == 0);
    for (int tells = 1; tells >= 0; tells--) {
        for (unsigned i = 0; i < 100; i++) hw_record(&recorder, HW_TRACE_READY, 1, 0, hw_now_ns());
        hw_recorder_before_fork(&recorder);
        pid_t pid = fork();
        if (pid == 0) {
            alarm(TEST_CHILD_LIMIT_S);
            hw_recorder_after_fork_child(&recorder);
            child(tells);
        }
        hw_recorder_after_fork_parent(&recorder);
        int status;
        CHECK(waitpid(pid, &status, 0) == pid && status == 0);
        snprintf(one, sizeof(one), "/trace.%ld.headway", (long)pid);
        snprintf(own, sizeof(own), "%s%s", directory, one);
        CHECK_EQUAL(tells ? 0 : -1, (uint64_t)(int64_t)access(own, R_OK));
        if (!tells) continue;
        const struct hw_analysed_process *process = read_back(own);
        CHECK_EQUAL(10, process->events);
        CHECK_EQUAL(getpid(), process->header.parent_pid);
        unlink(own);
    }
    CHECK(stop() == 0);
    CHECK_EQUAL(200, read_back(path)->events);
    clean_up();
    rmdir(directory);
}

TESTS({ "a_stream_has_everything", a_stream_has_everything }, { "what_found_no_place_is_counted", what_found_no_place_is_counted },
      { "it_stops_and_starts", it_stops_and_starts },
      { "a_file_that_cannot_be_written_is_refused", a_file_that_cannot_be_written_is_refused },
      { "a_full_disk_at_the_start_leaves_what_was_there", a_full_disk_at_the_start_leaves_what_was_there },
      { "a_disk_that_fills_up_ends_the_recording", a_disk_that_fills_up_ends_the_recording },
      { "a_file_that_the_program_closed_is_written_to_no_more", a_file_that_the_program_closed_is_written_to_no_more },
      { "a_dump_has_the_newest_and_who_was_there", a_dump_has_the_newest_and_who_was_there },
      { "a_dump_that_begins_later_lost_nothing", a_dump_that_begins_later_lost_nothing },
      { "a_dump_that_fails_leaves_the_one_before", a_dump_that_fails_leaves_the_one_before },
      { "what_is_no_trace_is_left_alone", what_is_no_trace_is_left_alone },
      { "a_dump_goes_where_a_link_points", a_dump_goes_where_a_link_points },
      { "a_dump_disturbs_nobody", a_dump_disturbs_nobody },
      { "who_was_blocked_for_long_is_looked_at_however_long_it_waited", who_was_blocked_for_long_is_looked_at_however_long_it_waited },
      { "a_child_writes_its_own", a_child_writes_its_own })
