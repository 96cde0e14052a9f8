/* Headway::Native.snapshot: the accounts as Ruby hashes. Numbers are copied out under the runtime's lock, objects made after. */
#include "binding.h"
#include "figures.h"
#include "hash.h"
#include "machine.h"

#include <string.h>

static VALUE
durations_hash(const struct hw_spread *durations)
{
    VALUE hash = rb_hash_new();
    hw_set_number(hash, "count", durations->count);
    hw_set(hash, "p50", hw_seconds(durations->p50_ns));
    hw_set(hash, "p99", hw_seconds(durations->p99_ns));
    hw_set(hash, "max", hw_seconds(durations->max_ns));
    return hash;
}

static void
set_times(VALUE hash, const struct hw_figures *copy)
{
#define EACH(name, label) hw_set(hash, label, hw_seconds(copy->time_ns[HW_##name]));
    HW_STATES(EACH)
#undef EACH
}

static void
set_account(VALUE hash, const struct hw_figures *copy)
{
    set_times(hash, copy);
    hw_set(hash, "wait", durations_hash(&copy->wait));
    hw_set(hash, "hold", durations_hash(&copy->hold));
    VALUE switches = rb_hash_new();
    hw_set_number(switches, "voluntary", copy->voluntary);
    hw_set_number(switches, "preempted", copy->preempted);
    hw_set(hash, "switches", switches);
}

/* [[number, seconds, name of an ended thread or nil], …], most first, then the others, then nobody (number 0). */
#define WAITED_FOR_MOST 8
#define NUMBER_OF_OTHERS -1

static void
push_waited(VALUE rows, long number, uint64_t ns, const struct hw_ended *ended)
{
    if (ns == 0) return;
    rb_ary_push(rows, rb_ary_new_from_args(3, LONG2NUM(number), hw_seconds(ns), ended ? hw_cstr(ended->name) : Qnil));
}

static VALUE
waited_for(uint64_t waited_ns[HW_SLOTS], const struct hw_slot_owner owners[HW_SLOTS])
{
    VALUE rows = rb_ary_new();
    for (int row = 0; row < WAITED_FOR_MOST; row++) {
        unsigned most = HW_SLOT_OTHERS + 1;
        for (unsigned slot = most + 1; slot < HW_SLOTS; slot++) {
            if (waited_ns[slot] > waited_ns[most]) most = slot;
        }
        push_waited(rows, (long)owners[most].number, waited_ns[most], owners[most].living ? NULL : owners[most].ended);
        waited_ns[most] = 0;
    }
    for (unsigned slot = HW_SLOT_OTHERS + 1; slot < HW_SLOTS; slot++) waited_ns[HW_SLOT_OTHERS] += waited_ns[slot];
    push_waited(rows, NUMBER_OF_OTHERS, waited_ns[HW_SLOT_OTHERS], NULL);
    push_waited(rows, 0, waited_ns[HW_SLOT_NOBODY], NULL);
    return rows;
}

static VALUE
thread_hash(VALUE thread)
{
    struct hw_thread *record = hw_record_of(thread);
    if (record == NULL) return Qnil;
    pthread_mutex_lock(&hw_runtime.lock);
    uint64_t now = hw_now_ns();
    struct hw_account account = hw_account_at(record, now);
    struct hw_figures copy = hw_figures_of(&account);
    struct hw_attribution *attribution = &hw_runtime.scheduler.attribution;
    struct hw_slot_owner owners[HW_SLOTS];
    uint64_t waited_ns[HW_SLOTS];
    hw_attribution_copy(attribution, record, now, waited_ns);
    memcpy(owners, attribution->owners, sizeof(owners));
    bool shares_slot = record->waits.slot == HW_SLOT_OTHERS;
    uint64_t caused_ns = attribution->caused_ns[record->waits.slot];
    uint32_t number = record->number;
    bool batch = hw_scheduler_is_batch(&hw_runtime.scheduler, record, now);
    uint64_t quantum_ns = record->quantum_ns;
    pthread_mutex_unlock(&hw_runtime.lock);

    VALUE hash = rb_hash_new();
    hw_set(hash, "number", UINT2NUM(number));
    hw_set(hash, "batch", batch ? Qtrue : Qfalse);
    hw_set(hash, "quantum_ms", quantum_ns ? DBL2NUM((double)quantum_ns / 1e6) : Qnil);
    set_account(hash, &copy);
    hw_set(hash, "waited_for", waited_for(waited_ns, owners));
    hw_set(hash, "caused", shares_slot ? Qnil : hw_seconds(caused_ns));
    return hash;
}

static VALUE
process_hash(void)
{
    struct hw_scheduler *scheduler = &hw_runtime.scheduler;
    pthread_mutex_lock(&hw_runtime.lock);
    uint64_t now = hw_now_ns();
    struct hw_figures copy = hw_figures_of_all(scheduler, now);
    uint64_t batch_ns = hw_scheduler_batch_ns(scheduler, now), batch_waits_ns = hw_scheduler_batch_waits_ns(scheduler, now);
    unsigned living = scheduler->living;
    uint64_t preemptions = scheduler->preemptions, retries = scheduler->retries;
    uint64_t parks = hw_runtime.parks, park_timeouts = hw_runtime.park_timeouts;
    pthread_mutex_unlock(&hw_runtime.lock);

    VALUE hash = rb_hash_new();
    set_account(hash, &copy);
    hw_set(hash, "running_batch", hw_seconds(batch_ns));
    hw_set(hash, "ready_batch", hw_seconds(batch_waits_ns));
    hw_set_number(hash, "preemptions", preemptions);
    hw_set_number(hash, "parks", parks);
    hw_set_number(hash, "park_timeouts", park_timeouts);
    hw_set_number(hash, "pulls", atomic_load_explicit(&hw_runtime.pulled, memory_order_relaxed));
    hw_set_number(hash, "retries", retries);
    hw_set(hash, "threads", UINT2NUM(living));
    return hash;
}

static VALUE
ended_array(void)
{
    VALUE rows = rb_ary_new();
    for (struct hw_ended *ended = hw_runtime.ended; ended; ended = ended->next) {
        pthread_mutex_lock(&hw_runtime.lock);
        struct hw_figures copy = hw_figures_of(&ended->account);
        uint64_t threads = ended->threads, caused_ns = ended->caused_ns, untold = ended->untold;
        pthread_mutex_unlock(&hw_runtime.lock);
        if (threads == 0) continue;
        VALUE hash = rb_hash_new();
        hw_set(hash, "name", hw_cstr(ended->name));
        hw_set_number(hash, "count", threads);
        set_account(hash, &copy);
        hw_set(hash, "caused", untold ? Qnil : hw_seconds(caused_ns));
        rb_ary_push(rows, hash);
    }
    return rows;
}

/* { request: {…}, job: {…} }: those of which there were any */
static VALUE
works_hash(void)
{
    VALUE kinds = rb_hash_new();
    for (int kind = 0; kind < HW_WORK_KINDS; kind++) {
        struct hw_figures works = hw_runtime_works(&hw_runtime, (enum hw_work_kind)kind);
        if (works.wait.count == 0) continue;
        VALUE hash = rb_hash_new();
        set_times(hash, &works);
        hw_set(hash, "wait", durations_hash(&works.wait));
        hw_set(kinds, hw_work_labels[kind], hash);
    }
    return kinds;
}

/* Native.snapshot(threads) -> { wall:, process: {…}, work: {…}, threads: [{…} or nil, in the order given], ended: [{…}] } */
static VALUE
snapshot(VALUE self, VALUE threads)
{
    Check_Type(threads, T_ARRAY);
    VALUE hash = rb_hash_new();
    hw_set(hash, "wall", hw_seconds(hw_now_ns() - hw_runtime.started_ns));
    hw_set(hash, "process", process_hash());
    hw_set(hash, "work", works_hash());
    VALUE rows = rb_ary_new_capa(RARRAY_LEN(threads));
    for (long i = 0; i < RARRAY_LEN(threads); i++) rb_ary_push(rows, thread_hash(RARRAY_AREF(threads, i)));
    hw_set(hash, "threads", rows);
    hw_set(hash, "ended", ended_array());
    return hash;
}

bool
hw_read_account(VALUE thread, uint64_t now, uint64_t *time_ns)
{
    struct hw_thread *record = atomic_load(&hw_runtime.active) ? hw_record_of(thread) : NULL;
    if (record == NULL) return false;
    pthread_mutex_lock(&hw_runtime.lock);
    struct hw_account account = hw_account_at(record, now);
    pthread_mutex_unlock(&hw_runtime.lock);
    memcpy(time_ns, account.time_ns, sizeof(account.time_ns));
    return true;
}

VALUE
hw_account_array(const uint64_t *time_ns)
{
    return rb_ary_new_from_args(3, hw_seconds(time_ns[HW_RUNNING]), hw_seconds(time_ns[HW_READY]), hw_seconds(time_ns[HW_SUSPENDED]));
}

/* Native.account -> what hw_account_array makes of the current thread since the start; nil: it isn't tracked. One array and
 * nothing else is made: requests and queries ask twice each. */
static VALUE
account(VALUE self)
{
    uint64_t time_ns[HW_STATE_COUNT];
    if (!hw_read_account(rb_thread_current(), hw_now_ns(), time_ns)) return Qnil;
    return hw_account_array(time_ns);
}

static void *
measure_floor(void *floor)
{
    return hw_machine_measure(150, floor) ? floor : NULL;
}

/* Native.floor -> [signal_s, wake_s], or nil when it can't be measured: while preemption by signal is on, for one */
static VALUE
machine_floor(VALUE self)
{
    struct hw_machine_floor floor;
    if (hw_signal_installed() || rb_nogvl(measure_floor, &floor, NULL, NULL, 0) == NULL) return Qnil;
    return rb_assoc_new(hw_seconds(floor.signal_ns), hw_seconds(floor.wake_ns));
}

void
hw_stats_init(VALUE native)
{
    rb_define_singleton_method(native, "account", account, 0);
    rb_define_singleton_method(native, "floor", machine_floor, 0);
    rb_define_singleton_method(native, "snapshot", snapshot, 1);
}
