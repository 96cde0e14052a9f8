/* Recording, seen from Ruby: start, stop, dump, GC. Names, frames and stacks are definitions.c's, marks are mark.c's.
 *
 * All methods run with the GVL. Stop and dump release it while they wait for the disk, through rb_nogvl with RB_NOGVL_INTR_FAIL:
 * that raises nothing, and when an interrupt is pending it declines and the work is done with the GVL. */
#include "binding.h"
#include "definitions.h"
#include "feed.h"
#include "hash.h"

#include <errno.h>
#include <ruby/debug.h>
#include <stdlib.h>
#include <string.h>

static struct hw_recorder *const recorder = &hw_runtime.recorder;

bool
hw_record_takes(void)
{
    return hw_recording(recorder) && hw_recorder_runs(recorder);
}

/* -- start and stop ----------------------------------------------------------------------------------------------------- */

static VALUE
reason(int error)
{
    return rb_utf8_str_new_cstr(hw_recorder_reason(error));
}

/* For what names of a forked child's file and of the alarm's dumps have besides. */
#define PATH_ROOM 64

/* Native.record_start(path or nil, flight, slots, alarm_ns, keep_ns, [ruby, headway, policy, preempt, command, cpus,
                        quota_path])
 *   -> nil, or why not */
static VALUE
record_start(VALUE self, VALUE path, VALUE flight, VALUE slots, VALUE alarm_ns, VALUE keep_ns, VALUE about)
{
    if (!NIL_P(path) && (size_t)RSTRING_LEN(path) >= HW_PATH_LONGEST - PATH_ROOM) return reason(ENAMETOOLONG);
    struct hw_recording *set = ALLOC(struct hw_recording);
    memset(set, 0, sizeof(*set));
    set->flight = RTEST(flight);
    set->slots = NUM2ULL(slots);
    set->alarm_ns = NUM2ULL(alarm_ns);
    set->keep_ns = NUM2ULL(keep_ns);
    if (!NIL_P(path)) hw_copy_text(set->path, sizeof(set->path), path);
    hw_copy_text(set->header.ruby, sizeof(set->header.ruby), RARRAY_AREF(about, 0));
    hw_copy_text(set->header.headway, sizeof(set->header.headway), RARRAY_AREF(about, 1));
    hw_copy_text(set->header.policy, sizeof(set->header.policy), RARRAY_AREF(about, 2));
    hw_copy_text(set->header.preempt, sizeof(set->header.preempt), RARRAY_AREF(about, 3));
    hw_copy_text(set->header.command, sizeof(set->header.command), RARRAY_AREF(about, 4));
    set->header.cpus = NUM2UINT(RARRAY_AREF(about, 5));
    hw_copy_text(set->quota_path, sizeof(set->quota_path), RARRAY_AREF(about, 6));
    pthread_mutex_lock(&hw_runtime.lock);
    set->header.quantum_ns = hw_policy_slice_ns(&hw_runtime.scheduler.policy);
    pthread_mutex_unlock(&hw_runtime.lock);
    int error = hw_feed_start(&hw_runtime, set);
    xfree(set);
    if (error) return error == EBUSY ? rb_utf8_str_new_cstr("a recording is under way") : reason(error);
    hw_collections_attend();
    hw_loops_attend();
    return Qnil;
}

static void *
finish(void *unused)
{
    hw_recorder_stop(recorder, NULL);
    return recorder;
}

/* Native.record_stop -> whether a recording was under way */
static VALUE
record_stop(VALUE self)
{
    if (!hw_recorder_runs(recorder)) return Qfalse;
    hw_definitions_write();
    if (!hw_recorder_claim_end(recorder)) return Qfalse; /* names may be looked up by methods that let others run */
    hw_collections_attend();
    hw_feed_close(&hw_runtime);
    if (rb_nogvl(finish, NULL, NULL, NULL, RB_NOGVL_INTR_FAIL) == NULL) finish(NULL);
    return Qtrue;
}

/* Native.record_keep -> whether the recording goes on after a stop that could not dump: once */
static VALUE
record_keep(VALUE self)
{
    return hw_recorder_keep(recorder) ? Qtrue : Qfalse;
}

/* When the VM ends: nothing of Ruby may be used any more. */
void
hw_record_finish(void)
{
    if (!hw_recorder_claim_end(recorder)) return;
    hw_feed_close(&hw_runtime);
    hw_recorder_stop(recorder, NULL);
}

/* -- dump --------------------------------------------------------------------------------------------------------------- */

static void *
dump_without_gvl(void *arg)
{
    struct hw_dump *dump = arg;
    dump->error = hw_recorder_dump(recorder, dump);
    return dump;
}

/* Native.record_dump(path) -> [events, bytes], or why not */
static VALUE
record_dump(VALUE self, VALUE path)
{
    struct hw_buffer definitions = { NULL, 0, 0 };
    VALUE rows = hw_definitions_gather();
    struct hw_dump dump = { .path = StringValueCStr(path), .definitions = &definitions };
    if (!hw_recorder_announce_dump(recorder)) return rb_utf8_str_new_cstr("no flight recorder runs");
    hw_definitions_encode(&definitions, rows);
    hw_feed_instant(&hw_runtime, &dump);
    if (rb_nogvl(dump_without_gvl, &dump, NULL, NULL, RB_NOGVL_INTR_FAIL) == NULL) dump_without_gvl(&dump);
    free((void *)dump.known);
    free(definitions.bytes);
    RB_GC_GUARD(path);
    return dump.error ? reason(dump.error) : rb_ary_new_from_args(2, ULL2NUM(dump.events), ULL2NUM(dump.bytes));
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
    struct hw_recorder_status status;
    if (!hw_recorder_status(recorder, &status)) return Qnil;
    return rb_ary_new_from_args(6, status.flight ? Qtrue : Qfalse, ULL2NUM(status.events), ULL2NUM(status.dropped),
                                ULL2NUM(status.bytes), ULL2NUM(hw_stacks.folded), ULL2NUM(status.slots));
}

/* Native.record_path -> where this process writes, or nil */
static VALUE
record_path(VALUE self)
{
    struct hw_recorder_status status;
    if (!hw_recorder_status(recorder, &status)) return Qnil;
    return status.path[0] ? rb_external_str_new_cstr(status.path) : Qnil;
}

/* Native.record_next_path(path, why) -> the first of path.why-1, -2, … that isn't there. With the GVL: in a signal's handler each look by
 * Ruby's own means would cost a turn of it. */
static VALUE
record_next_path(VALUE self, VALUE path, VALUE why)
{
    char next[HW_PATH_LONGEST];
    hw_recorder_next_path(StringValueCStr(path), StringValueCStr(why), next);
    return rb_external_str_new_cstr(next);
}

/* Native.record_failure -> [path, why] of the write that ended a recording, or nil */
static VALUE
record_failure(VALUE self)
{
    int error = atomic_load(&recorder->failure);
    return error ? rb_ary_new_from_args(2, rb_external_str_new_cstr(recorder->failed_path), reason(error)) : Qnil;
}

/* Native.record_undumped -> [path, why] of the last dump that the alarm asked for and that could not be written, or nil */
static VALUE
record_undumped(VALUE self)
{
    char path[HW_PATH_LONGEST];
    pthread_mutex_lock(&recorder->alarm_lock);
    int error = atomic_load(&recorder->undumped);
    memcpy(path, recorder->undumped_path, sizeof(path));
    pthread_mutex_unlock(&recorder->alarm_lock);
    return error ? rb_ary_new_from_args(2, rb_external_str_new_cstr(path), reason(error)) : Qnil;
}

void
hw_record_init(VALUE headway, VALUE native)
{
    hw_mark_init(headway, native);
    rb_define_singleton_method(native, "record_start", record_start, 6);
    rb_define_singleton_method(native, "record_stop", record_stop, 0);
    rb_define_singleton_method(native, "record_keep", record_keep, 0);
    rb_define_singleton_method(native, "record_dump", record_dump, 1);
    rb_define_singleton_method(native, "recording?", recording_p, 0);
    rb_define_singleton_method(native, "record_state", record_state, 0);
    rb_define_singleton_method(native, "record_path", record_path, 0);
    rb_define_singleton_method(native, "record_next_path", record_next_path, 2);
    rb_define_singleton_method(native, "record_failure", record_failure, 0);
    rb_define_singleton_method(native, "record_undumped", record_undumped, 0);
}
