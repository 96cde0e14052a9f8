/* Headway::Native::Traces::Holds: who held the GVL when, from the lanes of a process; and lanes as packets of a Perfetto trace. With
 * the GVL: a million segments take a tenth of a second. */
#include "trace.h"

#include "encode_perfetto.h"

#include <stdlib.h>

#define ENOUGH_BYTES (1024 * 1024)

/* -- holds ---------------------------------------------------------------------------------------------------------------- */

static void
free_holds(void *data)
{
    hw_holds_free(data);
    xfree(data);
}

static const rb_data_type_t holds_type = { .wrap_struct_name = "Headway::Native::Traces::Holds",
                                           .function = { .dfree = free_holds }, .flags = RUBY_TYPED_FREE_IMMEDIATELY };

static VALUE
allocate(VALUE class)
{
    struct hw_holds *holds;
    return TypedData_Make_Struct(class, struct hw_holds, &holds_type, holds);
}

static struct hw_holds *
holds_of(VALUE self)
{
    return rb_check_typeddata(self, &holds_type);
}

/* Holds.new([[thread's id, lane's bytes, unit it starts at], ...]) */
static VALUE
initialize(VALUE self, VALUE lanes)
{
    struct hw_holds *holds = holds_of(self);
    hw_holds_free(holds);
    Check_Type(lanes, T_ARRAY);
    for (long i = 0; i < RARRAY_LEN(lanes); i++) {
        VALUE lane = rb_ary_entry(lanes, i), bytes = rb_ary_entry(lane, 1);
        uint32_t owner = NUM2UINT(rb_ary_entry(lane, 0));
        uint64_t start_unit = NUM2ULL(rb_ary_entry(lane, 2));
        StringValue(bytes);
        if (owner > HW_ANALYSIS_THREADS_MOST) rb_raise(rb_eRangeError, "thread %u", owner);
        if (!hw_holds_add(holds, owner, (const uint8_t *)RSTRING_PTR(bytes), (size_t)RSTRING_LEN(bytes), start_unit)) rb_memerror();
    }
    if (!hw_holds_ready(holds)) rb_memerror();
    return self;
}

static struct hw_holds *
ready_holds(VALUE self)
{
    struct hw_holds *holds = holds_of(self);
    if (!holds->sorted) rb_raise(rb_eArgError, "uninitialized holds");
    return holds;
}

/* holds.during(from, to) -> [[thread's id or nil, units], ...], the longest first */
static VALUE
during(VALUE self, VALUE from, VALUE to)
{
    struct hw_holds *holds = ready_holds(self);
    uint64_t first = NUM2ULL(from), last = NUM2ULL(to);
    size_t count = first < last ? hw_holds_during(holds, first, last) : 0;
    VALUE rows = rb_ary_new_capa((long)count);
    for (size_t i = 0; i < count; i++) {
        struct hw_share share = holds->shares[i];
        rb_ary_push(rows, rb_assoc_new(share.owner == HW_NOBODY_HOLDS ? Qnil : UINT2NUM(share.owner), ULL2NUM(share.units)));
    }
    return rows;
}

/* -- Perfetto ------------------------------------------------------------------------------------------------------------- */

static struct hw_piece
piece(VALUE string)
{
    Check_Type(string, T_STRING);
    return (struct hw_piece){ (const uint8_t *)RSTRING_PTR(string), (size_t)RSTRING_LEN(string) };
}

#define PIECES (HW_LANE_ABSENT + 4)

struct encoding {
    VALUE strings[PIECES]; /* on the stack, or a compaction moves what the pieces point into */
    struct hw_perfetto pieces;
    struct hw_lane_walk walk;
    struct hw_holds *holds;
    struct hw_buffer buffer;
};

static VALUE
encode(VALUE data)
{
    struct encoding *encoding = (struct encoding *)data;
    for (bool more = true; more;) {
        if (!hw_encode_perfetto(&encoding->buffer, &encoding->pieces, &encoding->walk, encoding->holds, ENOUGH_BYTES, &more)) rb_memerror();
        rb_yield(rb_str_new((const char *)encoding->buffer.bytes, (long)encoding->buffer.length));
        encoding->buffer.length = 0;
    }
    return Qnil;
}

static VALUE
end_encoding(VALUE data)
{
    free(((struct encoding *)data)->buffer.bytes);
    return Qnil;
}

/* holds.perfetto(lane's bytes, unit it starts at, [three beginnings, ending, before_event, end_head, title], entries, entries' ends)
 * { |bytes| }. Entries: of each thread, then of nobody, in one string; their ends packed as "L*": a call for each of many threads must
 * not go through all of them. See encode_perfetto.h. All of them stay as they are meanwhile: frozen. */
static VALUE
perfetto(VALUE self, VALUE bytes, VALUE start_unit, VALUE given, VALUE entries, VALUE ends)
{
    Check_Type(bytes, T_STRING);
    Check_Type(given, T_ARRAY);
    Check_Type(entries, T_STRING);
    Check_Type(ends, T_STRING);
    bytes = rb_str_new_frozen(bytes);
    entries = rb_str_new_frozen(entries);
    ends = rb_str_new_frozen(ends);
    long count = RSTRING_LEN(ends) / (long)sizeof(uint32_t);
    if (RARRAY_LEN(given) != PIECES || count < 1) rb_raise(rb_eArgError, "pieces are missing");
    struct encoding encoding = { .holds = ready_holds(self) };
    struct hw_perfetto *pieces = &encoding.pieces;
    struct hw_piece *const places[] = { &pieces->beginning[0], &pieces->beginning[1], &pieces->beginning[2], &pieces->ending,
                                        &pieces->before_event, &pieces->end_head, &pieces->title };
    for (long i = 0; i < PIECES; i++) *places[i] = piece(encoding.strings[i] = RARRAY_AREF(given, i));
    pieces->entries = piece(entries);
    pieces->entry_ends = (const uint8_t *)RSTRING_PTR(ends);
    pieces->threads = (uint32_t)(count - 1);
    encoding.walk = hw_lane_walk((const uint8_t *)RSTRING_PTR(bytes), (size_t)RSTRING_LEN(bytes), NUM2ULL(start_unit));
    rb_ensure(encode, (VALUE)&encoding, end_encoding, (VALUE)&encoding);
    RB_GC_GUARD(bytes);
    RB_GC_GUARD(entries);
    RB_GC_GUARD(ends);
    return Qnil;
}

void
hw_trace_lanes_init(VALUE traces)
{
    VALUE holds = rb_define_class_under(traces, "Holds", rb_cObject);
    rb_define_alloc_func(holds, allocate);
    rb_define_method(holds, "initialize", initialize, 1);
    rb_define_method(holds, "during", during, 2);
    rb_define_method(holds, "perfetto", perfetto, 5);
}
