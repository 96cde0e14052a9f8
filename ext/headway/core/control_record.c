/* Recordings that a client starts and stops, and dumps it asks for: all of it done here, on the server thread, with what is known
 * without Ruby. The words of the errors are those of Headway::Recorder. */
#include "control.h"
#include "feed.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_LONGEST 1000
#define EVENTS_DEFAULT 1000000
#define EVENTS_MOST 100000000
#define NS_SHORTEST HW_NS_PER_MS
#define WAIT_LONGEST_NS (3600 * HW_NS_PER_S)
#define KEEP_LONGEST_NS (86400 * HW_NS_PER_S)

/* -- asked ---------------------------------------------------------------------------------------------------------------- */

static void
add_status(struct hw_text *answer, const struct hw_recorder_status *status)
{
    hw_text_key(answer, "recorder");
    hw_text_add(answer, "{\"mode\":");
    hw_text_cstring(answer, status->flight ? "flight" : "stream");
    hw_text_key(answer, "file");
    if (status->path[0]) hw_text_cstring(answer, status->path);
    else hw_text_add(answer, "null");
    const struct { const char *name; uint64_t value; } counters[] = {
        { "events", status->events }, { "dropped", status->dropped }, { "bytes", status->bytes }, { "slots", status->slots },
    };
    for (size_t i = 0; i < sizeof(counters) / sizeof(*counters); i++) {
        hw_text_key(answer, counters[i].name);
        hw_text_number(answer, counters[i].value);
    }
    hw_text_key(answer, "failure");
    if (status->failure) hw_text_cstring(answer, hw_recorder_reason(status->failure));
    else hw_text_add(answer, "null");
    hw_text_add(answer, "}");
}

void
hw_add_recorder(struct hw_control *control, struct hw_text *answer)
{
    struct hw_recorder_status status;
    if (hw_recorder_status(&control->runtime->recorder, &status)) {
        add_status(answer, &status);
        return;
    }
    hw_text_key(answer, "recorder");
    hw_text_add(answer, "null");
}

void
hw_answer_recorder(struct hw_control *control, struct hw_text *answer)
{
    hw_text_add(answer, "{");
    hw_add_recorder(control, answer);
    hw_text_add(answer, "}");
}

/* -- dump ----------------------------------------------------------------------------------------------------------------- */

static bool
absolute_path(const struct hw_json_token *token, char path[PATH_LONGEST + 1])
{
    return token->kind == HW_JSON_STRING && hw_json_unquote(token, path, PATH_LONGEST + 1) && path[0] == '/';
}

/* An empty path is for the recorder to choose, and comes back. NULL, or what went wrong. */
static const char *
dump(struct hw_control *control, char path[HW_PATH_LONGEST], char message[HW_PATH_LONGEST])
{
    struct hw_recorder *recorder = &control->runtime->recorder;
    if (!hw_recorder_announce_dump(recorder)) return "no flight recorder runs in this process";
    if (path[0] == '\0') hw_recorder_dump_path(recorder, path);
    int error = hw_teller_dump(&control->teller, path);
    if (error == 0) return NULL;
    snprintf(message, HW_PATH_LONGEST, "no dump to %.1000s: %s", path, hw_recorder_reason(error));
    return message;
}

void
hw_control_dump(struct hw_control *control, const struct hw_json_token *wanted, struct hw_text *answer)
{
    char path[HW_PATH_LONGEST] = "", message[HW_PATH_LONGEST];
    if (wanted->kind != HW_JSON_TRUE && !absolute_path(wanted, path)) {
        hw_control_refuse(answer, "dump is %s: give an absolute path of 1000 bytes at the most, or true", wanted);
        return;
    }
    const char *wrong = dump(control, path, message);
    if (wrong) {
        hw_control_error(answer, wrong);
        return;
    }
    hw_text_add(answer, "{\"dump\":");
    hw_text_cstring(answer, path);
    hw_text_add(answer, "}");
}

/* -- start ---------------------------------------------------------------------------------------------------------------- */

static bool
duration(const struct hw_json_token *value, uint64_t longest_ns, uint64_t *ns)
{
    return hw_json_billionths(value, ns) && *ns >= NS_SHORTEST && *ns <= longest_ns;
}

static bool
events(const struct hw_json_token *value, uint64_t *slots)
{
    uint64_t billionths;
    if (!hw_json_billionths(value, &billionths) || billionths % 1000000000) return false;
    *slots = billionths / 1000000000;
    return *slots >= 1 && *slots <= EVENTS_MOST;
}

struct wanted {
    struct hw_recording *set;
    bool mode_given;
};

/* NULL, or what is wrong with the value. */
static const char *
want(struct wanted *wanted, const struct hw_json_token *name, const struct hw_json_token *value)
{
    struct hw_recording *set = wanted->set;
    if (hw_json_is(name, "file")) {
        return absolute_path(value, set->path) ? NULL : "file is %s: give an absolute path of 1000 bytes at the most";
    }
    if (hw_json_is(name, "mode")) {
        wanted->mode_given = true;
        set->flight = hw_json_is(value, "flight");
        return set->flight || hw_json_is(value, "stream") ? NULL : "mode is %s: give stream or flight";
    }
    if (hw_json_is(name, "events")) return events(value, &set->slots) ? NULL : "events is %s: give 1 to 100000000";
    if (hw_json_is(name, "seconds")) return duration(value, KEEP_LONGEST_NS, &set->keep_ns) ? NULL : "seconds is %s: give 0.001 to 86400";
    if (hw_json_is(name, "wait_threshold")) {
        return duration(value, WAIT_LONGEST_NS, &set->alarm_ns) ? NULL : "wait_threshold is %s: give 0.001 to 3600";
    }
    return "";
}

static bool
want_all(struct wanted *wanted, const struct hw_json *json, int object, struct hw_text *answer)
{
    struct hw_recording *set = wanted->set;
    for (int name = object; (name = hw_json_next_name(json, object, name)) >= 0;) {
        const char *wrong = want(wanted, &json->tokens[name], &json->tokens[name + 1]);
        if (wrong == NULL) continue;
        if (wrong[0]) hw_control_refuse(answer, wrong, &json->tokens[name + 1]);
        else hw_control_refuse(answer, "nothing is named %s here: give file, mode, events, seconds or wait_threshold", &json->tokens[name]);
        return false;
    }
    if (!wanted->mode_given) set->flight = set->path[0] == '\0';
    const char *wrong = set->flight                          ? NULL
                        : set->path[0] == '\0'               ? "mode is stream: give a file, too"
                        : set->keep_ns > 0 || set->alarm_ns > 0 ? "seconds and wait_threshold are for mode flight: a stream writes everything anyway"
                                                             : NULL;
    if (wrong) hw_control_error(answer, wrong);
    return wrong == NULL;
}

static void
describe(struct hw_control *control, struct hw_recording *set)
{
    struct hw_trace_header *header = &set->header;
    struct hw_runtime *rt = control->runtime;
    pthread_mutex_lock(&rt->lock);
    strcpy(header->policy, hw_policy_labels[rt->scheduler.policy.kind]);
    strcpy(header->preempt, control->teller.many_to_many ? "none" : hw_preempt_labels[rt->signal_lost ? HW_POLL : rt->preempt]);
    header->quantum_ns = hw_policy_slice_ns(&rt->scheduler.policy);
    pthread_mutex_unlock(&rt->lock);
    strcpy(header->ruby, control->facts.ruby);
    strcpy(header->headway, control->facts.headway);
    strcpy(header->command, control->facts.command);
    header->cpus = control->facts.cpus;
    strcpy(set->quota_path, control->facts.quota_path);
}

static void
start(struct hw_control *control, const struct hw_json *json, int object, struct hw_text *answer)
{
    struct hw_recording *set = calloc(1, sizeof(*set));
    struct wanted wanted = { .set = set };
    char message[PATH_LONGEST + 200];
    if (set == NULL) {
        hw_control_error(answer, "memory is short");
        return;
    }
    set->slots = EVENTS_DEFAULT;
    set->fresh = true;
    if (want_all(&wanted, json, object, answer)) {
        describe(control, set);
        int error = atomic_load(&control->runtime->active) ? hw_feed_start(control->runtime, set) : ESRCH;
        if (error == 0) {
            control->trigger();
            hw_answer_recorder(control, answer);
        }
        else if (error == ESRCH) {
            hw_control_error(answer, "Headway is stopped in this process");
        }
        else if (error == EBUSY) {
            hw_control_error(answer, "a recording is under way in this process: stop it first");
        }
        else {
            snprintf(message, sizeof(message), "no recording%s%.1000s: %s", set->path[0] ? " to " : "", set->path, hw_recorder_reason(error));
            hw_control_error(answer, message);
        }
    }
    free(set);
}

/* -- stop ----------------------------------------------------------------------------------------------------------------- */

/* What the flight recorder holds goes to its file, if it has one, as Headway::Recorder.stop does; where it can't it is kept, once. */
static void
stop(struct hw_control *control, struct hw_text *answer)
{
    struct hw_recorder *recorder = &control->runtime->recorder;
    struct hw_recorder_status status;
    char path[HW_PATH_LONGEST], message[HW_PATH_LONGEST], kept[HW_PATH_LONGEST];
    const char *wrong = NULL;
    bool runs = hw_recorder_status(recorder, &status);
    if (runs && status.flight && status.path[0]) {
        strcpy(path, status.path);
        wrong = dump(control, path, message);
    }
    if (wrong && hw_recorder_keep(recorder)) {
        snprintf(kept, sizeof(kept), "%.2000s: the recording goes on: dump it to another file; the next stop ends it", wrong);
        hw_control_error(answer, kept);
        return;
    }
    if (!runs || !hw_recorder_claim_end(recorder)) {
        hw_control_error(answer, "nothing is recorded in this process");
        return;
    }
    hw_feed_close(control->runtime);
    if (!status.flight) hw_teller_complete(&control->teller);
    int error = hw_recorder_stop(recorder, &status);
    if (error) {
        snprintf(message, sizeof(message), "recording stopped: %.1000s: %s", recorder->failed_path, hw_recorder_reason(error));
        wrong = message;
    }
    if (wrong) {
        hw_control_error(answer, wrong);
        return;
    }
    hw_text_add(answer, "{");
    add_status(answer, &status);
    hw_text_add(answer, "}");
}

void
hw_control_record(struct hw_control *control, const struct hw_json *json, int value, struct hw_text *answer)
{
    const struct hw_json_token *token = &json->tokens[value];
    if (token->kind == HW_JSON_OBJECT) start(control, json, value, answer);
    else if (token->kind == HW_JSON_FALSE) stop(control, answer);
    else hw_control_refuse(answer, "record is %s: give an object, such as {\"file\":\"/tmp/out.headway\"}, or false", token);
}
