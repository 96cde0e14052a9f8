/* The control socket on real threads: clients ask and set while threads change state, recordings come and go, and processes fork. For
 * the sanitizers above all. */
#include "controlled.h"

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
        unsigned long codes[2] = { 1, 2 };
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

static bool
dumped(void)
{
    char dump[128];
    snprintf(dump, sizeof(dump), "%s/dump", directory);
    return access(dump, F_OK) == 0;
}

/* The flight recorder comes and goes while dumps are asked for; but it stays for the first one, as under valgrind it would take luck to
 * be there when somebody asks. */
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
        do usleep(2000);
        while (!dumped() && hw_recorder_runs(&runtime.recorder) && !atomic_load(&over));
        end_recording();
        usleep(500);
    }
    return NULL;
}

/* Counts the answers. */
static void *
ask_all(void *answers)
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
    char answer[256];
    for (unsigned i = 0; !atomic_load(&over); i++) {
        if (ask(control.path, requests[i % 13], answer, sizeof(answer))) atomic_fetch_add((atomic_uint *)answers, 1);
        if (i % 13 != 10) continue;
        char *end = strchr(path, '"');
        *end = '\0';
        unlink(path); /* it must not be there yet */
        *end = '"';
    }
    return NULL;
}

static bool
all_had_answers(atomic_uint *answers, int count)
{
    bool all = true;
    for (int i = 0; i < count; i++) all &= atomic_load(&answers[i]) > 0;
    return all;
}

TEST(everything_at_once)
{
    set_up();
    atomic_store(&over, false);
    CHECK(hw_control_open(&control) == NULL);
    void *(*const bodies[])(void *) = { blame, record, change_states, change_states, mark, ask_all, ask_all, ask_all, ask_all };
    pthread_t threads[9];
    atomic_uint answers[4] = { 0, 0, 0, 0 };
    for (int i = 0; i < 9; i++) pthread_create(&threads[i], NULL, bodies[i], i < 5 ? NULL : &answers[i - 5]);
    usleep(1000 * test_effort(800));
    for (int looks = 0; looks < 2000 && !(dumped() && all_had_answers(answers, 4)); looks++) usleep(10000);
    atomic_store(&over, true);
    for (int i = 0; i < 9; i++) pthread_join(threads[i], NULL);
    CHECK(all_had_answers(answers, 4));
    CHECK(dumped(), "a dump was made");
    end_recording();
    tear_down();
}

TEST(forks_while_clients_ask)
{
    set_up();
    atomic_store(&over, false);
    CHECK(hw_control_open(&control) == NULL);
    pthread_t client;
    atomic_uint answers = 0;
    pthread_create(&client, NULL, ask_all, &answers);
    for (unsigned round = test_effort(40); round; round--) {
        hw_control_before_fork(&control);
        hw_runtime_before_fork(&runtime);
        pid_t child = fork();
        if (child == 0) {
            test_forgive_leaks_of_fork();
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

TESTS({ "everything", everything_at_once }, { "forks", forks_while_clients_ask })
