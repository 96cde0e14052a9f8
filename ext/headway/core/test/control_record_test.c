/* Recordings that a client starts and stops. */
#include "analysis.h"
#include "controlled.h"

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

/* -- a stream that has no end ------------------------------------------------------------------------------------------- */

static bool
is(struct hw_trace_text text, const char *words)
{
    return text.length == strlen(words) && memcmp(text.bytes, words, text.length) == 0;
}

/* As the file is now: whether the thread is called so, and what it is blamed with. */
static bool
tells(const char *path, uint32_t number, const char *name, const char *method)
{
    struct hw_analysis analysis;
    struct hw_trace_damage damage = { 0 };
    hw_analysis_init(&analysis, false);
    CHECK(hw_analysis_add(&analysis, path, UINT64_MAX, &damage), "%s", damage.what);
    const struct hw_tables *tables = &analysis.processes[0].tables;
    const struct hw_named_thread *thread = hw_tables_thread(tables, number);
    const struct hw_trace_stack *stack = hw_tables_stack(tables, 2);
    const struct hw_trace_frame *frame = stack ? hw_tables_frame(tables, stack->frames[0]) : NULL;
    bool told = thread && is(thread->name, name);
    if (told && method) told = frame && is(hw_tables_string(tables, frame->method_string), method);
    CHECK(analysis.processes[0].damage.what[0] != '\0', "it goes on");
    hw_analysis_free(&analysis);
    return told;
}

static bool
comes_to_tell(const char *path, uint32_t number, const char *name, const char *method)
{
    for (int looks = 0; looks < 2000; looks++) {
        if (tells(path, number, name, method)) return true;
        usleep(5000);
    }
    return false;
}

/* What Ruby's job does. */
static uint32_t
blame(const char *method)
{
    struct hw_blamed_frame frame = { .line = 1 };
    frame.file = hw_strings_number(&strings, "a.rb", 4);
    frame.method = hw_strings_number(&strings, method, strlen(method));
    return hw_stacks_add(&stacks, &frame, 1, 1);
}

static void
happens(struct hw_thread *thread)
{
    hw_runtime_event(&runtime, thread, HW_EVENT_READY);
    hw_runtime_event(&runtime, thread, HW_EVENT_RESUMED);
    hw_runtime_event(&runtime, thread, HW_EVENT_SUSPENDED);
}

TEST(names_are_there_though_nothing_ended)
{
    set_up();
    CHECK(hw_control_open(&control) == NULL);
    control.teller.many_to_many = true; /* all of these have the one native thread there is here */
    char path[128], options[256];
    struct hw_thread *thread = hw_runtime_add(&runtime, HW_SUSPENDED, true), *other = hw_runtime_add(&runtime, HW_SUSPENDED, true);
    snprintf(path, sizeof(path), "%s/out.headway", directory);
    snprintf(options, sizeof(options), J("{'file':'%s'}"), path);
    CHECK(records(options, "stream"));
    hw_recorder_name_thread(&runtime.recorder, other->number, "told in full", 12, "a.rb:1", 6);
    runtime.recorder.named = other->number; /* as after Ruby told of both */
    hw_runtime_set_name(&runtime, thread, "worker", 6);
    hw_runtime_set_name(&runtime, other, "told", 4);
    struct hw_thread *late = hw_runtime_add(&runtime, HW_SUSPENDED, true);
    hw_runtime_set_name(&runtime, late, "late", 4);
    happens(late);
    CHECK(comes_to_tell(path, late->number, "late", NULL));

    hw_runtime_set_name(&runtime, late, "later", 5);
    CHECK_EQUAL(2, blame("Heavy#grind"));
    happens(late);
    CHECK(comes_to_tell(path, late->number, "later", "Heavy#grind"));
    CHECK(tells(path, other->number, "told in full", NULL), "what Ruby told is left alone");

    struct hw_recorder_status before, after = { 0 };
    int looks = 0;
    do {
        before = after; /* the last events may be on their way still */
        usleep(1500000); /* in which it looks for names */
        CHECK(hw_recorder_status(&runtime.recorder, &after));
    } while (after.bytes != before.bytes && ++looks < 10);
    CHECK_EQUAL(before.bytes, after.bytes); /* nothing new */
    CHECK(records("false", "stream"));
    hw_runtime_event(&runtime, late, HW_EVENT_EXITED);
    hw_runtime_event(&runtime, other, HW_EVENT_EXITED);
    hw_runtime_event(&runtime, thread, HW_EVENT_EXITED);
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

TESTS({ "records", records_to_a_file }, { "bad recordings", refuses_bad_recordings },
      { "names without an end", names_are_there_though_nothing_ended }, { "lasting wait", a_wait_that_lasts_is_dumped })
