/* What a trace's numbers stand for: names of threads, strings, frames, stacks. Looked up with the GVL, where objects may be made:
 * when a thread ends, at marks, at a dump and at the end; never in a hook or in the job. */
#include "definitions.h"
#include "crc32.h"
#include "encode_tables.h"

/* They go to a stream's file this often, as far as something that may write them comes by. */
#define REFRESH_NS HW_NS_PER_S

static struct hw_recorder *const recorder = &hw_runtime.recorder;

/* -- definitions -------------------------------------------------------------------------------------------------------- */

static uint32_t
sum_of_name(VALUE thread)
{
    VALUE name = hw_thread_own_name(thread);
    if (!RB_TYPE_P(name, T_STRING)) return 0;
    uint32_t sum = hw_crc32(0, RSTRING_PTR(name), (size_t)RSTRING_LEN(name));
    RB_GC_GUARD(name);
    return sum;
}

/* [thread, number, name, site, checksum of the name of its own] of every living thread; or of the news: of those that the stream
 * doesn't have, or has by another name. A process may have a thousand, of which nothing new is to be told. */
static VALUE
living_threads(bool news)
{
    VALUE threads = hw_living_threads(), rows = rb_ary_new();
    for (long i = 0; i < RARRAY_LEN(threads); i++) {
        VALUE thread = RARRAY_AREF(threads, i);
        struct hw_thread *record = hw_record_of(thread);
        if (record == NULL) continue;
        uint32_t sum = sum_of_name(thread), number = record->number;
        if (news && record->told_session == recorder->session && record->told_name == sum) continue;
        rb_ary_push(rows, rb_ary_new_from_args(5, thread, UINT2NUM(number), hw_thread_name(thread), hw_thread_site(thread),
                                               UINT2NUM(sum)));
    }
    RB_GC_GUARD(threads);
    return rows;
}

static bool
encode_thread(struct hw_buffer *buffer, VALUE row)
{
    VALUE name = RARRAY_AREF(row, 2), site = RARRAY_AREF(row, 3);
    return hw_write_thread(buffer, NUM2UINT(RARRAY_AREF(row, 1)), RSTRING_PTR(name), (size_t)RSTRING_LEN(name), RSTRING_PTR(site),
                           (size_t)RSTRING_LEN(site));
}

/* Recorder's lock held. */
static void
encode_news(struct hw_buffer *buffer, VALUE rows)
{
    for (long i = 0; i < RARRAY_LEN(rows); i++) {
        VALUE row = RARRAY_AREF(rows, i);
        uint32_t number = NUM2UINT(RARRAY_AREF(row, 1));
        if (!encode_thread(buffer, row)) return;
        if (number > recorder->named) recorder->named = number;
        struct hw_thread *record = hw_record_of(RARRAY_AREF(row, 0));
        if (record == NULL) continue; /* it has ended meanwhile */
        record->told_session = recorder->session;
        record->told_name = NUM2UINT(RARRAY_AREF(row, 4));
    }
}

VALUE
hw_definitions_gather(void)
{
    return living_threads(false);
}

void
hw_definitions_encode(struct hw_buffer *buffer, VALUE rows)
{
    struct hw_encoded none = { 0, 0, 0 };
    for (long i = 0; i < RARRAY_LEN(rows) && encode_thread(buffer, RARRAY_AREF(rows, i)); i++) {}
    hw_encode_tables(buffer, &hw_strings, &hw_stacks, &none);
    RB_GC_GUARD(rows);
}

static bool
streaming(void)
{
    return hw_record_takes() && !recorder->set.flight;
}

/* Mode stream: what has become known since the last time. Where objects may be made. The recording may have been stopped, and
 * another one started, since that was looked at. */
static void
write_definitions(void)
{
    VALUE rows = living_threads(true);
    struct hw_buffer *buffer = hw_recorder_definitions(recorder);
    if (streaming()) {
        encode_news(buffer, rows);
        hw_encode_tables(buffer, &hw_strings, &hw_stacks, &recorder->written);
        recorder->refreshed_ns = hw_now_ns();
    }
    hw_recorder_definitions_done(recorder);
    RB_GC_GUARD(rows);
}

void
hw_definitions_write(void)
{
    if (!streaming()) return;
    hw_recorder_ensure(recorder);
    write_definitions();
}

void
hw_definitions_refresh(uint64_t now)
{
    if (!streaming()) return;
    hw_recorder_ensure(recorder);
    if (now < recorder->refreshed_ns + REFRESH_NS) return;
    write_definitions();
}

void
hw_record_thread_end(VALUE thread, const struct hw_thread *record, VALUE name)
{
    if (!hw_record_takes()) return;
    VALUE site = hw_thread_site(thread);
    hw_recorder_name_thread(recorder, record->number, RSTRING_PTR(name), (size_t)RSTRING_LEN(name), RSTRING_PTR(site),
                            (size_t)RSTRING_LEN(site));
    RB_GC_GUARD(site);
    hw_definitions_refresh(hw_now_ns());
}

void
hw_record_thread_started(void)
{
    if (hw_recording(recorder)) hw_recorder_ensure(recorder);
}
