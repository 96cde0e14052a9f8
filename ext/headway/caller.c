/* Who called what runs? A scheduler's hook declines by returning Qundef, which only C understands: it must never reach Ruby code. And in some
 * callers nobody must be switched away. */
#include "binding.h"

#include <ruby/debug.h>
#include <string.h>

static bool
equals(VALUE string, const char *wanted)
{
    size_t length = strlen(wanted);
    return RB_TYPE_P(string, T_STRING) && (size_t)RSTRING_LEN(string) == length && memcmp(RSTRING_PTR(string), wanted, length) == 0;
}

bool
hw_frame_named(VALUE frame, const char *wanted)
{
    return equals(rb_profile_frame_method_name(frame), wanted);
}

bool
hw_frame_in(VALUE frame, const char *file)
{
    return equals(rb_profile_frame_path(frame), file); /* of C: nil */
}

static bool
named_one_of(VALUE frame, const char *const *names)
{
    for (; *names; names++)
        if (hw_frame_named(frame, *names)) return true;
    return false;
}

/* Methods in C that call others for Ruby code, and return what those return. */
static bool
calls_for_ruby(VALUE frame)
{
    static const char *const names[] = { "call", "bind_call", "public_send", "===", "[]", NULL };
    return named_one_of(frame, names);
}

/* Not by skipping a frame: Ruby 3.3 skips none in C. Methods of IO that the VM has in Ruby, as IO#readline, call C without a frame of its
 * own. */
bool
hw_called_by_c(VALUE *caller)
{
    VALUE frames[2] = { Qnil, Qnil };
    int lines[2] = { 0, 1 }; /* of a frame in C: 0 */
    bool by_c = rb_profile_frames(0, 2, frames, lines) == 2 &&
                (lines[1] == 0 ? !calls_for_ruby(frames[1]) : hw_frame_in(frames[1], "<internal:io>"));
    if (caller) *caller = frames[1];
    return by_c;
}

/* Methods that wake all who wait, the VM's own. */
static bool
wakes_many(VALUE frame, int line)
{
    static const char *const names[] = { "broadcast", "close", "clear", "max=", NULL };
    return (line == 0 || hw_frame_in(frame, "<internal:thread_sync>")) && named_one_of(frame, names);
}

#define UNBLOCK_DEEPEST 16

/* The VM goes through a list of those that wait, on their stacks, and calls a fiber scheduler's `unblock` for each, with the next one in hand:
 * should that leave meanwhile, as its time is up or who was woken first stops it, the VM crashes (thread_sync.c, sync_wakeup). Once
 * `unblock` has returned the VM looks for interrupts again, before it calls the next: then who wakes them is on top. */
bool
hw_amid_wakeups(void)
{
    VALUE frames[UNBLOCK_DEEPEST];
    int lines[UNBLOCK_DEEPEST];
    int count = rb_profile_frames(0, UNBLOCK_DEEPEST, frames, lines);
    if (count > 0 && wakes_many(frames[0], lines[0])) return true;
    for (int i = 1; i < count; i++)
        if (wakes_many(frames[i], lines[i]) && hw_frame_named(frames[i - 1], "unblock")) return true;
    return false;
}
