/* Recording, seen from Ruby: start, stop, dump, GC. Names, frames and stacks are definitions.c's, marks are mark.c's.
 *
 * All methods run with the GVL. Stop and dump release it while they wait for the disk, through rb_nogvl with RB_NOGVL_INTR_FAIL:
 * that raises nothing, and when an interrupt is pending it declines and the work is done with the GVL. */
#include "binding.h"
#include "definitions.h"
#include "feed.h"

#include <errno.h>
#include <ruby/debug.h>
#include <stdlib.h>
#include <string.h>

static struct hw_recorder *const recorder = &hw_runtime.recorder;
bool hw_record_ending;

bool
hw_record_takes(void)
{
    return hw_recording(recorder) && !hw_record_ending;
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

/* Native.record_start(path or nil, flight, slots, alarm_ns, keep_ns, [ruby, headway, policy, preempt, command, quantum_ns, cpus])
 *   -> nil, or why not */
static VALUE
record_start(VALUE self, VALUE path, VALUE flight, VALUE slots, VALUE alarm_ns, VALUE keep_ns, VALUE about)
{
    if (recorder->ring.slots || hw_record_ending) return rb_utf8_str_new_cstr("a recording is under way");
    struct hw_recording *set = ALLOC(struct hw_recording);
    memset(set, 0, sizeof(*set));
    set->flight = RTEST(flight);
    set->slots = NUM2ULL(slots);
    set->alarm_ns = NUM2ULL(alarm_ns);
    set->keep_ns = NUM2ULL(keep_ns);
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
    hw_collections_attend();
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
    if (recorder->ring.slots == NULL || hw_record_ending) return Qfalse;
    hw_definitions_write();
    if (hw_record_ending) return Qfalse; /* names may be looked up by methods that let others run */
    hw_record_ending = true;
    hw_collections_attend();
    hw_feed_close(&hw_runtime);
    if (rb_nogvl(finish, NULL, NULL, NULL, RB_NOGVL_INTR_FAIL) == NULL) finish(NULL);
    hw_record_ending = false;
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
    VALUE rows = hw_definitions_gather();
    struct hw_dump dump = { .path = StringValueCStr(path), .definitions = &definitions };
    if (hw_record_ending || !hw_recorder_announce_dump(recorder)) return rb_utf8_str_new_cstr("no flight recorder runs");
    hw_definitions_encode(&definitions, rows);
    hw_feed_instant(&hw_runtime, &dump);
    if (rb_nogvl(dump_without_gvl, &dump, NULL, NULL, RB_NOGVL_INTR_FAIL) == NULL) dump_without_gvl(&dump);
    free((void *)dump.known);
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

/* -- asked -------------------------------------------------------------------------------------------------------------- */

static VALUE
recording_p(VALUE self)
{
    return hw_record_takes() ? Qtrue : Qfalse;
}

/* Native.record_state -> [flight?, claimed, dropped, bytes, folded, slots] of the recording there is, or nil */
static VALUE
record_state(VALUE self)
{
    if (recorder->ring.slots == NULL || hw_record_ending) return Qnil;
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
    hw_mark_init(headway, native);
    rb_define_singleton_method(native, "record_start", record_start, 6);
    rb_define_singleton_method(native, "record_stop", record_stop, 0);
    rb_define_singleton_method(native, "record_dump", record_dump, 1);
    rb_define_singleton_method(native, "recording?", recording_p, 0);
    rb_define_singleton_method(native, "record_state", record_state, 0);
    rb_define_singleton_method(native, "record_path", record_path, 0);
    rb_define_singleton_method(native, "record_failure", record_failure, 0);
    rb_define_singleton_method(native, "await_alarm", await_alarm, 2);
    rb_define_singleton_method(native, "alarms", alarms, 0);
}
