/* Blame: what the holder was doing while others waited, weighted by their waits.
 *
 * hw_blame_sample runs in the job (yield.c): with the GVL, on the holder. It calls rb_profile_frames, which allocates nothing and
 * checks no interrupts, and puts the stack into a table allocated beforehand. Names are looked up later, by hw_blame_resolve: in Ruby
 * methods, at the end of a thread, and in a job of its own: when the recorder's writer or a client of the control socket found one
 * missing, and at once for a flight recorder, which has no writer, and whose dump may be asked for when nobody runs who could look them
 * up. Until then and after, the table keeps the code its frames stand for alive, and where it is: rb_gc_mark pins.
 *
 * The tables of stacks and strings are changed with the GVL of the main Ractor; threads of others never get here. */
#include "binding.h"
#include "feed.h"
#include "hash.h"

#include <ruby/debug.h>
#include <stdlib.h>
#include <string.h>

struct hw_stacks hw_stacks;
struct hw_strings hw_strings;

bool
hw_blame_prepare(void)
{
    if (hw_strings.table == NULL && !hw_strings_init(&hw_strings)) return false;
    if (hw_stacks.frames == NULL && !hw_stacks_init(&hw_stacks)) return false;
    hw_stacks_reset(&hw_stacks);
    return true;
}

/* Ruby's own and other people's code, as Report::Behind has it: a method of the program that called it says more. Allocates nothing. */
static bool
is_foreign(VALUE code)
{
    static const char *const places[] = { "/gems/", "/lib/ruby/", "/rubygems/" };
    VALUE path = rb_profile_frame_path(code);
    if (!RB_TYPE_P(path, T_STRING) || RSTRING_LEN(path) == 0 || RSTRING_PTR(path)[0] == '<') return true; /* C, Ruby's own Ruby */
    const char *bytes = RSTRING_PTR(path), *end = RSTRING_END(path);
    for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
        size_t length = strlen(places[i]);
        for (const char *at = bytes; end - at >= (ptrdiff_t)length && (at = memchr(at, '/', (size_t)(end - at))) != NULL; at++) {
            if (end - at >= (ptrdiff_t)length && memcmp(at, places[i], length) == 0) return true;
        }
    }
    return false;
}

/* Leaves what is the program's own, or the leaf. */
static unsigned
cut_short(VALUE *codes, int *lines, unsigned depth)
{
    unsigned own = 0;
    for (unsigned i = 0; i < depth; i++) {
        if (is_foreign(codes[i])) continue;
        codes[own] = codes[i];
        lines[own++] = lines[i];
    }
    return own ? own : 1;
}

static uint32_t
add_stack(VALUE *codes, int *lines, unsigned depth, uint64_t weight_ns)
{
    if (depth > 0 && hw_stacks_tight(&hw_stacks)) {
        uint32_t known = hw_stacks_add_known(&hw_stacks, codes, lines, depth, weight_ns);
        if (known) return known;
        depth = cut_short(codes, lines, depth);
    }
    return hw_stacks_add(&hw_stacks, codes, lines, depth, weight_ns);
}

/* The stack of the thread that runs. With weight 0 only its number is wanted. */
static void
take_stack(const struct hw_thread *record, enum hw_trace_kind kind, uint64_t weight_ns, uint64_t now)
{
    static VALUE codes[HW_STACK_DEEPEST]; /* the GVL is held throughout */
    static int lines[HW_STACK_DEEPEST];
    int depth = rb_profile_frames(0, HW_STACK_DEEPEST, codes, lines);
    uint32_t stack = add_stack(codes, lines, depth > 0 ? (unsigned)depth : 0, weight_ns);
    if (stack) hw_feed_aside(&hw_runtime, kind, record->number, stack, now);
    hw_runtime.recorder.folded = hw_stacks.folded;
    if (stack && hw_recording(&hw_runtime.recorder) && hw_runtime.recorder.set.flight) hw_names_ask();
}

/* Whoever was blocked for long checks its interrupts on the way back, in the very call that it blocked in. */
void
hw_blame_block(struct hw_thread *record)
{
    if (!record->was_long_away) return;
    record->was_long_away = false;
    if (hw_recording(&hw_runtime.recorder)) take_stack(record, HW_TRACE_BLOCKED, 0, hw_now_ns());
}

void
hw_blame_sample(const struct hw_thread *record, uint64_t weight_ns, uint64_t now)
{
    if (weight_ns > 0) take_stack(record, HW_TRACE_BLAME, weight_ns, now);
}

/* -- names -------------------------------------------------------------------------------------------------------------- */

static uint32_t
string_number(VALUE string)
{
    if (!RB_TYPE_P(string, T_STRING)) return hw_strings_number(&hw_strings, "", 0);
    return hw_strings_number(&hw_strings, RSTRING_PTR(string), (size_t)RSTRING_LEN(string));
}

/* What has no name of its own, such as the object whose methods config.ru defines, has another address in each process. */
static VALUE
without_addresses(VALUE label)
{
    if (!RB_TYPE_P(label, T_STRING)) return label;
    VALUE copy = rb_str_new(RSTRING_PTR(label), RSTRING_LEN(label));
    char *to = RSTRING_PTR(copy);
    for (const char *from = to, *end = RSTRING_END(copy); from < end;) {
        if (end - from < 3 || memcmp(from, ":0x", 3) != 0) *to++ = *from++;
        else for (from += 3; from < end && ISXDIGIT(*from);) from++;
    }
    rb_str_set_len(copy, to - RSTRING_PTR(copy));
    RB_GC_GUARD(label);
    return copy;
}

struct names {
    VALUE code;
    uint32_t method, file;
};

static VALUE
look_up(VALUE data)
{
    struct names *names = (struct names *)data;
    VALUE path = rb_profile_frame_absolute_path(names->code);
    names->file = string_number(NIL_P(path) ? rb_profile_frame_path(names->code) : path);
    names->method = string_number(without_addresses(rb_profile_frame_full_label(names->code)));
    return Qnil;
}

/* With the GVL, where objects may be made. Calls no method, so it neither checks interrupts nor runs the program's code; what
 * may be raised (memory is short, names in encodings that don't mix) ends here. */
void
hw_blame_resolve(uint64_t until_ns)
{
    static uint32_t resolved;
    if (hw_stacks.frames == NULL) return;
    for (; resolved < hw_stacks.frame_count && hw_now_ns() < until_ns; resolved++) {
        struct names names = { (VALUE)hw_stacks.frames[resolved].code, HW_STRING_OTHERS, string_number(Qnil) };
        VALUE error = rb_errinfo();
        int state = 0;
        if (names.code) rb_protect(look_up, (VALUE)&names, &state);
        if (state) rb_set_errinfo(error);
        hw_stacks.frames[resolved].file = names.file;
        hw_stacks.frames[resolved].method = names.method;
    }
}

static VALUE
ruby_string(uint32_t number)
{
    size_t length;
    const char *bytes = hw_strings_get(&hw_strings, number, &length);
    return rb_utf8_str_new(bytes, (long)length);
}

static VALUE
frames_array(const struct hw_blamed_stack *stack)
{
    VALUE frames = rb_ary_new_capa(stack->depth);
    for (uint32_t i = 0; i < stack->depth; i++) {
        const struct hw_blamed_frame *frame = &hw_stacks.frames[hw_stacks.pool[stack->start + i] - 1];
        rb_ary_push(frames, rb_ary_new_from_args(3, ruby_string(frame->method), ruby_string(frame->file), UINT2NUM(frame->line)));
    }
    return frames;
}

static int
heavier(const void *a, const void *b)
{
    const struct hw_blamed_stack *left = &hw_stacks.stacks[*(const uint32_t *)a], *right = &hw_stacks.stacks[*(const uint32_t *)b];
    return (left->weight_ns < right->weight_ns) - (left->weight_ns > right->weight_ns);
}

/* Native.blame(most) -> [samples, weight in seconds, of that late, folded stacks, [[weight, samples, [[method, file, line], …]], …]] */
static VALUE
blame(VALUE self, VALUE most)
{
    long wanted = NUM2LONG(most);
    uint64_t samples = 0, weight_ns = 0;
    hw_blame_resolve(HW_NEVER);
    uint32_t count = hw_stacks.stack_count, used = 0;
    VALUE memory;
    uint32_t *order = ALLOCV_N(uint32_t, memory, count + 1);
    for (uint32_t i = 0; i < count; i++) {
        if (hw_stacks.stacks[i].samples == 0) continue;
        order[used++] = i;
        samples += hw_stacks.stacks[i].samples;
        weight_ns += hw_stacks.stacks[i].weight_ns;
    }
    qsort(order, used, sizeof(*order), heavier);
    VALUE rows = rb_ary_new();
    for (long i = 0; i < (long)used && i < wanted; i++) {
        struct hw_blamed_stack stack = hw_stacks.stacks[order[i]];
        rb_ary_push(rows, rb_ary_new_from_args(3, hw_seconds(stack.weight_ns), ULL2NUM(stack.samples), frames_array(&stack)));
    }
    ALLOCV_END(memory);
    pthread_mutex_lock(&hw_runtime.lock);
    uint64_t late_ns = hw_runtime.scheduler.attribution.late_ns;
    pthread_mutex_unlock(&hw_runtime.lock);
    return rb_ary_new_from_args(5, ULL2NUM(samples), hw_seconds(weight_ns), hw_seconds(late_ns),
                                ULL2NUM(hw_stacks.folded), rows);
}

/* -- keeping the code alive --------------------------------------------------------------------------------------------- */

static void
mark_codes(void *unused)
{
    for (uint32_t i = 0; i < hw_stacks.frame_count; i++) {
        if (hw_stacks.frames[i].code) rb_gc_mark((VALUE)hw_stacks.frames[i].code);
    }
}

static const rb_data_type_t keeper_type = { .wrap_struct_name = "Headway::Native/stacks", .function = { .dmark = mark_codes } };

void
hw_blame_init(VALUE native)
{
    rb_gc_register_mark_object(rb_data_typed_object_wrap(rb_cObject, &hw_stacks, &keeper_type));
    rb_define_singleton_method(native, "blame", blame, 1);
}
