/* The control socket on real threads: clients ask and set while threads change state and recordings come and go. For the sanitizers above
 * all. */
#include "controlled.h"

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

/* As the binding's job does. */
static void *
blame(void *unused)
{
    (void)unused;
    for (uint32_t line = 1; !atomic_load(&over); line = line % 3000 + 1) {
        char name[32];
        snprintf(name, sizeof(name), "method%u", line);
        uint32_t file = hw_strings_number(&strings, "file", 4), method = hw_strings_number(&strings, name, strlen(name));
        hw_stacks_add(&stacks, (const struct hw_blamed_frame[]){ { method, file, line }, { method, file, 1 } }, 2, 1000);
        usleep(100);
    }
    return NULL;
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

TESTS({ "everything", everything_at_once })
