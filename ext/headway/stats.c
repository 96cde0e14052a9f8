/* Headway::Native.snapshot: the accounts as Ruby hashes. Numbers are copied out under the runtime's lock, objects made after. */
#include "binding.h"
#include "machine.h"

#include <string.h>

struct durations {
    uint64_t count, p50_ns, p99_ns, max_ns;
};

struct account_copy {
    uint64_t time_ns[HW_STATE_COUNT], voluntary, preempted;
    struct durations wait, hold;
};

static struct durations
copy_histogram(const struct hw_histogram *histogram)
{
    return (struct durations){
        .count = histogram->count,
        .p50_ns = hw_histogram_percentile(histogram, 50),
        .p99_ns = hw_histogram_percentile(histogram, 99),
        .max_ns = histogram->max_ns,
    };
}

static struct account_copy
copy_account(const struct hw_account *account)
{
    struct account_copy copy = {
        .voluntary = account->voluntary,
        .preempted = account->preempted,
        .wait = copy_histogram(&account->wait),
        .hold = copy_histogram(&account->hold),
    };
    for (int state = 0; state < HW_STATE_COUNT; state++) copy.time_ns[state] = account->time_ns[state];
    return copy;
}

static void
set(VALUE hash, const char *name, VALUE value)
{
    rb_hash_aset(hash, ID2SYM(rb_intern(name)), value);
}

static VALUE
seconds(uint64_t ns)
{
    return DBL2NUM((double)ns / 1e9);
}

static VALUE
durations_hash(const struct durations *durations)
{
    VALUE hash = rb_hash_new();
    set(hash, "count", ULL2NUM(durations->count));
    set(hash, "p50", seconds(durations->p50_ns));
    set(hash, "p99", seconds(durations->p99_ns));
    set(hash, "max", seconds(durations->max_ns));
    return hash;
}

static void
set_account(VALUE hash, const struct account_copy *copy)
{
#define EACH(name, label) set(hash, label, seconds(copy->time_ns[HW_##name]));
    HW_STATES(EACH)
#undef EACH
    set(hash, "wait", durations_hash(&copy->wait));
    set(hash, "hold", durations_hash(&copy->hold));
    VALUE switches = rb_hash_new();
    set(switches, "voluntary", ULL2NUM(copy->voluntary));
    set(switches, "preempted", ULL2NUM(copy->preempted));
    set(hash, "switches", switches);
}

/* [[number, seconds, name of an ended thread or nil], …], most first, then the others, then nobody (number 0). */
#define WAITED_FOR_MOST 8
#define NUMBER_OF_OTHERS -1

static void
push_waited(VALUE rows, long number, uint64_t ns, const struct hw_ended *ended)
{
    if (ns == 0) return;
    rb_ary_push(rows, rb_ary_new_from_args(3, LONG2NUM(number), seconds(ns), ended ? rb_utf8_str_new_cstr(ended->name) : Qnil));
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
    struct account_copy copy = copy_account(&account);
    struct hw_attribution *attribution = &hw_runtime.scheduler.attribution;
    struct hw_slot_owner owners[HW_SLOTS];
    uint64_t waited_ns[HW_SLOTS];
    hw_attribution_copy(attribution, record, now, waited_ns);
    memcpy(owners, attribution->owners, sizeof(owners));
    bool shares_slot = record->waits.slot == HW_SLOT_OTHERS;
    uint64_t caused_ns = attribution->caused_ns[record->waits.slot];
    uint32_t number = record->number;
    bool batch = record->batch;
    uint64_t quantum_ns = record->quantum_ns;
    pthread_mutex_unlock(&hw_runtime.lock);

    VALUE hash = rb_hash_new();
    set(hash, "number", UINT2NUM(number));
    set(hash, "batch", batch ? Qtrue : Qfalse);
    set(hash, "quantum_ms", quantum_ns ? DBL2NUM((double)quantum_ns / 1e6) : Qnil);
    set_account(hash, &copy);
    set(hash, "waited_for", waited_for(waited_ns, owners));
    set(hash, "caused", shares_slot ? Qnil : seconds(caused_ns));
    return hash;
}

static VALUE
process_hash(void)
{
    struct hw_scheduler *scheduler = &hw_runtime.scheduler;
    pthread_mutex_lock(&hw_runtime.lock);
    uint64_t now = hw_now_ns();
    struct account_copy copy = copy_account(&scheduler->account);
    for (struct hw_thread *thread = scheduler->threads; thread; thread = thread->next) {
        if (now > thread->since_ns) copy.time_ns[thread->state] += now - thread->since_ns;
    }
    unsigned living = scheduler->living;
    uint64_t preemptions = scheduler->preemptions, retries = scheduler->retries;
    uint64_t parks = hw_runtime.parks, park_timeouts = hw_runtime.park_timeouts;
    pthread_mutex_unlock(&hw_runtime.lock);

    VALUE hash = rb_hash_new();
    set_account(hash, &copy);
    set(hash, "preemptions", ULL2NUM(preemptions));
    set(hash, "parks", ULL2NUM(parks));
    set(hash, "park_timeouts", ULL2NUM(park_timeouts));
    set(hash, "retries", ULL2NUM(retries));
    set(hash, "threads", UINT2NUM(living));
    return hash;
}

static VALUE
ended_array(void)
{
    VALUE rows = rb_ary_new();
    for (struct hw_ended *ended = hw_runtime.ended; ended; ended = ended->next) {
        pthread_mutex_lock(&hw_runtime.lock);
        struct account_copy copy = copy_account(&ended->account);
        uint64_t threads = ended->threads, caused_ns = ended->caused_ns;
        pthread_mutex_unlock(&hw_runtime.lock);
        if (threads == 0) continue;
        VALUE hash = rb_hash_new();
        set(hash, "name", rb_utf8_str_new_cstr(ended->name));
        set(hash, "count", ULL2NUM(threads));
        set_account(hash, &copy);
        set(hash, "caused", seconds(caused_ns));
        rb_ary_push(rows, hash);
    }
    return rows;
}

/* Native.snapshot(threads) -> { wall:, process: {…}, threads: [{…} or nil, in the order given], ended: [{…}] } */
static VALUE
snapshot(VALUE self, VALUE threads)
{
    Check_Type(threads, T_ARRAY);
    VALUE hash = rb_hash_new();
    set(hash, "wall", seconds(hw_now_ns() - hw_runtime.started_ns));
    set(hash, "process", process_hash());
    VALUE rows = rb_ary_new_capa(RARRAY_LEN(threads));
    for (long i = 0; i < RARRAY_LEN(threads); i++) rb_ary_push(rows, thread_hash(RARRAY_AREF(threads, i)));
    set(hash, "threads", rows);
    set(hash, "ended", ended_array());
    return hash;
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
    return rb_assoc_new(seconds(floor.signal_ns), seconds(floor.wake_ns));
}

void
hw_stats_init(VALUE native)
{
    rb_define_singleton_method(native, "floor", machine_floor, 0);
    rb_define_singleton_method(native, "snapshot", snapshot, 1);
}
