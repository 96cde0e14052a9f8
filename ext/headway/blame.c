/* Blame: what the holder was doing while others waited, weighted by their waits.
 *
 * hw_blame_sample runs in the job (yield.c): with the GVL, on the holder. It calls rb_profile_frames, which checks no interrupts, and puts
 * the stack into a table allocated beforehand. A code that is met for the first time is looked up there and then: objects are made for its
 * name, but no method is called.
 *
 * The tables of stacks, strings and codes are changed with the GVL of the main Ractor; threads of others never get here. */
#include "binding.h"
#include "feed.h"
#include "hash.h"

#include <ruby/debug.h>
#include <stdlib.h>
#include <string.h>

struct hw_stacks hw_stacks;
struct hw_strings hw_strings;

/* Codes and what they are called. The VM has an entry of its own for a method of an object that was extended, and that entry has the object:
 * kept alive for the life of the process it would keep all that the object knows. So of the codes of one name the first few are kept
 * (a module's method has an entry for each class that includes it), alive and where they are: rb_gc_mark pins. */
#define CODE_TABLE (HW_FRAMES_MOST * 2)
#define ALIASES 1024
#define KEPT_OF_A_NAME 4

static struct code {
    VALUE code;
    uint32_t method, file, first_line; /* 0: not known */
} *codes, /* kept, of number - 1 */
    aliases[ALIASES]; /* others, until the next collection: then there may be another one at that address. The object that marks has no write
                       * barrier, so that it marks when all others have, too: what is put here later outlives that collection. */
static uint32_t *by_code, code_count;
static uint8_t *kept; /* how many, by the name's hash: names that share a place share the room */

static bool
codes_init(void)
{
    if (codes) return true;
    by_code = calloc(CODE_TABLE, sizeof(*by_code));
    kept = calloc(CODE_TABLE, sizeof(*kept));
    if (by_code && kept) codes = calloc(HW_FRAMES_MOST, sizeof(*codes));
    if (codes) return true;
    free(by_code);
    free(kept);
    return false;
}

bool
hw_blame_prepare(void)
{
    if (hw_strings.table == NULL && !hw_strings_init(&hw_strings)) return false;
    if (hw_stacks.frames == NULL && !hw_stacks_init(&hw_stacks)) return false;
    if (!codes_init()) return false;
    hw_stacks_reset(&hw_stacks);
    return true;
}

/* -- codes and their names ---------------------------------------------------------------------------------------------- */

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

static VALUE
look_up(VALUE data)
{
    struct code *found = (struct code *)data;
    VALUE path = rb_profile_frame_absolute_path(found->code);
    found->file = string_number(NIL_P(path) ? rb_profile_frame_path(found->code) : path);
    found->method = string_number(without_addresses(rb_profile_frame_full_label(found->code)));
    VALUE first_line = rb_profile_frame_first_lineno(found->code);
    if (FIXNUM_P(first_line) && FIX2LONG(first_line) > 0) found->first_line = (uint32_t)FIX2LONG(first_line);
    return Qnil;
}

/* Calls no method, so it neither checks interrupts nor runs the program's code; what may be raised (memory is short, names in encodings
 * that don't mix) ends here. */
static struct code
named(VALUE code)
{
    struct code found = { .code = code, .method = string_number(Qnil), .file = HW_STRING_OTHERS };
    VALUE error = rb_errinfo();
    int state = 0;
    rb_protect(look_up, (VALUE)&found, &state);
    if (state) rb_set_errinfo(error);
    return found;
}

static uint32_t
hash_of(uint64_t value)
{
    return (uint32_t)(value * UINT64_C(0x9e3779b97f4a7c15) >> 40);
}

/* Where its number is, or would be. */
static uint32_t *
place_of_code(VALUE code)
{
    uint32_t place = hash_of(code) % CODE_TABLE;
    while (by_code[place] && codes[by_code[place] - 1].code != code) place = (place + 1) % CODE_TABLE;
    return &by_code[place];
}

/* The code is on somebody's stack, the machine's own too, so that it stays where it is. */
static struct code
known(VALUE code)
{
    uint32_t *place = place_of_code(code);
    if (*place) return codes[*place - 1];
    struct code *alias = &aliases[hash_of(code) % ALIASES];
    if (alias->code == code) return *alias;
    struct code found = named(code);
    uint8_t *of_name = &kept[hash_of((uint64_t)found.method << 32 | found.file) % CODE_TABLE];
    if (*of_name == KEPT_OF_A_NAME || code_count == HW_FRAMES_MOST) return *alias = found;
    ++*of_name;
    codes[code_count] = found;
    *place = ++code_count;
    return found;
}

static bool
is_in(const char *bytes, size_t length, const char *place)
{
    size_t wanted = strlen(place);
    const char *end = bytes + length;
    for (const char *at = bytes; end - at >= (ptrdiff_t)wanted && (at = memchr(at, '/', (size_t)(end - at))) != NULL; at++) {
        if (end - at >= (ptrdiff_t)wanted && memcmp(at, place, wanted) == 0) return true;
    }
    return false;
}

/* Ruby's own and other people's code, and Headway's, as Report::Behind has it: a method of the program that called it says more. */
static bool
is_foreign(const struct hw_blamed_frame *frame)
{
    static const char *const places[] = { "/gems/", "/lib/ruby/", "/rubygems/" };
    size_t length;
    const char *bytes = hw_strings_get(&hw_strings, frame->file, &length);
    if (length == 0 || bytes[0] == '<' || frame->file == HW_STRING_OTHERS) return true; /* C, Ruby's own Ruby, nobody knows */
    for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
        if (is_in(bytes, length, places[i])) return true;
    }
    return is_in(bytes, length, "/lib/headway/") && !is_in(bytes, length, "/lib/headway/bench/");
}

/* Leaves what is the program's own, or the leaf. */
static unsigned
cut_short(struct hw_blamed_frame *frames, unsigned depth)
{
    unsigned own = 0;
    for (unsigned i = 0; i < depth; i++) {
        if (!is_foreign(&frames[i])) frames[own++] = frames[i];
    }
    return own ? own : 1;
}

static uint32_t
add_stack(struct hw_blamed_frame *frames, unsigned depth, uint64_t weight_ns)
{
    if (depth > 0 && hw_stacks_tight(&hw_stacks)) {
        uint32_t number = hw_stacks_add_known(&hw_stacks, frames, depth, weight_ns);
        if (number) return number;
        depth = cut_short(frames, depth);
    }
    return hw_stacks_add(&hw_stacks, frames, depth, weight_ns);
}

/* What a method evaluates is the method's to the VM, and its file the method's, but at the lines of what is evaluated: where those are before
 * the method begins, it is at the line that evaluates. */
static uint32_t
line_of(struct code code, const VALUE *found, const int *lines, int depth)
{
    if (lines[0] <= 0) return 0;
    for (int i = 0; i < depth; i++) {
        if (found[i] == found[0] && lines[i] > 0 && (uint32_t)lines[i] >= code.first_line) return (uint32_t)lines[i];
    }
    return 0;
}

/* The stack of the thread that runs. With weight 0 only its number is wanted. */
static void
take_stack(const struct hw_thread *record, enum hw_trace_kind kind, uint64_t weight_ns, uint64_t now)
{
    if (codes == NULL) return; /* memory was short at the start */
    VALUE found[HW_STACK_DEEPEST];
    int lines[HW_STACK_DEEPEST];
    struct hw_blamed_frame frames[HW_STACK_DEEPEST];
    int depth = rb_profile_frames(0, HW_STACK_DEEPEST, found, lines);
    for (int i = 0; i < depth; i++) {
        struct code code = known(found[i]);
        frames[i] = (struct hw_blamed_frame){ code.method, code.file, line_of(code, &found[i], &lines[i], depth - i) };
    }
    uint32_t stack = add_stack(frames, depth > 0 ? (unsigned)depth : 0, weight_ns);
    if (stack) hw_feed_aside(&hw_runtime, kind, record->number, stack, now);
    hw_runtime.recorder.folded = hw_stacks.folded;
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

/* -- told to Ruby ------------------------------------------------------------------------------------------------------ */

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
    for (uint32_t i = 0; i < code_count; i++) rb_gc_mark(codes[i].code);
    memset(aliases, 0, sizeof(aliases));
}

static const rb_data_type_t keeper_type = { .wrap_struct_name = "Headway::Native/stacks", .function = { .dmark = mark_codes } };

void
hw_blame_init(VALUE native)
{
    rb_gc_register_mark_object(rb_data_typed_object_wrap(rb_cObject, &hw_stacks, &keeper_type));
    rb_define_singleton_method(native, "blame", blame, 1);
}
