/* The control socket on real threads, without a Ruby: clients ask and set while threads change state, sockets open and close, and
 * processes fork. For the sanitizers above all. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "../analysis.h"
#include "../control_client.h"
#include "../feed.h"
#include "../names.h"
#include "json_text.h"
#include "test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static struct hw_runtime runtime;
static struct hw_control control;
static struct hw_strings strings;
static struct hw_stacks stacks;
static atomic_bool names_due;
static char directory[64];

static void
ignore_trigger(void)
{
}

static void
on_trigger(void)
{
    atomic_store(&names_due, true);
}

static void
set_up(void)
{
    strcpy(directory, "/tmp/hw-control-XXXXXX");
    if (mkdtemp(directory) == NULL || chdir(directory) != 0) abort(); /* where dumps go that were given no path */
    static bool initialised; /* once: its records are kept for reuse */
    if (!initialised) CHECK(hw_runtime_init(&runtime, ignore_trigger) && hw_strings_init(&strings) && hw_stacks_init(&stacks));
    initialised = true;
    struct hw_policy policy = hw_policy_default;
    policy.kind = HW_OBSERVE;
    CHECK(hw_runtime_start(&runtime, &policy, HW_POLL));
    hw_control_init(&control, &runtime, &strings, &stacks, on_trigger);
    runtime.recorder.teller = &control.teller;
    snprintf(control.facts.directory, sizeof(control.facts.directory), "%s/s", directory);
    strcpy(control.facts.headway, "0");
    strcpy(control.facts.ruby, "0");
    strcpy(control.facts.command, J("a 'test'"));
}

static int
files(void)
{
    int count = 0;
    DIR *entries = opendir(control.facts.directory);
    struct dirent *entry;
    while (entries && (entry = readdir(entries))) count += entry->d_name[0] != '.';
    if (entries) closedir(entries);
    return count;
}

static void
clean_directory(void)
{
    DIR *entries = opendir(directory);
    struct dirent *entry;
    while (entries && (entry = readdir(entries))) unlinkat(dirfd(entries), entry->d_name, 0);
    if (entries) closedir(entries);
}

static void
tear_down(void)
{
    if (chdir("/") != 0) abort();
    hw_control_close(&control);
    hw_runtime_stop(&runtime);
    free(control.clients);
    CHECK_EQUAL(0, files());
    clean_directory();
    rmdir(control.facts.directory);
    rmdir(directory);
}

/* The answer's first bytes; false when there was none. */
static bool
ask(const char *path, const char *request, char *answer, size_t capacity)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    strcpy(address.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool ended = false;
    size_t length = 0;
    answer[0] = '\0';
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0 &&
        send(fd, request, strlen(request), MSG_NOSIGNAL) == (ssize_t)strlen(request)) {
        char part[4096];
        ssize_t got;
        while (!ended && (got = recv(fd, part, sizeof(part), 0)) > 0) {
            ended = part[got - 1] == '\n';
            size_t kept = (size_t)got < capacity - 1 - length ? (size_t)got : capacity - 1 - length;
            memcpy(answer + length, part, kept);
            length += kept;
        }
        answer[length] = '\0';
    }
    close(fd);
    return ended;
}

static int
connected(void)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    strcpy(address.sun_path, control.path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0 ? fd : -1;
}

static bool
says(const char *request, const char *words)
{
    char answer[4096];
    return ask(control.path, request, answer, sizeof(answer)) && strstr(answer, words);
}

static bool
changed(void)
{
    pthread_mutex_lock(&control.lock);
    bool changed = control.settings_changed;
    control.settings_changed = false;
    pthread_mutex_unlock(&control.lock);
    return changed;
}

TEST(opens_answers_and_closes)
{
    set_up();
    for (int round = 0; round < 10; round++) {
        CHECK(hw_control_open(&control) == NULL);
        CHECK(hw_control_open(&control) == NULL, "twice does nothing");
        CHECK_EQUAL(1, (uint64_t)files());
        CHECK(says(J("{'ping':true}\n"), J("'command':'a ~'test~''")));
        CHECK(says(J("{'get':'settings'}\n"), J("{'settings':{'policy':'observe','preempt':'poll','quantum_ms':100}}")));
        CHECK(says(J("{'get':'stats'}\n"), J("'threads':[]")));
        CHECK(says(J("{'get':'stats'}\n"), J("'wait_histogram':[]")));
        CHECK(says(J("{'set':{'quantum_ms':0.5}}\n"), "quantum_ms is 0.5: give milliseconds"));
        CHECK(!changed());
        CHECK(says(J("{'set':{'quantum_ms':2.5,'policy':'quantum'}}\n"), J("'policy':'quantum','preempt':'poll','quantum_ms':2.5}")));
        CHECK(changed());
        CHECK(says(J("{'set':{'quantum_ms':100,'policy':'observe'}}\n"), J("'quantum_ms':100}")));
        CHECK(says("x\n", J("{'error':'this is no request")));
        hw_control_close(&control);
        hw_control_close(&control);
        CHECK_EQUAL(0, (uint64_t)files());
        changed();
    }
    tear_down();
}

static atomic_bool over;

static void *
change_states(void *unused)
{
    (void)unused;
    while (!atomic_load(&over)) {
        struct hw_thread *thread = hw_runtime_add(&runtime, HW_SUSPENDED, true);
        for (int i = 0; i < 20; i++) {
            hw_runtime_event(&runtime, thread, HW_EVENT_READY);
            hw_runtime_event(&runtime, thread, HW_EVENT_RESUMED);
            hw_runtime_event(&runtime, thread, HW_EVENT_SUSPENDED);
        }
        hw_runtime_event(&runtime, thread, HW_EVENT_EXITED);
    }
    return NULL;
}

/* As the binding's jobs would: stacks are added, and named when somebody asks. */
static void *
blame(void *unused)
{
    (void)unused;
    uint32_t named = 0;
    for (int line = 1; !atomic_load(&over); line = line % 3000 + 1) {
        uintptr_t codes[2] = { 1, 2 };
        int lines[2] = { line, 1 };
        hw_stacks_add(&stacks, codes, lines, 2, 1000);
        if (!atomic_exchange(&names_due, false)) {
            usleep(100);
            continue;
        }
        for (; named < stacks.frame_count; named++) {
            char name[32];
            snprintf(name, sizeof(name), "method%u", named);
            stacks.frames[named].file = hw_strings_number(&strings, "file", 4);
            stacks.frames[named].method = hw_strings_number(&strings, name, strlen(name));
        }
    }
    return NULL;
}

static bool
end_recording(void)
{
    if (!hw_recorder_claim_end(&runtime.recorder)) return false;
    hw_feed_close(&runtime);
    hw_recorder_stop(&runtime.recorder, NULL);
    return true;
}

/* As marks are. */
static void *
mark(void *unused)
{
    (void)unused;
    for (uint32_t i = 0; !atomic_load(&over); i++) {
        hw_feed_aside(&runtime, HW_TRACE_MARK, 1, i % 100 + 1, hw_now_ns());
        if (i % 64 == 0) {
            hw_recorder_name_thread(&runtime.recorder, 1, "one", 3, "", 0);
            usleep(50);
        }
    }
    return NULL;
}

/* The flight recorder comes and goes while dumps are asked for. */
static void *
record(void *unused)
{
    (void)unused;
    while (!atomic_load(&over)) {
        struct hw_recording *set = calloc(1, sizeof(*set));
        set->flight = true;
        set->slots = 1000;
        int error = hw_feed_start(&runtime, set);
        if (error && error != EBUSY) abort();
        free(set);
        usleep(2000);
        end_recording();
        usleep(500);
    }
    return NULL;
}

static void *
ask_all(void *unused)
{
    char dump[128], stream[128];
    snprintf(dump, sizeof(dump), "{\"dump\":\"%s/dump\"}\n", directory);
    snprintf(stream, sizeof(stream), "{\"record\":{\"file\":\"%s/stream\",\"events\":5000}}\n", directory);
    const char *const requests[] = { J("{'get':'stats'}\n"), J("{'ping':true}\n"), J("{'set':{'quantum_ms':7}}\n"), dump,
                                     J("{'set':{'policy':'quantum'}}\n"), J("{'set':{'policy':'observe'}}\n"), "garbage\n",
                                     J("{'dump':'/no/such/directory/x'}\n"), stream, J("{'get':'recorder'}\n"),
                                     J("{'record':false}\n"), J("{'record':{'events':300,'wait_threshold':0.001}}\n"),
                                     J("{'record':false}\n") };
    char *path = stream + strlen(J("{'record':{'file':'"));
    (void)unused;
    char answer[256];
    uint64_t answers = 0;
    for (unsigned i = 0; !atomic_load(&over); i++) {
        if (ask(control.path, requests[i % 13], answer, sizeof(answer))) answers++;
        if (i % 13 != 10) continue;
        char *end = strchr(path, '"');
        *end = '\0';
        unlink(path); /* it must not be there yet */
        *end = '"';
    }
    return (void *)(uintptr_t)answers;
}

TEST(everything_at_once)
{
    set_up();
    atomic_store(&over, false);
    CHECK(hw_control_open(&control) == NULL);
    void *(*const bodies[])(void *) = { blame, record, change_states, change_states, mark, ask_all, ask_all, ask_all, ask_all };
    pthread_t threads[9];
    for (int i = 0; i < 9; i++) pthread_create(&threads[i], NULL, bodies[i], NULL);
    char dump[128];
    snprintf(dump, sizeof(dump), "%s/dump", directory);
    usleep(1000 * test_effort(800));
    for (int looks = 0; looks < 2000 && access(dump, F_OK) != 0; looks++) usleep(10000);
    atomic_store(&over, true);
    for (int i = 0; i < 9; i++) {
        void *answers;
        pthread_join(threads[i], &answers);
        CHECK(i < 5 || answers != NULL, "client %d had no answer", i);
    }
    CHECK(unlink(dump) == 0, "a dump was made");
    end_recording();
    tear_down();
}

TEST(forks_while_clients_ask)
{
    set_up();
    atomic_store(&over, false);
    CHECK(hw_control_open(&control) == NULL);
    pthread_t client;
    pthread_create(&client, NULL, ask_all, NULL);
    for (unsigned round = test_effort(40); round; round--) {
        hw_control_before_fork(&control);
        hw_runtime_before_fork(&runtime);
        pid_t child = fork();
        if (child == 0) {
            hw_runtime_after_fork_child(&runtime);
            hw_control_after_fork_child(&control);
            bool closed = control.reopen && control.listener.fd < 0;
#ifndef __SANITIZE_THREAD__ /* which allows no threads in a child */
            closed = closed && hw_control_open(&control) == NULL && says(J("{'ping':true}\n"), "ping");
            if (hw_recorder_runs(&runtime.recorder)) closed = closed && says(J("{'record':false}\n"), "recorder");
            closed = closed && says(J("{'record':{}}\n"), "flight") && says(J("{'record':false}\n"), "flight");
            hw_control_close(&control);
#endif
            _exit(closed ? 0 : 1);
        }
        hw_runtime_after_fork_parent(&runtime);
        hw_control_after_fork_parent(&control);
        int status;
        waitpid(child, &status, 0);
        CHECK_EQUAL(0, (uint64_t)status);
    }
    CHECK_EQUAL(1, (uint64_t)files());
    atomic_store(&over, true);
    pthread_join(client, NULL);
    end_recording();
    tear_down();
}

/* What a file says, once all of it is there; the caller frees it. */
static struct hw_analysis
analysed(const char *path)
{
    struct hw_analysis analysis;
    for (int looks = 0;; looks++) {
        struct hw_trace_damage damage = { 0 };
        hw_analysis_init(&analysis, false);
        if (hw_analysis_add(&analysis, path, UINT64_MAX, &damage) && analysis.processes[0].damage.what[0] == '\0') return analysis;
        CHECK(looks < 2000, "%s: %s", path, damage.what);
        hw_analysis_free(&analysis);
        usleep(5000);
    }
}

static bool
records(const char *options, const char *words)
{
    char request[512];
    snprintf(request, sizeof(request), J("{'record':%s}\n"), options);
    return says(request, words);
}

TEST(records_to_a_file)
{
    set_up();
    CHECK(hw_control_open(&control) == NULL);
    char path[128], options[256];
    struct hw_thread *thread = hw_runtime_add(&runtime, HW_SUSPENDED, true);
    hw_runtime_set_name(&runtime, thread, "worker", 6);
    snprintf(path, sizeof(path), "%s/out.headway", directory);
    snprintf(options, sizeof(options), J("{'file':'%s'}"), path);
    for (int round = 0; round < 3; round++) {
        CHECK(records(options, J("{'recorder':{'mode':'stream','file':'")));
        CHECK(records(options, "a recording is under way in this process: stop it first"));
        for (int i = 0; i < 10; i++) {
            hw_runtime_event(&runtime, thread, HW_EVENT_READY);
            hw_runtime_event(&runtime, thread, HW_EVENT_RESUMED);
            hw_runtime_event(&runtime, thread, HW_EVENT_SUSPENDED);
        }
        CHECK(says(J("{'get':'recorder'}\n"), J("'dropped':0")));
        CHECK(records("false", J("'mode':'stream'")));
        CHECK(records("false", "nothing is recorded in this process"));
        CHECK(says(J("{'get':'recorder'}\n"), J("{'recorder':null}")));
        CHECK(records(options, "File exists"), "it is not overwritten");
        struct hw_analysis analysis = analysed(path);
        CHECK_EQUAL(1, (uint64_t)analysis.process_count);
        CHECK(strcmp("observe", analysis.processes[0].header.policy) == 0);
        CHECK(analysis.processes[0].events >= 32);
        hw_analysis_free(&analysis);
        CHECK(unlink(path) == 0);
    }
    hw_runtime_event(&runtime, thread, HW_EVENT_EXITED);
    tear_down();
}

TEST(refuses_bad_recordings)
{
    set_up();
    CHECK(hw_control_open(&control) == NULL);
    CHECK(records("true", "record is true: give an object"));
    CHECK(records(J("{'file':'x'}"), "give an absolute path"));
    CHECK(records(J("{'mode':'stream'}"), "mode is stream: give a file, too"));
    CHECK(records(J("{'mode':'both'}"), "give stream or flight"));
    CHECK(records(J("{'events':0}"), "events is 0: give 1 to 100000000"));
    CHECK(records(J("{'events':1.5}"), "events is 1.5: give"));
    CHECK(records(J("{'seconds':0}"), "seconds is 0: give 0.001 to 86400"));
    CHECK(records(J("{'wait_threshold':3601}"), "give 0.001 to 3600"));
    CHECK(records(J("{'frob':1}"), "nothing is named "));
    CHECK(records(J("{'file':'/tmp/x','seconds':1}"), "are for mode flight"));
    CHECK(records(J("{'file':'/no/such/directory/x'}"), "no recording to /no/such/directory/x: No such file or directory"));
    CHECK(says(J("{'get':'recorder'}\n"), J("{'recorder':null}")));
    tear_down();
}

/* Nobody takes the GVL away from a thread that keeps it: the dump is there while another waits. */
TEST(a_wait_that_lasts_is_dumped)
{
    set_up();
    CHECK(hw_control_open(&control) == NULL);
    char path[128], options[256];
    snprintf(path, sizeof(path), "%s/out.wait-1.headway", directory);
    snprintf(options, sizeof(options), J("{'mode':'flight','file':'%s/out.headway','wait_threshold':0.05}"), directory);
    struct hw_thread *holder = hw_runtime_add(&runtime, HW_RUNNING, false), *waiter = hw_runtime_add(&runtime, HW_SUSPENDED, false);
    hw_ticker_ensure(&runtime);
    CHECK(records(options, "flight"));
    usleep(100000);
    CHECK(access(path, F_OK) != 0, "nobody has waited");
    uint64_t before = runtime.recorder.alarms;
    hw_runtime_event(&runtime, waiter, HW_EVENT_READY);
    struct hw_analysis analysis = analysed(path);
    CHECK(analysis.threads[1].time_ns[HW_READY] + analysis.threads[0].time_ns[HW_READY] >= 50 * HW_NS_PER_MS);
    hw_analysis_free(&analysis);
    hw_runtime_event(&runtime, holder, HW_EVENT_SUSPENDED);
    hw_runtime_event(&runtime, waiter, HW_EVENT_RESUMED);
    usleep(150000);
    CHECK_EQUAL(before + 1, runtime.recorder.alarms);
    CHECK(records("false", "flight"));
    hw_runtime_event(&runtime, holder, HW_EVENT_EXITED);
    hw_runtime_event(&runtime, waiter, HW_EVENT_EXITED);
    tear_down();
}

/* Seconds, of ten to a second here, until the server hangs up on a client that sends this now and then, or nothing. */
static double
hung_up_after(const char *first, const char *then)
{
    uint64_t begun = hw_now_ns();
    int fd = connected();
    bool over = send(fd, first, strlen(first), MSG_NOSIGNAL) < 0;
    while (!over && hw_now_ns() < begun + 20 * HW_NS_PER_S) {
        char bytes[16];
        usleep(5000);
        if (then) over = send(fd, then, strlen(then), MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno == EPIPE;
        else over = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) == 0;
    }
    close(fd);
    return over ? (double)(hw_now_ns() - begun) / HW_CLIENT_SECOND_NS : 0;
}

TEST(slow_clients_are_dropped)
{
    set_up();
    CHECK(hw_control_open(&control) == NULL);
    CHECK(hung_up_after("", NULL) >= 9.9, "one that says nothing");
    CHECK(hung_up_after("{", NULL) >= 1.9, "half a request");
    CHECK(hung_up_after("{", " ") >= 1.9, "one that drips");
    CHECK(hung_up_after("{", J("{'get':'stats'}\n{'get':'stats'}\n{'get':'stats'}\n{'get':'stats'}\n")) >= 1.9, "one that doesn't read");
    CHECK(says(J("{'ping':true}\n"), "ping"));
    tear_down();
}

static void
check_name(bool main, int native_id, const char *told, const char *expected)
{
    struct hw_naming naming = { .number = 7, .native_id = native_id, .main = main };
    char name[sizeof(naming.told)];
    strcpy(naming.told, told);
    hw_name_of(&naming, name, sizeof(name));
    CHECK(strcmp(expected, name) == 0, "%s, not %s", name, expected);
}

TEST(names)
{
    int here = hw_native_id();
    check_name(true, here, "", "main");
    check_name(true, 0, "boss", "boss");
    check_name(false, 0, "", "thread 7");
    check_name(false, 0, "worker", "worker");
    if (here == 0) return;
    pthread_setname_np(pthread_self(), "worker");
    check_name(false, here, "", "worker");
    check_name(false, here, "workers", "worker");
    check_name(true, here, "boss", "boss");
    pthread_setname_np(pthread_self(), "a quite long na");
    check_name(false, here, "a quite long name", "a quite long name");
    check_name(false, here, "another name", "a quite long na");
    pthread_setname_np(pthread_self(), "worker.rb:12");
    check_name(false, here, "/app/worker.rb:12", "/app/worker.rb:12");
    check_name(false, here, "/app/worker.rb:123", "worker.rb:12");
    pthread_setname_np(pthread_self(), "connection_po*");
    check_name(false, here, "/app/connection_pool.rb:12", "/app/connection_pool.rb:12");
    check_name(false, here, "/app/connections.rb:12", "connection_po*");
}

TEST(stale_files_are_swept)
{
    set_up();
    CHECK(hw_control_open(&control) == NULL);
    CHECK(says(J("{'ping':true}\n"), "ping"), "it has swept");
    pid_t child = fork();
    if (child == 0) {
        hw_control_after_fork_child(&control);
        _exit(hw_socket_open(&control) == NULL ? 0 : 1); /* its file stays */
    }
    waitpid(child, NULL, 0);
    CHECK_EQUAL(2, (uint64_t)files());
    hw_control_close(&control);
    CHECK_EQUAL(1, (uint64_t)files());
    CHECK(hw_control_open(&control) == NULL);
    CHECK(says(J("{'ping':true}\n"), "ping"));
    CHECK_EQUAL(1, (uint64_t)files());
    tear_down();
}

TESTS({ "names", names },  { "slow", slow_clients_are_dropped }, { "opens", opens_answers_and_closes }, { "everything", everything_at_once }, { "forks", forks_while_clients_ask },
      { "stale", stale_files_are_swept }, { "records", records_to_a_file }, { "bad recordings", refuses_bad_recordings },
      { "lasting wait", a_wait_that_lasts_is_dumped })
