/* Headway::Native::OffloadHook, a scheduler's blocking_operation_wait, and what OffloadPool#call shares with it: inline or on a worker?
 *
 * Called with the GVL, for every operation of the VM that may block, so this is offload's hot path: an inline one costs two look-ups
 * of instance variables, a clock, three frames and a hash.
 *
 * Running inline costs nothing more: rb_nogvl takes Qundef for "there is no such hook" on 3.4 (test/offload asserts it), and from 4.0
 * on a hook that returns without having called the operation declines it. Qundef must never reach Ruby code, so it is returned only
 * when a C method is what called the hook, as rb_nogvl does. */
#include "binding.h"
#include "clock.h"
#include "costs.h"
#include "offload.h"

#include <ruby/debug.h>
#include <ruby/version.h>
#include <string.h>

#if RUBY_API_VERSION_CODE >= 40000
#define DECLINED Qnil
#else
#define DECLINED Qundef
#endif

static ID id_blocking, id_call, id_costs, id_guard, id_hand_over, id_pool;
static VALUE fiber_class;

static const rb_data_type_t costs_type = {
    .wrap_struct_name = "Headway::Native/costs",
    .function = { .dfree = RUBY_TYPED_DEFAULT_FREE },
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

static struct hw_costs *
costs_of(VALUE object)
{
    return rb_check_typeddata(object, &costs_type);
}

struct call {
    uint64_t key;
    VALUE frame; /* of the method that blocks */
    bool by_c; /* it is one of C: rb_nogvl called us, not Ruby code */
};

/* The place an operation is called from: the C method that blocks, the Ruby code that called it, and its line. A frame that is gone
 * and its address used again may pass for another one: then two places share what is known of them. */
static struct call
find_call(int skip)
{
    VALUE frames[6] = { 0 };
    int lines[6] = { 0 };
    int count = rb_profile_frames(0, skip + 2, frames, lines);
    struct call call = { .frame = frames[skip], .by_c = count > skip && lines[skip] == 0 };
    call.key = ((uint64_t)frames[skip] * 31 + (uint64_t)frames[skip + 1]) * 31 + (uint64_t)lines[skip + 1];
    if (call.key == 0) call.key = 1;
    return call;
}

static VALUE
call_work(RB_BLOCK_CALL_FUNC_ARGLIST(unused, work))
{
    return rb_funcallv(work, id_call, 0, NULL);
}

/* On a fiber that blocks, or the work would ask for the hook again. */
static VALUE
run_inline(VALUE work)
{
    return rb_block_call(fiber_class, id_blocking, 0, NULL, call_work, work);
}

static VALUE
run_measured(struct hw_costs *costs, uint64_t key, VALUE work)
{
    uint64_t started = hw_now_ns();
    VALUE result = run_inline(work);
    hw_costs_ran_inline(costs, key, hw_now_ns() - started);
    return result;
}

static VALUE
run_on_worker(VALUE pool, VALUE work, uint64_t key)
{
    VALUE arguments[2] = { work, ULL2NUM(key) };
    return rb_funcallv(pool, id_hand_over, 2, arguments);
}

/* Work as the VM makes it: a block of C, which takes anything. */
static bool
of_the_vm(VALUE work)
{
#if RUBY_API_VERSION_CODE >= 40000
    return true;
#else
    return rb_obj_is_proc(work) && !RTEST(rb_proc_lambda_p(work)) && rb_proc_arity(work) == -1;
#endif
}

static VALUE
decline(const struct call *call, VALUE work)
{
    return call->by_c && of_the_vm(work) ? DECLINED : run_inline(work);
}

/* IO.copy_stream must not leave its thread: a worker would run the waiting thread's interrupts, and wait through its scheduler. It
 * must not run on a blocking fiber either, for then its waits block the loop. Inline, it asks the scheduler itself when it waits. */
static bool
stays_on_its_thread(const struct call *call)
{
    if (!call->by_c) return false;
    VALUE name = rb_profile_frame_method_name(call->frame);
    return RB_TYPE_P(name, T_STRING) && RSTRING_LEN(name) == 11 && memcmp(RSTRING_PTR(name), "copy_stream", 11) == 0;
}

/* scheduler.blocking_operation_wait(work); the scheduler's @worker_pool is an OffloadPool, or nil once it is closed */
static VALUE
blocking_operation_wait(VALUE self, VALUE work)
{
    struct call call = find_call(1);
    VALUE pool = rb_ivar_get(self, id_pool);
    if (NIL_P(pool)) return decline(&call, work);
    struct hw_costs *costs = costs_of(rb_ivar_get(pool, id_costs));
    enum hw_choice choice = hw_costs_choose(costs, call.key, hw_now_ns());
    if (choice == HW_CHOICE_INLINE || stays_on_its_thread(&call)) return decline(&call, work);
    if (choice == HW_CHOICE_MEASURE) return run_measured(costs, call.key, work);
    return run_on_worker(pool, work, call.key);
}

/* Native.offload_operation(pool, costs, work): the same from OffloadPool#call, below a scheduler's own hook, where declining is not
 * possible. */
static VALUE
offload_operation(VALUE self, VALUE pool, VALUE costs_object, VALUE work)
{
    struct call call = find_call(3);
    struct hw_costs *costs = costs_of(costs_object);
    if (stays_on_its_thread(&call)) {
        rb_funcallv(pool, id_guard, 0, NULL);
        return run_on_worker(pool, work, call.key);
    }
    switch (hw_costs_choose(costs, call.key, hw_now_ns())) {
      case HW_CHOICE_INLINE: return run_inline(work);
      case HW_CHOICE_MEASURE: return run_measured(costs, call.key, work);
      default: return run_on_worker(pool, work, call.key);
    }
}

/* Native.offload_costs(mode, hand_over_ns) -> what is known of operations: nothing yet */
static VALUE
offload_costs(VALUE self, VALUE mode, VALUE hand_over_ns)
{
    struct hw_costs *costs;
    VALUE object = TypedData_Make_Struct(rb_cObject, struct hw_costs, &costs_type, costs);
    hw_costs_init(costs, (enum hw_costs_mode)NUM2INT(mode), NUM2ULL(hand_over_ns));
    return object;
}

/* Native.offload_learn(costs, key, wall_ns, cpu_ns): a worker ran an operation of that place */
static VALUE
offload_learn(VALUE self, VALUE costs, VALUE key, VALUE wall_ns, VALUE cpu_ns)
{
    hw_costs_ran_on_worker(costs_of(costs), NUM2ULL(key), NUM2ULL(wall_ns), NUM2ULL(cpu_ns));
    return Qnil;
}

static VALUE
offload_turned(VALUE self, VALUE costs)
{
    hw_costs_turned(costs_of(costs));
    return Qnil;
}

/* Native.offload_chosen(costs) -> [inline, inline and timed, handed over] */
static VALUE
offload_chosen(VALUE self, VALUE costs)
{
    const uint64_t *chosen = costs_of(costs)->chosen;
    return rb_ary_new_from_args(3, ULL2NUM(chosen[0]), ULL2NUM(chosen[1]), ULL2NUM(chosen[2]));
}

void
hw_operation_init(VALUE native)
{
    fiber_class = rb_const_get(rb_cObject, rb_intern("Fiber"));
    rb_gc_register_mark_object(fiber_class);
    id_blocking = rb_intern("blocking");
    id_call = rb_intern("call");
    id_costs = rb_intern("@costs");
    id_guard = rb_intern("guard_io_wait");
    id_hand_over = rb_intern("hand_over_operation");
    id_pool = rb_intern("@worker_pool");
    rb_define_singleton_method(native, "offload_costs", offload_costs, 2);
    rb_define_singleton_method(native, "offload_operation", offload_operation, 3);
    rb_define_singleton_method(native, "offload_learn", offload_learn, 4);
    rb_define_singleton_method(native, "offload_turned", offload_turned, 1);
    rb_define_singleton_method(native, "offload_chosen", offload_chosen, 1);
    VALUE hook = rb_define_module_under(native, "OffloadHook");
    rb_define_method(hook, "blocking_operation_wait", blocking_operation_wait, 1);
}
