/* Headway::Native::Workload: what threads did in traces, and simulations of it, for lib/headway/predict/. The GVL is free meanwhile:
 * no Ruby object is touched. */
#include "trace.h"

#include "simulator.h"

#include <ruby/thread.h>

static void
free_workload(void *data)
{
    hw_workload_free(data);
    xfree(data);
}

static const rb_data_type_t workload_type = { .wrap_struct_name = "Headway::Native::Workload",
                                              .function = { .dfree = free_workload }, .flags = RUBY_TYPED_FREE_IMMEDIATELY };

static struct hw_workload *
workload_of(VALUE self)
{
    return rb_check_typeddata(self, &workload_type);
}

/* [count, total, p50, p95, p99] in nanoseconds */
static VALUE
durations(const struct hw_durations *durations)
{
    static const double percentiles[] = { 50, 95, 99 };
    return hw_trace_durations(durations, percentiles, 3);
}

/* -- reading ------------------------------------------------------------------------------------------------------------- */

static void *
read_file(void *data)
{
    struct hw_trace_pass *pass = data;
    pass->whole = hw_workload_read(pass->into, pass->path, pass->size, &pass->damage);
    return NULL;
}

static void
cancel_reading(void *data)
{
    struct hw_trace_pass *pass = data;
    struct hw_workload *workload = pass->into;
    atomic_store(&workload->cancelled, true);
}

/* Workload.read([[path, bytes that count], ...]) -> a Workload; or [the file's place, offset, what is wrong] when one can't be read. */
static VALUE
read_workload(VALUE class, VALUE files)
{
    struct hw_workload *workload;
    VALUE self = TypedData_Make_Struct(class, struct hw_workload, &workload_type, workload);
    struct hw_trace_pass pass = { .into = workload };
    long place;
    for (;;) {
        hw_workload_init(workload);
        bool whole = hw_trace_passes(&pass, read_file, cancel_reading, files, &place) && hw_workload_finish(workload);
        if (!atomic_load(&workload->cancelled)) {
            if (whole) return self;
            return hw_trace_failure(&pass.damage, place);
        }
        rb_thread_check_ints(); /* raises, or it was an interrupt to go on after: then from the start */
        hw_workload_free(workload);
    }
}

/* -- facts --------------------------------------------------------------------------------------------------------------- */

/* What processes of several machines have in common is the wall's clock, if any. */
static uint64_t
wall_clock_ns(const struct hw_trace_header *header, uint64_t at_ns)
{
    return header->wall_ns + (at_ns - header->clock_ns);
}

static VALUE
process_hash(const struct hw_workload_process *process)
{
    VALUE hash = rb_hash_new();
    hw_set(hash, "pid", UINT2NUM(process->header.pid));
    hw_set(hash, "ruby", hw_cstr(process->header.ruby));
    hw_set(hash, "preempt", hw_cstr(process->header.preempt));
    hw_set(hash, "policy", hw_cstr(process->header.policy));
    hw_set(hash, "command", hw_cstr(process->header.command));
    hw_set_number(hash, "quantum", process->header.quantum_ns);
    hw_set(hash, "cpus", UINT2NUM(process->header.cpus));
    hw_set_number(hash, "events", process->events);
    hw_set_number(hash, "dropped", process->dropped);
    hw_set_number(hash, "start", wall_clock_ns(&process->header, process->first_event_ns));
    hw_set_number(hash, "wall", process->wall_ns);
    hw_set_number(hash, "running", process->running_ns);
    hw_set_number(hash, "off_cpu", process->off_cpu_ns);
    hw_set_number(hash, "requests", process->requests);
    hw_set_number(hash, "busy", process->busy_ns);
    hw_set(hash, "under_way", UINT2NUM(process->under_way));
    hw_set_number(hash, "requests_start", wall_clock_ns(&process->header, process->first_ns));
    hw_set_number(hash, "requests_span", process->last_ns - process->first_ns);
    hw_set_number(hash, "jobs", process->jobs);
    hw_set(hash, "workers", UINT2NUM(process->workers));
    hw_set(hash, "idle", UINT2NUM(process->idle));
    hw_set(hash, "most_at_once", UINT2NUM(process->most_at_once));
    hw_set(hash, "damage", process->damage.what[0] ? hw_cstr(process->damage.what) : Qnil);
    return hash;
}

static VALUE
class_hash(const struct hw_request_class *class)
{
    VALUE hash = rb_hash_new();
    hw_set(hash, "name", hw_text(class->name, class->name_length));
    hw_set_number(hash, "count", class->count);
#define EACH(name, label) hw_set_number(hash, label, class->time_ns[HW_STEP_##name]);
    HW_STEPS(EACH)
#undef EACH
    hw_set_number(hash, "wait", class->wait_ns);
    hw_set_number(hash, "after", class->after_ns);
    hw_set(hash, "latency", durations(&class->latency));
    return hash;
}

static VALUE
track_hash(const struct hw_track *track)
{
    VALUE hash = rb_hash_new();
    hw_set(hash, "class", UINT2NUM(track->class));
    hw_set(hash, "process", UINT2NUM(track->process));
    hw_set(hash, "cycles", UINT2NUM(track->requests));
    hw_set_number(hash, "running", track->running_ns);
    hw_set_number(hash, "lived", track->lived_ns);
    return hash;
}

/* facts -> Hash, times in nanoseconds */
static VALUE
facts(VALUE self)
{
    const struct hw_workload *workload = workload_of(self);
    VALUE hash = rb_hash_new(), processes = rb_ary_new(), classes = rb_ary_new(), tracks = rb_ary_new();
    double ratio, crowd_ratio;
    bool tells = hw_workload_delays_by_load(workload, &ratio, &crowd_ratio);
    for (uint32_t i = 0; i < workload->process_count; i++) rb_ary_push(processes, process_hash(&workload->processes[i]));
    for (uint32_t i = 0; i < workload->class_count; i++) rb_ary_push(classes, class_hash(&workload->classes[i]));
    for (uint32_t i = 0; i < workload->track_count; i++) {
        if (workload->tracks[i].requests > 0) rb_ary_push(tracks, track_hash(&workload->tracks[i]));
    }
    hw_set(hash, "processes", processes);
    hw_set(hash, "classes", classes);
    hw_set(hash, "tracks", tracks);
    hw_set(hash, "marked", UINT2NUM(workload->marked));
    hw_set(hash, "typical_process", UINT2NUM(workload->typical_process));
    hw_set(hash, "latency", durations(&workload->latency));
    hw_set_number(hash, "forgotten", workload->forgotten_ns);
    hw_set(hash, "queued", rb_assoc_new(UINT2NUM(workload->queued), ULL2NUM(workload->queued_ns)));
    hw_set(hash, "handover", durations(&workload->handover));
    hw_set(hash, "delays_by_load", tells ? rb_assoc_new(DBL2NUM(ratio), DBL2NUM(crowd_ratio)) : Qnil);
    return hash;
}

/* -- simulating ---------------------------------------------------------------------------------------------------------- */

struct simulating {
    struct hw_simulation set;
    struct hw_simulated simulated;
    atomic_bool cancelled;
    bool whole;
};

static void *
simulate_it(void *data)
{
    struct simulating *simulating = data;
    simulating->whole = hw_simulate(&simulating->set, &simulating->simulated, &simulating->cancelled);
    return NULL;
}

static void
cancel_simulating(void *data)
{
    atomic_store(&((struct simulating *)data)->cancelled, true);
}

static VALUE
simulated_hash(const struct hw_simulated *out)
{
    VALUE hash = rb_hash_new(), classes = rb_ary_new();
    for (uint32_t i = 0; i < out->class_count; i++) {
        rb_ary_push(classes, rb_ary_push(durations(&out->classes[i].latency), ULL2NUM(out->classes[i].wait_ns)));
    }
    hw_set(hash, "classes", classes);
    hw_set(hash, "latency", durations(&out->latency));
    hw_set_number(hash, "elapsed", out->elapsed_ns);
    hw_set_number(hash, "requests", out->requests);
    hw_set_number(hash, "gvl", out->gvl_ns);
    hw_set_number(hash, "cpu", out->cpu_ns);
    hw_set_number(hash, "bursts", out->bursts);
    hw_set_number(hash, "forced", out->forced);
    hw_set_number(hash, "queued_most", out->queued_most);
    hw_set(hash, "overloaded", out->overloaded ? Qtrue : Qfalse);
    return hash;
}

static VALUE
setting(VALUE settings, const char *key)
{
    return rb_hash_fetch(settings, ID2SYM(rb_intern(key)));
}

static struct hw_simulation
simulation_of(const struct hw_workload *workload, VALUE settings)
{
    struct hw_simulation set = { .workload = workload, .policy = hw_policy_default };
    set.seed = NUM2ULL(setting(settings, "seed"));
    set.resample = RTEST(setting(settings, "resample"));
    set.processes = NUM2UINT(setting(settings, "processes"));
    set.threads = NUM2UINT(setting(settings, "threads"));
    set.cores = NUM2UINT(setting(settings, "cores"));
    set.policy.kind = (enum hw_policy_kind)NUM2INT(setting(settings, "policy"));
    set.policy.quantum_ns = NUM2ULL(setting(settings, "quantum_ns"));
    set.vm_slice_ns = set.policy.vm_slice_ns = NUM2ULL(setting(settings, "vm_slice_ns"));
    set.handover_ns = NUM2ULL(setting(settings, "handover_ns"));
    set.rate_per_s = NUM2DBL(setting(settings, "rate_per_s"));
    set.requests = NUM2ULL(setting(settings, "requests"));
    set.warm_up = NUM2ULL(setting(settings, "warm_up"));
    set.longest_ns = NUM2ULL(setting(settings, "longest_ns"));
    if (set.processes < 1 || set.cores < 1 || (int)set.policy.kind < 0 || set.policy.kind >= HW_POLICY_COUNT) {
        rb_raise(rb_eArgError, "processes, cores or policy out of range");
    }
    return set;
}

static VALUE
simulate_to_the_end(VALUE data)
{
    struct simulating *simulating = (struct simulating *)data;
    for (;;) {
        atomic_store(&simulating->cancelled, false);
        rb_thread_call_without_gvl(simulate_it, simulating, cancel_simulating, simulating);
        if (!atomic_load(&simulating->cancelled)) break;
        hw_simulated_free(&simulating->simulated);
        rb_thread_check_ints();
    }
    return simulating->whole ? simulated_hash(&simulating->simulated) : Qnil;
}

static VALUE
free_simulated(VALUE data)
{
    hw_simulated_free(&((struct simulating *)data)->simulated);
    return Qnil;
}

/* simulate(settings) -> Hash, times in nanoseconds; nil: nothing to simulate, too many threads, or memory is short */
static VALUE
simulate(VALUE self, VALUE settings)
{
    struct simulating simulating = { .set = simulation_of(workload_of(self), settings) };
    VALUE result = rb_ensure(simulate_to_the_end, (VALUE)&simulating, free_simulated, (VALUE)&simulating);
    RB_GC_GUARD(self);
    return result;
}

void
hw_simulation_init(VALUE native)
{
    VALUE class = rb_define_class_under(native, "Workload", rb_cObject);
    rb_undef_alloc_func(class);
    rb_define_const(class, "THREADS_MOST", UINT2NUM(HW_SIMULATED_THREADS_MOST));
    rb_define_singleton_method(class, "read", read_workload, 1);
    rb_define_method(class, "facts", facts, 0);
    rb_define_method(class, "simulate", simulate, 1);
}
