/* Headway.mark: spans and instants of the program's own. Costs a look at a flag when nothing records. A span that is no block, as
 * frameworks announce theirs, is begun by Native.begin_request, begin_job or begin_part and ended by Native.end_mark. */
#include "definitions.h"
#include "feed.h"

#include <ruby/ractor.h>

static struct hw_recorder *const recorder = &hw_runtime.recorder;

struct mark {
    uint32_t thread, name;
    uint8_t span;
    uint64_t session;
};

static VALUE held_back; /* {Object => :never} */

static VALUE
text_of(VALUE name)
{
    return rb_obj_as_string(name);
}

static VALUE
no_text(VALUE unused, VALUE error)
{
    return Qnil;
}

static VALUE
text_if_any(RB_BLOCK_CALL_FUNC_ARGLIST(unused, name))
{
    return rb_rescue(text_of, name, no_text, Qnil);
}

static uint32_t
name_number(VALUE name)
{
    static uint32_t names, bytes; /* so that marks leave room for frames */
    if (SYMBOL_P(name)) name = rb_sym2str(name);
    if (!RB_TYPE_P(name, T_STRING)) {
        /* What other threads raise meanwhile, a timeout say, comes after it: it would be taken for an error of to_s. */
        name = rb_block_call(rb_cThread, rb_intern("handle_interrupt"), 1, &held_back, text_if_any, name);
        if (NIL_P(name)) return HW_STRING_OTHERS;
    }
    if (names > HW_STRINGS_MOST / 4 || bytes > HW_STRINGS_BYTES / 4) {
        return hw_strings_find(&hw_strings, RSTRING_PTR(name), (size_t)RSTRING_LEN(name));
    }
    uint32_t before = hw_strings.count, bytes_before = hw_strings.used_bytes;
    uint32_t number = hw_strings_number(&hw_strings, RSTRING_PTR(name), (size_t)RSTRING_LEN(name));
    names += hw_strings.count - before;
    bytes += hw_strings.used_bytes - bytes_before;
    return number;
}

/* In a work it is a part of it, whether or not the recording has that, which may have begun in the middle of it. */
static enum hw_span
span_here(enum hw_span alone)
{
    return hw_work_under_way() ? HW_SPAN_PART : alone;
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
    if (recorder->session != mark->session) return Qnil;
    hw_feed_span(&hw_runtime, HW_TRACE_MARK_END, mark->thread, mark->name, mark->span, hw_now_ns());
    return Qnil;
}

/* Headway.mark(name) { … } -> what the block returns; Headway.mark(name) -> nil */
static VALUE
mark(VALUE self, VALUE name)
{
    bool block = rb_block_given_p();
    struct hw_thread *record = hw_record_takes() ? hw_record_of(rb_thread_current()) : NULL;
    if (record == NULL) return block ? rb_yield_values(0) : Qnil;

    uint64_t now = hw_now_ns();
    hw_definitions_refresh(now);
    struct mark mark = { record->number, name_number(name), HW_SPAN_MARK, recorder->session };
    if (!block) {
        hw_feed_aside(&hw_runtime, HW_TRACE_MARK, mark.thread, mark.name, hw_now_ns());
        return Qnil;
    }
    mark.span = span_here(HW_SPAN_MARK);
    hw_feed_span(&hw_runtime, HW_TRACE_MARK_BEGIN, mark.thread, mark.name, mark.span, hw_now_ns());
    return rb_ensure(yield_mark, Qnil, end_mark, (VALUE)&mark);
}

/* In one Integer: the recording's number (as much of it as there is room for), the thread's, what the span is, the name's. */
#define NAME_BITS 23
#define SPAN_BITS 2
#define THREAD_BITS 32
#define BITS(value, count) ((value) & ((UINT64_C(1) << (count)) - 1))

VALUE
hw_begin_span(VALUE name, enum hw_span span)
{
    struct hw_thread *record = hw_record_takes() ? hw_record_of(rb_thread_current()) : NULL;
    if (record == NULL) return Qnil;
    hw_definitions_refresh(hw_now_ns());
    uint32_t number = name_number(name);
    hw_feed_span(&hw_runtime, HW_TRACE_MARK_BEGIN, record->number, number, (uint8_t)span, hw_now_ns());
    return ULL2NUM(((recorder->session << THREAD_BITS | record->number) << SPAN_BITS | span) << NAME_BITS | number);
}

/* Native.begin_request(name) -> what end_mark takes, nil when nothing records */
static VALUE
begin_request(VALUE self, VALUE name)
{
    return hw_begin_span(name, span_here(HW_SPAN_REQUEST));
}

/* Native.begin_job(name) -> the same */
static VALUE
begin_job(VALUE self, VALUE name)
{
    return hw_begin_span(name, span_here(HW_SPAN_JOB));
}

/* Native.begin_part(name) -> the same, of a span that is no work of its own */
static VALUE
begin_part(VALUE self, VALUE name)
{
    return hw_begin_span(name, HW_SPAN_PART);
}

/* 0: nobody records, or in another recording than it was begun in. */
static uint64_t
bits_of(VALUE begun)
{
    if (NIL_P(begun) || !hw_record_takes()) return 0;
    uint64_t bits = NUM2ULL(begun), session = recorder->session << (NAME_BITS + SPAN_BITS + THREAD_BITS);
    return session == bits - BITS(bits, NAME_BITS + SPAN_BITS + THREAD_BITS) ? bits : 0;
}

static uint32_t
thread_in(uint64_t bits)
{
    return (uint32_t)BITS(bits >> (NAME_BITS + SPAN_BITS), THREAD_BITS);
}

void
hw_queued_span(VALUE begun, uint64_t queued_ns)
{
    uint64_t bits = bits_of(begun), queued_us = hw_earlier_ns(queued_ns / HW_NS_PER_US, UINT32_MAX);
    if (bits) hw_feed_aside(&hw_runtime, HW_TRACE_QUEUED, thread_in(bits), (uint32_t)queued_us, hw_now_ns());
}

void
hw_end_span(VALUE begun, VALUE name)
{
    uint64_t bits = bits_of(begun);
    if (bits == 0) return;
    uint32_t thread = thread_in(bits), begun_name = (uint32_t)BITS(bits, NAME_BITS);
    uint8_t span = (uint8_t)BITS(bits >> NAME_BITS, SPAN_BITS);
    hw_feed_span(&hw_runtime, HW_TRACE_MARK_END, thread, begun_name, span, hw_now_ns());
    uint32_t number = NIL_P(name) ? begun_name : name_number(name);
    if (number != begun_name) hw_feed_aside(&hw_runtime, HW_TRACE_MARK_NAME, thread, number, hw_now_ns());
}

/* Native.end_mark(what one of these returned, a better name or nil), on any thread */
static VALUE
end_begun_mark(VALUE self, VALUE begun, VALUE name)
{
    hw_end_span(begun, name);
    return Qnil;
}

void
hw_mark_init(VALUE headway, VALUE native)
{
    rb_gc_register_address(&held_back);
    held_back = rb_hash_new();
    rb_hash_aset(held_back, rb_cObject, ID2SYM(rb_intern("never")));
    rb_obj_freeze(held_back);
    rb_define_singleton_method(native, "begin_request", begin_request, 1);
    rb_define_singleton_method(native, "begin_job", begin_job, 1);
    rb_define_singleton_method(native, "begin_part", begin_part, 1);
    rb_define_singleton_method(native, "end_mark", end_begun_mark, 2);
    rb_ext_ractor_safe(true); /* other Ractors' threads have no record: there it only yields */
    rb_define_singleton_method(headway, "mark", mark, 1);
    rb_ext_ractor_safe(false);
}
