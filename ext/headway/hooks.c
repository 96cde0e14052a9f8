/* The VM's thread events, handed to the runtime.
 *
 * on_event may run with or without the GVL, under the VM's scheduler lock, and on another thread than the one it is about; so it
 * calls nothing that allocates through Ruby, blocks, or looks at Ruby's notion of the current thread. Nor does it look at any object, the
 * thread itself among them, at READY, the one event without the GVL. Exceptions:
 *   STARTED  runs on the creating thread, with the GVL and without the scheduler lock: records are allocated there.
 *   RESUMED  runs on the thread itself, which may therefore read its Ractor's local storage and its interrupt flags, count the frames of
 *            its stack (but for M:N threads), and trigger a job for itself.
 *
 * Threads of other Ractors have a GVL of their own and are left alone: they get no record. Where one got it all the same, it is dropped at
 * its first RESUMED. */
#include "binding.h"

#include <ruby/debug.h>
#include <ruby/ractor.h>
#include <unistd.h>

static rb_internal_thread_specific_key_t key;
static const char *key_missing;
static rb_internal_thread_event_hook_t *hook;
static pid_t hooked_in;
static _Atomic(rb_internal_thread_event_callback) guest;
static rb_ractor_local_key_t main_ractor_key;
static pthread_key_t own;  /* in a native thread: the record of the thread that it was last READY for; the VM keeps it further off */
static bool own_missing;

/* A thread that is ending isn't in Thread.list any more, but may still run the program's code (the exception's method `exception`): a
 * stop and a start meanwhile give its record back, and it may be another's by the time of its last events. */
struct hw_thread *
hw_record_of(VALUE thread)
{
    struct hw_thread *record = key_missing ? NULL : rb_internal_thread_specific_get(thread, key);
    return record && record->owner == (uintptr_t)thread ? record : NULL;
}

static struct hw_thread *
own_record(VALUE thread)
{
    struct hw_thread *record = own_missing ? NULL : pthread_getspecific(own);
    return record && record->owner == (uintptr_t)thread ? record : NULL;
}

/* While another thread compacts the heap, the page that a thread's object is in may be protected, and what the VM does about an access
 * works on the heap beside the collector: it takes no lock where there is one Ractor. During a fork nobody compacts, and our lock is held
 * for long. */
static struct hw_thread *
find_without_gvl(VALUE thread)
{
    if (atomic_load_explicit(&hw_runtime.forking, memory_order_relaxed)) return hw_record_of(thread);
    struct hw_thread *record = hw_runtime_find(&hw_runtime, (uintptr_t)thread);
    if (record && !own_missing) pthread_setspecific(own, record);
    return record;
}

static struct hw_thread *
give_record(VALUE thread, enum hw_state state, bool fresh)
{
    struct hw_thread *record = hw_runtime_add(&hw_runtime, state, fresh);
    if (record) hw_runtime_set_owner(&hw_runtime, record, (uintptr_t)thread);
    rb_internal_thread_specific_set(thread, key, record);
    return record;
}

bool
hw_in_main_ractor(void)
{
    return rb_ractor_local_storage_ptr(main_ractor_key) != NULL;
}

/* Whether the new thread is another Ractor's: its creator is then in Ractor.new, which is in Ruby; Thread.new is in C. Such a thread may
 * wait for long until it runs, for a native thread that Ractors share: it would be taken for one that waits for our GVL. */
static bool
starts_ractor(void)
{
    VALUE frame;
    return rb_profile_frames(0, 1, &frame, NULL) == 1 && hw_frame_in(frame, "<internal:ractor>");
}

static void
on_started(VALUE thread)
{
    if (!hw_in_main_ractor() || starts_ractor()) return;
    give_record(thread, HW_SUSPENDED, true);
    hw_ticker_ensure(&hw_runtime);
    hw_control_ensure(&hw_control);
    hw_record_thread_started();
    hw_stillborn_look();
}

static void
on_event(rb_event_flag_t event, const rb_internal_thread_event_data_t *data, void *unused)
{
    rb_internal_thread_event_callback also = atomic_load_explicit(&guest, memory_order_relaxed);
    if (also) also(event, data, NULL);
    if (!atomic_load_explicit(&hw_runtime.active, memory_order_acquire)) return;
    if (event == RUBY_INTERNAL_THREAD_EVENT_STARTED) {
        on_started(data->thread);
        return;
    }
    struct hw_thread *record = own_record(data->thread);
    if (record == NULL) record = event == RUBY_INTERNAL_THREAD_EVENT_READY ? find_without_gvl(data->thread) : hw_record_of(data->thread);
    if (record == NULL) return;

    switch (event) {
      case RUBY_INTERNAL_THREAD_EVENT_READY:
        hw_runtime_event(&hw_runtime, record, HW_EVENT_READY);
        break;
      case RUBY_INTERNAL_THREAD_EVENT_RESUMED:
        if (!record->ractor_known) {
            if (!hw_in_main_ractor()) {
                rb_internal_thread_specific_set(data->thread, key, NULL);
                hw_runtime_discard(&hw_runtime, record);
                return;
            }
            record->ractor_known = true;
        }
        record->called_back = rb_thread_interrupted(data->thread);
        hw_runtime_event(&hw_runtime, record, HW_EVENT_RESUMED);
        if (record->was_long_away) hw_blame_back(record);
        break;
      case RUBY_INTERNAL_THREAD_EVENT_SUSPENDED:
        hw_runtime_event(&hw_runtime, record, HW_EVENT_SUSPENDED);
        break;
      case RUBY_INTERNAL_THREAD_EVENT_EXITED:
        rb_internal_thread_specific_set(data->thread, key, NULL);
        hw_runtime_event(&hw_runtime, record, HW_EVENT_EXITED);
        break;
    }
}

/* -- names of threads --------------------------------------------------------------------------------------------------- */

static VALUE name_method, to_s_method, list_method, name_ended;

VALUE
hw_own_method(VALUE class, const char *name)
{
    VALUE method = rb_funcall(class, rb_intern("instance_method"), 1, ID2SYM(rb_intern(name)));
    rb_gc_register_mark_object(method);
    return method;
}

VALUE
hw_thread_own_name(VALUE thread)
{
    return rb_funcall(name_method, rb_intern("bind_call"), 1, thread);
}

/* "#<Thread:0x…@NAME FILE:LINE STATUS>": FILE:LINE, where the thread was created. A name may have spaces. */
static VALUE
creation_site(VALUE thread)
{
    VALUE name = hw_thread_own_name(thread);
    VALUE text = rb_funcall(to_s_method, rb_intern("bind_call"), 1, thread);
    const char *start = RSTRING_PTR(text), *end = start + RSTRING_LEN(text), *after_name = start;
    const char *at = RB_TYPE_P(name, T_STRING) ? memchr(start, '@', (size_t)(end - start)) : NULL;
    if (at && RSTRING_LEN(name) < end - at) after_name = at + 1 + RSTRING_LEN(name);
    const char *first = memchr(after_name, ' ', (size_t)(end - after_name));
    if (first == NULL) return text;
    const char *last = end;
    while (last > first && *last != ' ') last--;
    if (last <= first + 1) return text;
    return rb_str_subseq(text, first + 1 - start, last - first - 1);
}

VALUE
hw_thread_site(VALUE thread)
{
    return thread == rb_thread_main() ? rb_str_new_cstr("") : creation_site(thread);
}

static VALUE
name_or_site(VALUE thread)
{
    VALUE name = hw_thread_own_name(thread);
    if (RB_TYPE_P(name, T_STRING) && RSTRING_LEN(name) > 0) return name;
    return thread == rb_thread_main() ? rb_utf8_str_new_cstr("main") : creation_site(thread);
}

VALUE
hw_thread_name(VALUE thread)
{
    VALUE name = name_or_site(thread);
    struct hw_thread *record = hw_record_of(thread);
    if (record) hw_runtime_set_name(&hw_runtime, record, RSTRING_PTR(name), (size_t)RSTRING_LEN(name));
    return name;
}

/* On the ending thread, with the GVL. What follows wakes those that join the thread before it hands an exception (exit, or
 * abort_on_exception) on to the main thread: preempted in between, the process would end with the wrong status. */
static void
on_thread_end(rb_event_flag_t event, VALUE unused_data, VALUE unused_self, ID unused_method, VALUE unused_class)
{
    VALUE thread = rb_thread_current();
    struct hw_thread *record = hw_record_of(thread);
    if (record == NULL || !hw_in_main_ractor()) return;
    hw_runtime_set_ending(&hw_runtime, record); /* first: what follows checks interrupts */
    hw_class_blocks_end(record); /* and this before what may raise, short of memory */
    rb_proc_call_with_block(name_ended, 1, &thread, Qnil);
}

static VALUE
on_name_ended(RB_BLOCK_CALL_FUNC_ARGLIST(thread, unused))
{
    struct hw_thread *record = hw_record_of(thread);
    VALUE name = hw_thread_name(thread);
    hw_record_thread_end(thread, record, name);
    record->ended = hw_runtime_ended(&hw_runtime, RSTRING_PTR(name), (size_t)RSTRING_LEN(name));
    RB_GC_GUARD(name);
    return Qnil;
}

/* A thread that ends has no frame of Ruby's left, and who looks at allocations (ruby-prof, which crashes) takes it that each has a file
 * and a line: what allocates there is called by a proc. That one isn't sent `call`, for which the VM may allocate a cache. */
static void
name_ended_init(void)
{
    VALUE code = rb_str_new_cstr("proc { |work| proc { |thread| work.call(thread) } }");
    VALUE file = rb_str_new_cstr("<headway>"); /* as Ruby's own Ruby has: no line of the program's, wherever a stack is told */
    VALUE wrap = rb_funcall(rb_mKernel, rb_intern("eval"), 4, code, rb_const_get(rb_cObject, rb_intern("TOPLEVEL_BINDING")), file, INT2FIX(1));
    name_ended = rb_funcall(wrap, rb_intern("call"), 1, rb_proc_new(on_name_ended, Qnil));
    rb_gc_register_mark_object(name_ended);
}

/* The VM's timer: every 10 ms while threads compete, on the holder, with the GVL. The last resort of a preemption that went astray, as
 * the ticker's does when a thread was just created: the VM takes that one for the one that runs. */
static void
on_vm_tick(rb_event_flag_t event, VALUE unused_data, VALUE unused_self, ID unused_method, VALUE unused_class)
{
    if (atomic_load_explicit(&hw_runtime.active, memory_order_relaxed) && hw_in_main_ractor()) hw_trigger();
}

VALUE
hw_living_threads(void)
{
    return rb_method_call(0, NULL, list_method);
}

/* -- installing --------------------------------------------------------------------------------------------------------- */

/* Every living thread of the main Ractor gets a record; those that ended while no hooks were there lose theirs. */
static void
add_living_threads(void)
{
    VALUE threads = hw_living_threads();
    VALUE current = rb_thread_current(), main = rb_thread_main();
    for (long i = 0; i < RARRAY_LEN(threads); i++) {
        VALUE thread = RARRAY_AREF(threads, i);
        struct hw_thread *record = hw_record_of(thread);
        if (record && record->link == NULL) record = NULL; /* given back in a forked child, where Headway had stopped before */
        enum hw_state state = thread == current ? HW_RUNNING : HW_SUSPENDED;
        if (record == NULL) {
            record = give_record(thread, state, false);
            if (record == NULL) rb_memerror();
        }
        else {
            hw_runtime_revive(&hw_runtime, record, state);
        }
        record->ractor_known = true;
        record->main = thread == main;
        record->seen = true;
    }
    hw_runtime_sweep(&hw_runtime, false);
    RB_GC_GUARD(threads);
}

const char *
hw_hooks_add(void)
{
    if (key_missing) return key_missing;
    if (!hw_in_main_ractor()) return "Headway can only be started from the main Ractor";
    add_living_threads();
    if (hook == NULL) {
        hook = rb_internal_thread_add_event_hook(on_event,
            RUBY_INTERNAL_THREAD_EVENT_STARTED | RUBY_INTERNAL_THREAD_EVENT_READY | RUBY_INTERNAL_THREAD_EVENT_RESUMED |
            RUBY_INTERNAL_THREAD_EVENT_SUSPENDED | RUBY_INTERNAL_THREAD_EVENT_EXITED, NULL);
        rb_add_event_hook(on_thread_end, RUBY_EVENT_THREAD_END, Qnil);
        rb_add_event_hook(on_vm_tick, RUBY_INTERNAL_EVENT_SWITCH, Qnil);
        hooked_in = getpid();
    }
    return NULL;
}

/* In a forked child the VM's lock around its list of hooks may have been copied while somebody read it (Bug #21959): there the
 * hooks stay where they are and do nothing. */
void
hw_hooks_remove(void)
{
    if (hook == NULL || hooked_in != getpid()) return;
    rb_internal_thread_remove_event_hook(hook);
    rb_remove_event_hook(on_thread_end);
    rb_remove_event_hook(on_vm_tick);
    hook = NULL;
}

bool
hw_hooks_lend(rb_internal_thread_event_callback callback)
{
    if (hook == NULL || hooked_in == getpid()) return false;
    atomic_store(&guest, callback);
    return true;
}

static VALUE
create_key(VALUE unused)
{
    key = rb_internal_thread_specific_key_create();
    return Qnil;
}

void
hw_hooks_init(void)
{
    static const char here;
    main_ractor_key = rb_ractor_local_storage_ptr_newkey(NULL);
    rb_ractor_local_storage_ptr_set(main_ractor_key, (void *)&here);
    own_missing = pthread_key_create(&own, NULL) != 0;

    hw_stillborn_init();
    name_method = hw_own_method(rb_cThread, "name");
    to_s_method = hw_own_method(rb_cThread, "to_s");
    list_method = rb_obj_method(rb_cThread, ID2SYM(rb_intern("list")));
    rb_gc_register_mark_object(list_method);
    name_ended_init();

    /* CRuby checks the number of keys with an off-by-one and hands out one past the end of the array. */
    int state = 0;
    rb_protect(create_key, Qnil, &state);
    if (state) {
        rb_set_errinfo(Qnil);
        key_missing = "no thread-specific key is left (other tracing tools took them all)";
    }
    else if (key >= RB_INTERNAL_THREAD_SPECIFIC_KEY_MAX) {
        key_missing = "all thread-specific keys are taken by other tracing tools";
    }
}
