/* One request: what it asks for, and whether its values mean something. The words of the errors are those of Headway::Settings. */
#include "control.h"

#include <stdio.h>
#include <string.h>

#define QUANTUM_MIN_NS (1 * HW_NS_PER_MS)
#define QUANTUM_MAX_NS (UINT64_C(4294967) * HW_NS_PER_MS)

void
hw_control_error(struct hw_text *answer, const char *message)
{
    hw_text_add(answer, "{\"error\":");
    hw_text_cstring(answer, message);
    hw_text_add(answer, "}");
}

void
hw_control_refuse(struct hw_text *answer, const char *format, const struct hw_json_token *token)
{
    char quoted[61], message[256];
    bool cut = token->length >= sizeof(quoted) - 1;
    size_t length = cut ? sizeof(quoted) - sizeof("...") : token->length;
    memcpy(quoted, token->start, length);
    strcpy(quoted + length, cut ? "..." : "");
    snprintf(message, sizeof(message), format, quoted);
    hw_control_error(answer, message);
}

static bool
fail(struct hw_text *answer, const char *format, const struct hw_json_token *token)
{
    hw_control_refuse(answer, format, token);
    return false;
}

/* -- set ------------------------------------------------------------------------------------------------------------------ */

struct wanted {
    struct hw_policy policy;
    enum hw_preempt preempt;
};

/* The index of the label that the token is, or -1. */
static int
choice(const struct hw_json_token *token, const char *const *labels, int count)
{
    for (int i = 0; i < count; i++) {
        if (hw_json_is(token, labels[i])) return i;
    }
    return -1;
}

static bool
want(struct wanted *wanted, const struct hw_json_token *name, const struct hw_json_token *value, struct hw_text *answer)
{
    if (hw_json_is(name, "policy")) {
        int kind = choice(value, hw_policy_labels, HW_POLICY_COUNT);
        if (kind < 0) return fail(answer, "policy is %s: give fair, quantum or observe", value);
        wanted->policy.kind = (enum hw_policy_kind)kind;
    }
    else if (hw_json_is(name, "preempt")) {
        int preempt = choice(value, hw_preempt_labels, HW_PREEMPT_COUNT);
        if (preempt < 0) return fail(answer, "preempt is %s: give signal or poll", value);
        wanted->preempt = (enum hw_preempt)preempt;
    }
    else if (hw_json_is(name, "quantum_ms")) {
        uint64_t billionths;
        bool valid = hw_json_billionths(value, &billionths) && billionths / 1000 >= QUANTUM_MIN_NS && billionths / 1000 <= QUANTUM_MAX_NS &&
                     !(billionths / 1000 == QUANTUM_MAX_NS && billionths % 1000);
        if (!valid) return fail(answer, "quantum_ms is %s: give milliseconds from 1 to 4294967, such as 10", value);
        wanted->policy.quantum_ns = (billionths + 500) / 1000;
    }
    else {
        return fail(answer, "no setting is named %s: give policy, quantum_ms or preempt", name);
    }
    return true;
}

/* All of it or nothing. Lock held, so that the program's own changes come before or after. */
static void
set_locked(struct hw_control *control, const struct hw_json *json, int object, struct hw_text *answer)
{
    struct hw_runtime *rt = control->runtime;
    pthread_mutex_lock(&rt->lock);
    struct wanted wanted = { hw_policy_default, rt->preempt };
    wanted.policy.kind = rt->scheduler.policy.kind;
    wanted.policy.quantum_ns = rt->scheduler.policy.quantum_ns;
    wanted.policy.vm_slice_ns = rt->scheduler.policy.vm_slice_ns;
    bool active = atomic_load(&rt->active);
    pthread_mutex_unlock(&rt->lock);

    int names = 0;
    for (int name = object; (name = hw_json_next_name(json, object, name)) >= 0; names++) {
        if (!want(&wanted, &json->tokens[name], &json->tokens[name + 1], answer)) return;
    }
    if (names == 0) {
        hw_control_error(answer, "nothing to set: give policy, quantum_ms or preempt");
    }
    else if (!active) {
        hw_control_error(answer, "Headway is stopped in this process");
    }
    else if (control->teller.many_to_many && wanted.policy.kind != HW_OBSERVE) {
        hw_control_error(answer, "RUBY_MN_THREADS=1: Headway only observes under M:N scheduling");
    }
    else {
        hw_runtime_configure(rt, &wanted.policy, wanted.preempt);
        control->settings_changed = true;
        hw_answer_settings(control, answer);
    }
}

static void
set(struct hw_control *control, const struct hw_json *json, int object, struct hw_text *answer)
{
    pthread_mutex_lock(&control->lock);
    set_locked(control, json, object, answer);
    pthread_mutex_unlock(&control->lock);
}

/* -- what is asked ------------------------------------------------------------------------------------------------------ */

static void
get(struct hw_control *control, const struct hw_json_token *what, struct hw_text *answer)
{
    if (hw_json_is(what, "settings")) hw_answer_settings(control, answer);
    else if (hw_json_is(what, "stats")) hw_answer_stats(control, answer);
    else if (hw_json_is(what, "recorder")) hw_answer_recorder(control, answer);
    else fail(answer, "there is no %s to get: give stats, settings or recorder", what);
}

#define WHAT_TO_SEND \
    "send {\"get\":\"stats\"}, {\"get\":\"settings\"}, {\"set\":{...}}, {\"record\":{...}}, {\"dump\":true} or {\"ping\":true}"

void
hw_control_request(struct hw_control *control, const char *line, size_t length, struct hw_text *answer)
{
    struct hw_json json;
    char message[256];
    const char *wrong = hw_json_read(&json, line, length);
    if (wrong == NULL && json.tokens[0].kind != HW_JSON_OBJECT) wrong = "it is no object";
    int name = wrong ? -1 : hw_json_next_name(&json, 0, 0);
    if (wrong == NULL && (name < 0 || hw_json_next_name(&json, 0, name) >= 0)) wrong = "it must have one member";
    if (wrong) {
        snprintf(message, sizeof(message), "this is no request, %s: " WHAT_TO_SEND, wrong);
        hw_control_error(answer, message);
        return;
    }

    const struct hw_json_token *value = &json.tokens[name + 1];
    if (hw_json_is(&json.tokens[name], "get")) {
        get(control, value, answer);
    }
    else if (hw_json_is(&json.tokens[name], "dump")) {
        hw_control_dump(control, value, answer);
    }
    else if (hw_json_is(&json.tokens[name], "record")) {
        hw_control_record(control, &json, name + 1, answer);
    }
    else if (hw_json_is(&json.tokens[name], "ping")) {
        hw_answer_ping(control, answer);
    }
    else if (!hw_json_is(&json.tokens[name], "set")) {
        fail(answer, "no request is named %s: " WHAT_TO_SEND, &json.tokens[name]);
    }
    else if (value->kind != HW_JSON_OBJECT) {
        fail(answer, "set is %s: give an object, such as {\"quantum_ms\":10}", value);
    }
    else {
        set(control, &json, name + 1, answer);
    }
}
