/* Records thread events: which, of which thread, seen on which native thread.
 *
 * The hook neither allocates nor calls Ruby. Threads are known by a number
 * kept in their specific storage: the ones alive get theirs when recording
 * starts, new ones in their STARTED event. */

#include "vm_fixture.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

enum { EVENTS_MAX = 1 << 20, THREADS_MAX = 1 << 14 };

struct event {
    rb_event_flag_t kind;
    long thread;
    int native_thread;
    uint64_t at_ns;
    bool main_ractor; /* meaningful for RESUMED only */
};

static struct event events[EVENTS_MAX];
static atomic_long events_seen;
static atomic_long threads_seen;
static _Atomic pthread_t pthread_of[THREADS_MAX];
static atomic_long watched_thread; /* its READY triggers the job; 0 = none */

static bool key_taken;
static rb_internal_thread_specific_key_t number_key;
static rb_ractor_local_key_t main_ractor_key;
static rb_internal_thread_event_hook_t *hook;

static const struct rb_ractor_local_storage_type main_ractor_type = {NULL, NULL};
static char in_main_ractor;

/* Any thread, with or without the GVL, perhaps under the VM's lock. */
long
thread_number(VALUE thread)
{
    return key_taken ? (long)(intptr_t)rb_internal_thread_specific_get(thread, number_key) : 0;
}

static void
number_thread(VALUE thread)
{
    rb_internal_thread_specific_set(thread, number_key, (void *)(intptr_t)(1 + atomic_fetch_add(&threads_seen, 1)));
}

/* Same contract as thread_number. */
static void
on_event(rb_event_flag_t kind, const rb_internal_thread_event_data_t *data, void *unused)
{
    if (kind == (RUBY_INTERNAL_THREAD_EVENT_STARTED)) number_thread(data->thread);

    const long thread = thread_number(data->thread);
    const bool resumed = kind == (RUBY_INTERNAL_THREAD_EVENT_RESUMED);
    if (resumed && thread < THREADS_MAX) atomic_store(&pthread_of[thread], pthread_self());

    const long index = atomic_fetch_add(&events_seen, 1);
    if (index < EVENTS_MAX) {
        events[index] = (struct event){
            .kind = kind,
            .thread = thread,
            .native_thread = gettid(),
            .at_ns = now_ns(),
            .main_ractor = resumed && rb_ractor_local_storage_ptr(main_ractor_key) == &in_main_ractor,
        };
    }
    if (kind == (RUBY_INTERNAL_THREAD_EVENT_READY) && thread && thread == atomic_load(&watched_thread)) trigger_job();
}

static VALUE
start_recording(VALUE self)
{
    if (hook) rb_raise(rb_eRuntimeError, "recording already");
    if (!key_taken) {
        number_key = rb_internal_thread_specific_key_create();
        main_ractor_key = rb_ractor_local_storage_ptr_newkey(&main_ractor_type);
        rb_ractor_local_storage_ptr_set(main_ractor_key, &in_main_ractor);
        key_taken = true;
    }
    VALUE threads = rb_funcall(rb_cThread, rb_intern("list"), 0);
    for (long i = 0; i < RARRAY_LEN(threads); i++) {
        const VALUE thread = rb_ary_entry(threads, i);
        if (!thread_number(thread)) number_thread(thread);
    }
    RB_GC_GUARD(threads);
    atomic_store(&pthread_of[thread_number(rb_thread_current())], pthread_self());
    atomic_store(&events_seen, 0);
    hook = rb_internal_thread_add_event_hook(on_event, RUBY_INTERNAL_THREAD_EVENT_MASK, NULL);
    return Qnil;
}

static const char *
event_name(rb_event_flag_t kind)
{
    switch (kind) {
      case RUBY_INTERNAL_THREAD_EVENT_STARTED: return "started";
      case RUBY_INTERNAL_THREAD_EVENT_READY: return "ready";
      case RUBY_INTERNAL_THREAD_EVENT_RESUMED: return "resumed";
      case RUBY_INTERNAL_THREAD_EVENT_SUSPENDED: return "suspended";
      case RUBY_INTERNAL_THREAD_EVENT_EXITED: return "exited";
    }
    return "unknown";
}

/* Returns [[kind, thread number, native thread id, nanoseconds, in the main Ractor], ...] */
static VALUE
stop_recording(VALUE self)
{
    if (!hook) rb_raise(rb_eRuntimeError, "not recording");
    rb_internal_thread_remove_event_hook(hook);
    hook = NULL;
    atomic_store(&watched_thread, 0);

    const long seen = atomic_load(&events_seen);
    if (seen > EVENTS_MAX) rb_raise(rb_eRuntimeError, "%ld events, room for %d", seen, EVENTS_MAX);
    const VALUE rows = rb_ary_new_capa(seen);
    for (long i = 0; i < seen; i++) {
        const struct event *e = &events[i];
        rb_ary_push(rows, rb_ary_new_from_args(5, ID2SYM(rb_intern(event_name(e->kind))), LONG2NUM(e->thread),
                                               INT2NUM(e->native_thread), ULL2NUM(e->at_ns),
                                               e->main_ractor ? Qtrue : Qfalse));
    }
    return rows;
}

static VALUE
number_of(VALUE self, VALUE thread)
{
    return LONG2NUM(thread_number(thread));
}

/* The next READY of this thread, and each after it, triggers the job from the hook. */
static VALUE
trigger_when_ready(VALUE self, VALUE thread)
{
    atomic_store(&watched_thread, NIL_P(thread) ? 0 : thread_number(thread));
    return Qnil;
}

/* The thread must have been RESUMED at least once while recording. */
static VALUE
signal_thread(VALUE self, VALUE thread, VALUE signal_number)
{
    const pthread_t target = atomic_load(&pthread_of[thread_number(thread)]);
    if (!target) rb_raise(rb_eArgError, "this thread has not been seen running");
    return INT2NUM(pthread_kill(target, NUM2INT(signal_number)));
}

void
Init_events(VALUE module)
{
    rb_define_module_function(module, "start_recording", start_recording, 0);
    rb_define_module_function(module, "stop_recording", stop_recording, 0);
    rb_define_module_function(module, "number_of", number_of, 1);
    rb_define_module_function(module, "trigger_when_ready", trigger_when_ready, 1);
    rb_define_module_function(module, "signal_thread", signal_thread, 2);
}
