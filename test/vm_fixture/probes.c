/* Single questions to the VM. */

#include "vm_fixture.h"

#include <errno.h>
#ifdef HAVE_MALLINFO2
#include <malloc.h>
#endif

int rb_thread_check_trap_pending(void); /* exported by the VM, in no header */

/* Takes up to `wanted` specific keys for good; returns them, and the error that stopped it, if any. */
static VALUE
take_key(VALUE unused)
{
    return INT2NUM(rb_internal_thread_specific_key_create());
}

static VALUE
take_specific_keys(VALUE self, VALUE wanted)
{
    const VALUE taken = rb_ary_new();
    for (long left = NUM2LONG(wanted); left > 0; left--) {
        int failed = 0;
        const VALUE key = rb_protect(take_key, Qnil, &failed);
        rb_ary_push(taken, failed ? rb_errinfo() : key);
        if (failed) break;
    }
    rb_set_errinfo(Qnil);
    return taken;
}

/* The VM keeps its event hooks in a list nothing can enumerate. A hook of our
 * own, added at its head, is the way in: this is the node's layout from 3.3 on. */
struct hook_node {
    rb_internal_thread_event_callback callback;
    rb_event_flag_t event;
    void *user_data;
    struct hook_node *next;
};

static void
ignore_event(rb_event_flag_t kind, const rb_internal_thread_event_data_t *data, void *unused)
{
}

static VALUE
event_hook_count(VALUE self)
{
    rb_internal_thread_event_hook_t *ours = rb_internal_thread_add_event_hook(ignore_event, RUBY_INTERNAL_THREAD_EVENT_EXITED, NULL);
    long others = 0;
    for (const struct hook_node *node = ((const struct hook_node *)ours)->next; node; node = node->next) others++;
    rb_internal_thread_remove_event_hook(ours);
    return LONG2NUM(others);
}

static void *
mark_called(void *called)
{
    *(bool *)called = true;
    return called;
}

static void
unblock_nothing(void *unused)
{
}

/* Whether rb_nogvl with INTR_FAIL ran its function; with_interrupt makes one pending first. */
static VALUE
nogvl_runs_p(VALUE self, VALUE with_interrupt)
{
    bool called = false;
    if (RTEST(with_interrupt)) rb_thread_wakeup_alive(rb_thread_current());
    void *result = rb_nogvl(mark_called, &called, unblock_nothing, NULL, RB_NOGVL_INTR_FAIL);
    if (called != (result != NULL)) rb_raise(rb_eRuntimeError, "the result does not say whether the function ran");
    return called ? Qtrue : Qfalse;
}

static VALUE
trap_pending_p(VALUE self)
{
    return rb_thread_check_trap_pending() ? Qtrue : Qfalse;
}

/* Spins with the GVL; returns whether a trap was pending before and after. */
static VALUE
trap_pending_while_busy(VALUE self, VALUE seconds)
{
    const int before = rb_thread_check_trap_pending();
    spin_ns(ns_from_seconds(seconds));
    const int after = rb_thread_check_trap_pending();
    return rb_ary_new_from_args(2, before ? Qtrue : Qfalse, after ? Qtrue : Qfalse);
}

/* Looks at errno over and over, with and without interrupt checks between; returns how often it had changed. */
static VALUE
errno_changes(VALUE self, VALUE seconds)
{
    const uint64_t end = now_ns() + ns_from_seconds(seconds);
    long changes = 0;
    for (int value = 1; now_ns() < end; value = value % 100 + 1) {
        errno = value;
        for (volatile int i = 0; i < 2000; i++) continue;
        if (errno != value) changes++;
        errno = value;
        rb_thread_check_ints();
        if (errno != value) changes++;
    }
    return LONG2NUM(changes);
}

static long switches;

/* With the GVL, in a timer interrupt of the running thread. */
static void
on_switch(rb_event_flag_t event, VALUE data, VALUE self, ID method, VALUE class)
{
    switches++;
}

/* Counts RUBY_INTERNAL_EVENT_SWITCH during the block. */
static VALUE
count_switches(VALUE self)
{
    switches = 0;
    rb_add_event_hook(on_switch, RUBY_INTERNAL_EVENT_SWITCH, Qnil);
    rb_yield(Qnil);
    rb_remove_event_hook(on_switch);
    return LONG2NUM(switches);
}

static VALUE ended_names;

/* With the GVL, on the thread that ends, its Ruby code done. */
static void
on_thread_end(rb_event_flag_t event, VALUE data, VALUE self, ID method, VALUE class)
{
    const VALUE thread = rb_thread_current();
    if (thread == self) rb_ary_push(ended_names, rb_funcall(thread, rb_intern("name"), 0));
}

/* The names of the threads that end during the block, read in their RUBY_EVENT_THREAD_END. */
static VALUE
names_of_ended_threads(VALUE self)
{
    ended_names = rb_ary_new();
    rb_add_event_hook(on_thread_end, RUBY_EVENT_THREAD_END, Qnil);
    rb_yield(Qnil);
    rb_remove_event_hook(on_thread_end);
    return ended_names;
}

/* How many objects were made meanwhile where no Ruby was running, as what looks at allocations sees it. */
static long made_nowhere;

static void
on_new_object(VALUE tracepoint, void *unused)
{
    if (NIL_P(rb_tracearg_path(rb_tracearg_from_tracepoint(tracepoint)))) made_nowhere++;
}

static VALUE
objects_made_nowhere(VALUE self)
{
    const VALUE tracepoint = rb_tracepoint_new(Qnil, RUBY_INTERNAL_EVENT_NEWOBJ, on_new_object, NULL);
    made_nowhere = 0;
    rb_tracepoint_enable(tracepoint);
    rb_yield(Qnil);
    rb_tracepoint_disable(tracepoint);
    return LONG2NUM(made_nowhere);
}

/* Bytes that malloc has given out, in all its arenas, and that were not given back; nil where it can't be asked. */
static VALUE
malloced_bytes(VALUE self)
{
#ifdef HAVE_MALLINFO2
    const struct mallinfo2 info = mallinfo2();
    return SIZET2NUM(info.uordblks + info.hblkhd);
#else
    return Qnil;
#endif
}

void
Init_probes(VALUE module)
{
    rb_gc_register_address(&ended_names);
    rb_define_module_function(module, "take_specific_keys", take_specific_keys, 1);
    rb_define_module_function(module, "event_hook_count", event_hook_count, 0);
    rb_define_module_function(module, "nogvl_runs?", nogvl_runs_p, 1);
    rb_define_module_function(module, "trap_pending?", trap_pending_p, 0);
    rb_define_module_function(module, "trap_pending_while_busy", trap_pending_while_busy, 1);
    rb_define_module_function(module, "errno_changes", errno_changes, 1);
    rb_define_module_function(module, "count_switches", count_switches, 0);
    rb_define_module_function(module, "names_of_ended_threads", names_of_ended_threads, 0);
    rb_define_module_function(module, "objects_made_nowhere", objects_made_nowhere, 0);
    rb_define_module_function(module, "malloced_bytes", malloced_bytes, 0);
}
