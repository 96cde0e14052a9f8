/* Recording, seen from Ruby: start, stop, dump, marks, names, GC.
 *
 * All methods run with the GVL. Stop and dump release it while they wait for the disk, through rb_nogvl with RB_NOGVL_INTR_FAIL:
 * that raises nothing, and when an interrupt is pending it declines and the work is done with the GVL.
 * on_gc runs inside the collector: it reads the clock and pushes an event, no more. */
#include "binding.h"
#include "feed.h"

#include <errno.h>
#include <ruby/debug.h>
#include <ruby/ractor.h>
#include <stdlib.h>
#include <string.h>

/* Names, frames and stacks go to a stream's file this often, as far as something that may write them comes by. */
#define REFRESH_NS HW_NS_PER_S

static struct hw_recorder *const recorder = &hw_runtime.recorder;
static VALUE gc_hook;
static bool ending; /* a stop is under way without the GVL */
static struct {
    uint64_t session, refreshed_ns;
    uint32_t strings, frames, stacks; /* of this session: written so far */
} written;

/* -- definitions -------------------------------------------------------------------------------------------------------- */

static void
encode_tables(struct hw_buffer *buffer, uint32_t *strings, uint32_t *frames, uint32_t *stacks)
{
    for (; *strings < hw_strings.count; ++*strings) {
        size_t length;
        const char *bytes = hw_strings_get(&hw_strings, *strings + 1, &length);
        if (!hw_write_string(buffer, *strings + 1, bytes, length)) return;
    }
    for (; *frames < hw_stacks.frame_count; ++*frames) {
        const struct hw_blamed_frame *frame = &hw_stacks.frames[*frames];
        if (frame->method == 0 || !hw_write_frame(buffer, *frames + 1, frame->method, frame->file, frame->line)) return;
    }
    for (; *stacks < hw_stacks.stack_count; ++*stacks) {
        const struct hw_blamed_stack *stack = &hw_stacks.stacks[*stacks];
        if (!hw_write_stack(buffer, *stacks + 1, &hw_stacks.pool[stack->start], stack->depth)) return;
    }
}

/* [number, name, site] of every living thread */
static VALUE
living_threads(void)
{
    VALUE threads = rb_funcall(rb_cThread, rb_intern("list"), 0), rows = rb_ary_new();
    for (long i = 0; i < RARRAY_LEN(threads); i++) {
        VALUE thread = RARRAY_AREF(threads, i);
        struct hw_thread *record = hw_record_of(thread);
        if (record == NULL) continue;
        uint32_t number = record->number;
        rb_ary_push(rows, rb_ary_new_from_args(3, UINT2NUM(number), hw_thread_name(thread), hw_thread_site(thread)));
    }
    RB_GC_GUARD(threads);
    return rows;
}

static void
encode_threads(struct hw_buffer *buffer, VALUE rows)
{
    for (long i = 0; i < RARRAY_LEN(rows); i++) {
        VALUE row = RARRAY_AREF(rows, i), name = RARRAY_AREF(row, 1), site = RARRAY_AREF(row, 2);
        if (!hw_write_thread(buffer, NUM2UINT(RARRAY_AREF(row, 0)), RSTRING_PTR(name), (size_t)RSTRING_LEN(name), RSTRING_PTR(site),
                             (size_t)RSTRING_LEN(site))) return;
    }
    RB_GC_GUARD(rows);
}

/* Mode stream: what has become known since the last time. Where objects may be made. */
static void
write_definitions(void)
{
    VALUE rows = living_threads();
    hw_blame_resolve();
    if (written.session != recorder->session) {
        memset(&written, 0, sizeof(written));
        written.session = recorder->session;
    }
    written.refreshed_ns = hw_now_ns();
    struct hw_buffer *buffer = hw_recorder_definitions(recorder);
    encode_threads(buffer, rows);
    encode_tables(buffer, &written.strings, &written.frames, &written.stacks);
    hw_recorder_definitions_done(recorder);
}

static bool
streaming(void)
{
    return hw_recording(recorder) && !recorder->set.flight && !ending;
}

static void
refresh(uint64_t now)
{
    if (!streaming()) return;
    hw_recorder_ensure(recorder);
    if (written.session == recorder->session && now < written.refreshed_ns + REFRESH_NS) return;
    write_definitions();
}

void
hw_record_thread_end(VALUE thread, const struct hw_thread *record, VALUE name)
{
    if (!hw_recording(recorder) || ending) return;
    VALUE site = hw_thread_site(thread);
    hw_recorder_name_thread(recorder, record->number, RSTRING_PTR(name), (size_t)RSTRING_LEN(name), RSTRING_PTR(site),
                            (size_t)RSTRING_LEN(site));
    RB_GC_GUARD(site);
    refresh(hw_now_ns());
}

void
hw_record_thread_started(void)
{
    if (hw_recording(recorder)) hw_recorder_ensure(recorder);
}

/* -- GC ----------------------------------------------------------------------------------------------------------------- */

static void
on_gc(VALUE trace_point, void *unused)
{
    struct hw_thread *record = hw_record_of(rb_thread_current());
    if (record == NULL) return;
    bool starts = rb_tracearg_event_flag(rb_tracearg_from_tracepoint(trace_point)) == RUBY_INTERNAL_EVENT_GC_ENTER;
    hw_record(recorder, starts ? HW_TRACE_GC_START : HW_TRACE_GC_END, record->number, 0, hw_now_ns());
}

/* -- start and stop ----------------------------------------------------------------------------------------------------- */

static void
copy_text(char *to, size_t size, VALUE text)
{
    size_t length = (size_t)RSTRING_LEN(text);
    memcpy(to, RSTRING_PTR(text), length < size ? length : size - 1);
}

static VALUE
reason(int error)
{
    return rb_utf8_str_new_cstr(strerror(error));
}

/* Native.record_start(path or nil, flight, slots, alarm_ns, [ruby, headway, policy, preempt, command, quantum_ns, cpus])
 *   -> nil, or why not */
static VALUE
record_start(VALUE self, VALUE path, VALUE flight, VALUE slots, VALUE alarm_ns, VALUE about)
{
    if (recorder->ring.slots || ending) return rb_utf8_str_new_cstr("a recording is under way");
    struct hw_recording *set = ALLOC(struct hw_recording);
    memset(set, 0, sizeof(*set));
    set->flight = RTEST(flight);
    set->slots = NUM2ULL(slots);
    set->alarm_ns = NUM2ULL(alarm_ns);
    if (!NIL_P(path)) copy_text(set->path, sizeof(set->path), path);
    copy_text(set->header.ruby, sizeof(set->header.ruby), RARRAY_AREF(about, 0));
    copy_text(set->header.headway, sizeof(set->header.headway), RARRAY_AREF(about, 1));
    copy_text(set->header.policy, sizeof(set->header.policy), RARRAY_AREF(about, 2));
    copy_text(set->header.preempt, sizeof(set->header.preempt), RARRAY_AREF(about, 3));
    copy_text(set->header.command, sizeof(set->header.command), RARRAY_AREF(about, 4));
    set->header.quantum_ns = NUM2ULL(RARRAY_AREF(about, 5));
    set->header.cpus = NUM2UINT(RARRAY_AREF(about, 6));
    int error = hw_recorder_start(recorder, set);
    xfree(set);
    if (error) return reason(error);
    hw_feed_open(&hw_runtime);
    rb_tracepoint_enable(gc_hook);
    return Qnil;
}

static void *
finish(void *unused)
{
    hw_recorder_stop(recorder);
    return recorder;
}

/* Native.record_stop -> whether a recording was under way */
static VALUE
record_stop(VALUE self)
{
    if (recorder->ring.slots == NULL || ending) return Qfalse;
    if (streaming()) {
        hw_recorder_ensure(recorder);
        write_definitions();
    }
    if (ending) return Qfalse; /* names may be looked up by methods that let others run */
    ending = true;
    rb_tracepoint_disable(gc_hook);
    hw_feed_close(&hw_runtime);
    if (rb_nogvl(finish, NULL, NULL, NULL, RB_NOGVL_INTR_FAIL) == NULL) finish(NULL);
    ending = false;
    return Qtrue;
}

/* When the VM ends: nothing of Ruby may be used any more. */
void
hw_record_finish(void)
{
    if (recorder->ring.slots == NULL) return;
    hw_feed_close(&hw_runtime);
    hw_recorder_stop(recorder);
}

/* -- dump --------------------------------------------------------------------------------------------------------------- */

static void *
dump_without_gvl(void *arg)
{
    struct hw_dump *dump = arg;
    errno = hw_recorder_dump(recorder, dump);
    dump->error = errno;
    return dump;
}

/* Native.record_dump(path) -> [events, bytes], or why not */
static VALUE
record_dump(VALUE self, VALUE path)
{
    struct hw_buffer definitions = { NULL, 0, 0 };
    uint32_t strings = 0, frames = 0, stacks = 0;
    VALUE rows = living_threads();
    hw_blame_resolve();
    if (recorder->ring.slots == NULL || ending || !recorder->set.flight) return rb_utf8_str_new_cstr("no flight recorder runs");
    encode_threads(&definitions, rows);
    encode_tables(&definitions, &strings, &frames, &stacks);

    size_t room = hw_runtime.scheduler.living + 64;
    struct hw_known *known = malloc(room * sizeof(*known));
    struct hw_dump dump = { .path = StringValueCStr(path), .definitions = &definitions, .known = known };
    pthread_mutex_lock(&hw_runtime.lock);
    dump.now = hw_now_ns();
    dump.known_count = known ? hw_feed_copy_known(&hw_runtime, known, room) : 0;
    hw_ring_walk_start(&recorder->ring, &dump.walk);
    pthread_mutex_unlock(&hw_runtime.lock);

    hw_recorder_announce_dump(recorder);
    if (rb_nogvl(dump_without_gvl, &dump, NULL, NULL, RB_NOGVL_INTR_FAIL) == NULL) dump_without_gvl(&dump);
    free(known);
    free(definitions.bytes);
    RB_GC_GUARD(path);
    return dump.error ? reason(dump.error) : rb_ary_new_from_args(2, ULL2NUM(dump.events), ULL2NUM(dump.bytes));
}

/* -- the alarm ---------------------------------------------------------------------------------------------------------- */

struct await {
    uint64_t seen, until_ns;
};

static void *
await_without_gvl(void *arg)
{
    struct await *await = arg;
    await->seen = hw_recorder_await_alarm(recorder, await->seen, await->until_ns);
    return NULL;
}

static void
end_await(void *unused)
{
    hw_recorder_sound_alarm(recorder);
}

/* Native.await_alarm(alarms seen, seconds) -> alarms so far */
static VALUE
await_alarm(VALUE self, VALUE seen, VALUE seconds)
{
    struct await await = { NUM2ULL(seen), hw_now_ns() + (uint64_t)(NUM2DBL(seconds) * 1e9) };
    rb_thread_call_without_gvl(await_without_gvl, &await, end_await, NULL);
    return ULL2NUM(await.seen);
}

static VALUE
alarms(VALUE self)
{
    return ULL2NUM(recorder->alarms);
}

/* -- marks -------------------------------------------------------------------------------------------------------------- */

struct mark {
    uint32_t thread, name;
    uint64_t session;
};

static VALUE
text_of(VALUE name)
{
    return rb_obj_as_string(name);
}

static uint32_t
name_number(VALUE name)
{
    static uint32_t names; /* so that marks leave room for frames */
    if (SYMBOL_P(name)) name = rb_sym2str(name);
    if (!RB_TYPE_P(name, T_STRING)) {
        int state = 0;
        name = rb_protect(text_of, name, &state);
        if (state) {
            rb_set_errinfo(Qnil);
            return HW_STRING_OTHERS;
        }
    }
    if (names > HW_STRINGS_MOST / 4) return hw_strings_find(&hw_strings, RSTRING_PTR(name), (size_t)RSTRING_LEN(name));
    uint32_t before = hw_strings.count;
    uint32_t number = hw_strings_number(&hw_strings, RSTRING_PTR(name), (size_t)RSTRING_LEN(name));
    names += hw_strings.count - before;
    return number;
}

static VALUE
yield_mark(VALUE unused)
{
    return rb_yield_values(0);
}

static VALUE
end_mark(VALUE data)
{
    const struct mark *mark = (const struct mark *)data;
    if (recorder->session == mark->session) hw_record(recorder, HW_TRACE_MARK_END, mark->thread, mark->name, hw_now_ns());
    return Qnil;
}

/* Headway.mark(name) { … } -> what the block returns; Headway.mark(name) -> nil */
static VALUE
mark(VALUE self, VALUE name)
{
    bool block = rb_block_given_p();
    struct hw_thread *record = hw_recording(recorder) && !ending ? hw_record_of(rb_thread_current()) : NULL;
    if (record == NULL) return block ? rb_yield_values(0) : Qnil;

    uint64_t now = hw_now_ns();
    refresh(now);
    struct mark mark = { record->number, name_number(name), recorder->session };
    hw_record(recorder, block ? HW_TRACE_MARK_BEGIN : HW_TRACE_MARK, mark.thread, mark.name, hw_now_ns());
    return block ? rb_ensure(yield_mark, Qnil, end_mark, (VALUE)&mark) : Qnil;
}

/* -- asked -------------------------------------------------------------------------------------------------------------- */

static VALUE
recording_p(VALUE self)
{
    return hw_recording(recorder) && !ending ? Qtrue : Qfalse;
}

/* Native.record_state -> [flight?, claimed, dropped, bytes, folded, slots] of the recording there is, or nil */
static VALUE
record_state(VALUE self)
{
    if (recorder->ring.slots == NULL || ending) return Qnil;
    uint64_t dropped = hw_ring_dropped(&recorder->ring), claimed = hw_ring_claimed(&recorder->ring) - recorder->ring.floor;
    if (recorder->set.flight) claimed -= dropped < claimed ? dropped : claimed;
    return rb_ary_new_from_args(6, recorder->set.flight ? Qtrue : Qfalse, ULL2NUM(claimed), ULL2NUM(dropped), ULL2NUM(recorder->bytes),
                                ULL2NUM(hw_stacks.folded), ULL2NUM(hw_ring_slots(&recorder->ring)));
}

/* Native.record_path -> where this process writes, or nil */
static VALUE
record_path(VALUE self)
{
    char path[HW_PATH_LONGEST];
    hw_recorder_path(recorder, path);
    return path[0] ? rb_external_str_new_cstr(path) : Qnil;
}

/* Native.record_failure -> [path, why] of the write that ended a recording, or nil */
static VALUE
record_failure(VALUE self)
{
    int error = atomic_load(&recorder->failure);
    return error ? rb_ary_new_from_args(2, rb_external_str_new_cstr(recorder->failed_path), reason(error)) : Qnil;
}

void
hw_record_init(VALUE headway, VALUE native)
{
    gc_hook = rb_tracepoint_new(0, RUBY_INTERNAL_EVENT_GC_ENTER | RUBY_INTERNAL_EVENT_GC_EXIT, on_gc, NULL);
    rb_gc_register_mark_object(gc_hook);
    rb_ext_ractor_safe(true); /* other Ractors' threads have no record: there it only yields */
    rb_define_singleton_method(headway, "mark", mark, 1);
    rb_ext_ractor_safe(false);
    rb_define_singleton_method(native, "record_start", record_start, 5);
    rb_define_singleton_method(native, "record_stop", record_stop, 0);
    rb_define_singleton_method(native, "record_dump", record_dump, 1);
    rb_define_singleton_method(native, "recording?", recording_p, 0);
    rb_define_singleton_method(native, "record_state", record_state, 0);
    rb_define_singleton_method(native, "record_path", record_path, 0);
    rb_define_singleton_method(native, "record_failure", record_failure, 0);
    rb_define_singleton_method(native, "await_alarm", await_alarm, 2);
    rb_define_singleton_method(native, "alarms", alarms, 0);
}
