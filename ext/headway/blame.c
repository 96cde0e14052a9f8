/* Blame: what the holder was doing while others waited, weighted by their waits.
 *
 * hw_blame_sample runs in the job (yield.c): with the GVL, on the holder. It calls rb_profile_frames, which checks no interrupts, and puts
 * the stack into a table allocated beforehand. So does hw_blame_block, for where its thread was blocked; hw_blame_back, before it, runs in the
 * hook of who got the GVL, and only counts.
 *
 * The tables of stacks and strings are changed with the GVL of the main Ractor; threads of others never get here. */
#include "codes.h"
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
    if (!hw_codes_prepare()) return false;
    hw_stacks_reset(&hw_stacks);
    return true;
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
line_of(struct hw_code code, const VALUE *found, const int *lines, int depth)
{
    if (lines[0] <= 0) return 0;
    for (int i = 0; i < depth; i++) {
        if (found[i] == found[0] && lines[i] > 0 && (uint32_t)lines[i] >= code.first_line) return (uint32_t)lines[i];
    }
    return 0;
}

/* The stack of the thread that runs, but for so many frames nearest to the leaf. With weight 0 only its number is wanted. */
static void
take_stack(const struct hw_thread *record, enum hw_trace_kind kind, int above, uint64_t weight_ns, uint64_t now)
{
    if (!hw_codes_prepared()) return; /* memory was short at the start */
    VALUE whole[HW_STACK_DEEPEST], *found = whole;
    int all_lines[HW_STACK_DEEPEST], *lines = all_lines;
    struct hw_blamed_frame frames[HW_STACK_DEEPEST];
    int depth = rb_profile_frames(0, HW_STACK_DEEPEST, whole, all_lines);
    if (above > 0 && above < depth) {
        found += above;
        lines += above;
        depth -= above;
    }
    for (int i = 0; i < depth; i++) {
        struct hw_code code = hw_code_named(found[i]);
        frames[i] = (struct hw_blamed_frame){ code.method, code.file, line_of(code, &found[i], &lines[i], depth - i) };
    }
    uint32_t stack = add_stack(frames, depth > 0 ? (unsigned)depth : 0, weight_ns);
    if (stack) hw_feed_aside(&hw_runtime, kind, record->number, stack, now);
    hw_runtime.recorder.folded = hw_stacks.folded;
}

/* As far as it is counted: frameworks nest deep, but room on a stack may be short. */
static int
depth_of_stack(void)
{
    VALUE found[256];
    return rb_profile_frames(0, sizeof(found) / sizeof(*found), found, NULL);
}

/* No object is made or kept: the VM's scheduler is locked, and by the time of the job the heap may have been compacted. Where Ruby threads
 * share a native one (M:N) the VM may not have said yet that it is this one that runs there: whose stack that is nobody knows. */
void
hw_blame_back(struct hw_thread *record)
{
    if (!hw_control.teller.many_to_many) record->back_depth = (uint16_t)depth_of_stack();
}

/* Whoever was blocked for long checks its interrupts on the way back, in the very call that it blocked in, or in what that one calls first:
 * native code may have a callback, and check none before. */
void
hw_blame_block(struct hw_thread *record)
{
    if (!record->was_long_away) return;
    record->was_long_away = false;
    if (!hw_recording(&hw_runtime.recorder)) return;
    take_stack(record, HW_TRACE_BLOCKED, depth_of_stack() - record->back_depth, 0, hw_now_ns());
}

void
hw_blame_sample(const struct hw_thread *record, uint64_t weight_ns, uint64_t now)
{
    if (weight_ns > 0) take_stack(record, HW_TRACE_BLAME, 0, weight_ns, now);
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

void
hw_blame_init(VALUE native)
{
    hw_codes_init();
    rb_define_singleton_method(native, "blame", blame, 1);
}
