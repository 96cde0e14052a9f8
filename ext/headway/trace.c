/* Headway::Native::Traces: the passes over trace files, for lib/headway/trace.rb. The GVL is free meanwhile: a pass over a
 * large file takes seconds, and touches no Ruby object. */
#include "trace.h"

#include <ruby/thread.h>

/* -- one analysis, freed with its object whatever is raised --------------------------------------------------------------- */

static void
free_analysis(void *data)
{
    hw_analysis_free(data);
    xfree(data);
}

static const rb_data_type_t analysis_type = { .wrap_struct_name = "Headway::Native::Traces/analysis",
                                              .function = { .dfree = free_analysis }, .flags = RUBY_TYPED_FREE_IMMEDIATELY };

static void *
run_pass(void *data)
{
    struct hw_trace_pass *pass = data;
    pass->whole = hw_analysis_add(pass->into, pass->path, pass->size, &pass->damage);
    return NULL;
}

static void
cancel_pass(void *data)
{
    struct hw_trace_pass *pass = data;
    struct hw_analysis *analysis = pass->into;
    atomic_store(&analysis->cancelled, true);
}

VALUE
hw_trace_failure(const struct hw_trace_damage *damage, long place)
{
    return rb_ary_new_from_args(3, LONG2NUM(place), ULL2NUM(damage->offset), rb_utf8_str_new_cstr(damage->what));
}

/* A path at a time: what only an array holds is moved when the heap is compacted meanwhile. */
bool
hw_trace_passes(struct hw_trace_pass *pass, void *(*run)(void *), rb_unblock_function_t *cancel, VALUE files, long *place)
{
    for (*place = 0; *place < RARRAY_LEN(files); ++*place) {
        VALUE file = rb_ary_entry(files, *place);
        VALUE path = rb_str_new_frozen(rb_get_path(rb_ary_entry(file, 0)));
        pass->path = StringValueCStr(path);
        pass->size = NUM2ULL(rb_ary_entry(file, 1));
        rb_thread_call_without_gvl(run, pass, cancel, pass);
        RB_GC_GUARD(path);
        if (!pass->whole) return false;
    }
    return true;
}

/* Traces.analyse([[path, bytes that count], ...], whether lanes are wanted) -> Hash; or [the file's place, offset, what is
 * wrong with it] when one can't be read. */
static VALUE
analyse(VALUE self, VALUE files, VALUE lanes)
{
    struct hw_analysis *analysis;
    VALUE wrapper = TypedData_Make_Struct(0, struct hw_analysis, &analysis_type, analysis);
    hw_analysis_init(analysis, RTEST(lanes));
    struct hw_trace_pass pass = { .into = analysis };
    long place;
    bool whole;
    for (;;) {
        whole = hw_trace_passes(&pass, run_pass, cancel_pass, files, &place);
        if (!atomic_load(&analysis->cancelled)) break;
        rb_thread_check_ints(); /* raises, or it was an interrupt to go on after: then from the start */
        hw_analysis_free(analysis);
    }
    VALUE result = whole ? hw_trace_result(analysis) : hw_trace_failure(&pass.damage, place);
    RB_GC_GUARD(wrapper);
    return result;
}

/* Traces.check(path) -> the file's size; or [0, offset, what is wrong] when not even its header can be read. */
static VALUE
check(VALUE self, VALUE path)
{
    struct hw_trace_reader reader;
    path = rb_get_path(path);
    if (!hw_trace_open(&reader, StringValueCStr(path), UINT64_MAX)) return hw_trace_failure(&reader.damage, 0);
    uint64_t size = reader.size;
    hw_trace_close(&reader);
    return ULL2NUM(size);
}

static VALUE
wait_buckets(VALUE self)
{
    VALUE bounds = rb_ary_new();
    for (uint32_t i = 0; i < HW_WAIT_BUCKETS; i++) rb_ary_push(bounds, ULL2NUM(hw_wait_bucket_from_ns(i)));
    return rb_ary_freeze(bounds);
}

void
hw_trace_init(VALUE native)
{
    VALUE traces = rb_define_module_under(native, "Traces");
    rb_define_const(traces, "WAIT_BUCKETS_NS", wait_buckets(traces));
    rb_define_singleton_method(traces, "analyse", analyse, 2);
    rb_define_singleton_method(traces, "check", check, 1);
    hw_trace_file_init(traces);
    hw_trace_lanes_init(traces);
    hw_simulation_init(native);
}
