/* Codes, the VM's entries of methods, and what stacks call them. With the GVL of the main Ractor.
 *
 * A code that is met for the first time is looked up there and then: objects are made for its name, but no method is called. */
#include "codes.h"

#include <ruby/debug.h>
#include <stdlib.h>
#include <string.h>

/* The VM has an entry of its own for a method of an object that was extended, and that entry has the object: kept alive for the life of the
 * process it would keep all that the object knows. So of the codes of one name the first few are kept (a module's method has an entry for
 * each class that includes it), alive and where they are: rb_gc_mark pins. */
#define CODE_TABLE (HW_FRAMES_MOST * 2)
#define ALIASES 1024
#define KEPT_OF_A_NAME 4

static struct kept_code {
    VALUE code;
    struct hw_code named;
} *codes, /* kept, of number - 1 */
    aliases[ALIASES]; /* others, until the next collection: then there may be another one at that address. The object that marks has no write
                       * barrier, so that it marks when all others have, too: what is put here later outlives that collection. */
static uint32_t *by_code, code_count;
static uint8_t *kept; /* how many, by the name's hash: names that share a place share the room */

bool
hw_codes_prepare(void)
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
hw_codes_prepared(void)
{
    return codes != NULL;
}

/* -- what differs from process to process --------------------------------------------------------------------------------- */

/* What has no name of its own, such as the object whose methods config.ru defines, has another address in each process. */
static size_t
without_addresses(char *label, size_t length)
{
    char *to = label;
    for (const char *from = label, *end = label + length; from < end;) {
        if (end - from < 3 || memcmp(from, ":0x", 3) != 0) *to++ = *from++;
        else for (from += 3; from < end && ISXDIGIT(*from);) from++;
    }
    return (size_t)(to - label);
}

static size_t
without_number(const char *label, size_t length)
{
    while (length > 0 && ISDIGIT(label[length - 1])) length--;
    return length;
}

/* A template's method has a hash and an object's number at its end: _app_views_carts_show_html_erb___1234_5678 in Rails, __tilt_5678 where
 * Tilt compiles. What comes before them tells it, with its file. */
static size_t
without_numbers(const char *label, size_t length)
{
    static const char tilt[] = "__tilt_";
    size_t start = length, end = without_number(label, length);
    while (start > 0 && memchr("#. ", label[start - 1], 3) == NULL) start--;
    if (start == length || label[start] != '_' || end == length || label[end - 1] != '_') return length;
    if (end - start == sizeof(tilt) - 1 && memcmp(label + start, tilt, end - start) == 0) return end - 1;
    size_t first = without_number(label, end - 1), rest = first;
    while (label[rest - 1] == '_' && rest - 1 > start) rest--;
    return first < end - 1 && first - rest >= 2 ? rest : length;
}

static VALUE
same_everywhere(VALUE label)
{
    if (!RB_TYPE_P(label, T_STRING)) return label;
    VALUE copy = rb_str_new(RSTRING_PTR(label), RSTRING_LEN(label));
    char *bytes = RSTRING_PTR(copy);
    rb_str_set_len(copy, (long)without_numbers(bytes, without_addresses(bytes, (size_t)RSTRING_LEN(copy))));
    RB_GC_GUARD(label);
    return copy;
}

/* -- looking up ------------------------------------------------------------------------------------------------------------ */

static uint32_t
string_number(VALUE string)
{
    if (!RB_TYPE_P(string, T_STRING)) return hw_strings_number(&hw_strings, "", 0);
    return hw_strings_number(&hw_strings, RSTRING_PTR(string), (size_t)RSTRING_LEN(string));
}

static VALUE
look_up(VALUE data)
{
    struct kept_code *found = (struct kept_code *)data;
    VALUE path = rb_profile_frame_absolute_path(found->code);
    found->named.file = string_number(NIL_P(path) ? rb_profile_frame_path(found->code) : path);
    found->named.method = string_number(same_everywhere(rb_profile_frame_full_label(found->code)));
    VALUE first_line = rb_profile_frame_first_lineno(found->code);
    if (FIXNUM_P(first_line) && FIX2LONG(first_line) > 0) found->named.first_line = (uint32_t)FIX2LONG(first_line);
    return Qnil;
}

/* Calls no method, so it neither checks interrupts nor runs the program's code; what may be raised (memory is short, names in encodings
 * that don't mix) ends here. */
static struct kept_code
named(VALUE code)
{
    struct kept_code found = { .code = code, .named = { .method = string_number(Qnil), .file = HW_STRING_OTHERS } };
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

struct hw_code
hw_code_named(VALUE code)
{
    uint32_t *place = place_of_code(code);
    if (*place) return codes[*place - 1].named;
    struct kept_code *alias = &aliases[hash_of(code) % ALIASES];
    if (alias->code == code) return alias->named;
    struct kept_code found = named(code);
    uint8_t *of_name = &kept[hash_of((uint64_t)found.named.method << 32 | found.named.file) % CODE_TABLE];
    if (*of_name == KEPT_OF_A_NAME || code_count == HW_FRAMES_MOST) return (*alias = found).named;
    ++*of_name;
    codes[code_count] = found;
    *place = ++code_count;
    return found.named;
}

/* -- keeping them alive ---------------------------------------------------------------------------------------------------- */

static void
mark_codes(void *unused)
{
    for (uint32_t i = 0; i < code_count; i++) rb_gc_mark(codes[i].code);
    memset(aliases, 0, sizeof(aliases));
}

static const rb_data_type_t keeper_type = { .wrap_struct_name = "Headway::Native/codes", .function = { .dmark = mark_codes } };

void
hw_codes_init(void)
{
    rb_gc_register_mark_object(rb_data_typed_object_wrap(rb_cObject, &codes, &keeper_type));
}
