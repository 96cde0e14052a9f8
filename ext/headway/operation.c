/* Headway::Native::OffloadHook, a scheduler's blocking_operation_wait, and what OffloadPool#call shares with it: inline or on a worker?
 *
 * Called with the GVL, for every operation of the VM that may block, so this is offload's hot path: an inline one costs two look-ups
 * of instance variables, two frames, a hash, and a clock now and then.
 *
 * Running inline costs nothing more: rb_nogvl takes Qundef for "there is no such hook" on 3.4 (test/offload asserts it), and from 4.0
 * on a hook that returns without having called the operation declines it. Qundef must never reach Ruby code, so it is returned only
 * when a C method is what called the hook, as rb_nogvl does. */
#include "binding.h"
#include "clock.h"
#include "costs.h"

#include <ruby/debug.h>
#include <ruby/fiber/scheduler.h>
#include <ruby/version.h>
#include <string.h>

#if RUBY_API_VERSION_CODE >= 40000
#define DECLINED Qnil
#else
#define DECLINED Qundef
#endif

static ID id_blocking, id_call, id_close, id_costs, id_guard, id_hand_over, id_pool, id_yield;
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

/* What is noted of a place. */
enum { NEW, DECLINABLE, CLOSES, NOT_DECLINABLE, STAYS };

/* The place an operation is called from: the C method that blocks, and the Ruby method that called it. A frame that is gone and its
 * address used again may pass for another one: then two places share what is known of them. */
static struct hw_place *
find_place(struct hw_costs *costs, int skip)
{
    VALUE frames[2] = { 0 };
    rb_profile_frames(skip, 2, frames, NULL);
    uint64_t key = (uint64_t)frames[0] * UINT64_C(0x9e3779b97f4a7c15) ^ (uint64_t)frames[1] * UINT64_C(0xc2b2ae3d27d4eb4f);
    return hw_costs_place(costs, key ? key : 1);
}

/* Work as the VM makes it: a block of C, which takes anything; since 4.0 an object of a class without a name. */
static bool
of_the_vm(VALUE work)
{
#if RUBY_API_VERSION_CODE >= 40000
    return RB_TYPE_P(work, T_DATA) && RTYPEDDATA_P(work) &&
           strcmp(RTYPEDDATA_TYPE(work)->wrap_struct_name, "Fiber::Scheduler::BlockingOperation") == 0;
#else
    return rb_obj_is_proc(work) && !RTEST(rb_proc_lambda_p(work)) && rb_proc_arity(work) == -1;
#endif
}

/* IO.copy_stream should not leave its thread: a worker would run the waiting thread's interrupts, and wait through its scheduler. It
 * must not run on a blocking fiber either, for then its waits block the loop. Declined, it asks the scheduler itself when it waits. */
static bool
copies_a_stream(VALUE frame)
{
    return hw_frame_named(frame, "copy_stream");
}

/* By then the VM has forgotten the descriptor: what gives this operation up leaves it open for good. */
static bool
closes(VALUE frame)
{
    return hw_frame_named(frame, "close") || hw_frame_named(frame, "close_write") || hw_frame_named(frame, "close_read");
}

static void
note_place(struct hw_place *place, VALUE work)
{
    VALUE frame;
    bool by_c = hw_called_by_c(&frame);
    place->note = !by_c || !of_the_vm(work) ? NOT_DECLINABLE : copies_a_stream(frame) ? STAYS : closes(frame) ? CLOSES : DECLINABLE;
}

/* However many methods of a scheduler are in between. */
static bool
called_to(bool (*what)(VALUE frame), int skip)
{
    VALUE frames[6];
    int lines[6];
    int count = rb_profile_frames(skip, 6, frames, lines);
    for (int i = 0; i < count; i++)
        if (lines[i] == 0 && what(frames[i])) return true;
    return false;
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
run_measured(struct hw_costs *costs, const struct hw_place *place, VALUE work)
{
    uint64_t key = place->key;
    bool with_cpu = place->handed_over;
    uint64_t started = hw_now_ns(), cpu_started = with_cpu ? hw_cpu_ns() : 0;
    VALUE result = run_inline(work);
    hw_costs_ran_inline(costs, key, hw_now_ns() - started, with_cpu ? hw_cpu_ns() - cpu_started : 0);
    return result;
}

struct leave {
    VALUE costs_object; /* a forked child's pool has others */
    VALUE scheduler;
    VALUE arguments[4];
    bool closes;
    uint32_t turns;
};

static VALUE
came_back(VALUE leave)
{
    struct hw_costs *costs = costs_of(((struct leave *)leave)->costs_object);
    costs->elsewhere--;
    hw_costs_back_since(costs, ((struct leave *)leave)->turns);
    return Qnil;
}

static VALUE
came_back_from_worker(VALUE leave)
{
    struct hw_costs *costs = costs_of(((struct leave *)leave)->costs_object);
    costs->handed_over--;
    if (costs->done > 0) costs->done--;
    return came_back(leave);
}

static VALUE
hand_over(VALUE leave)
{
    const VALUE *arguments = ((struct leave *)leave)->arguments;
    return rb_funcallv(arguments[0], ((struct leave *)leave)->closes ? id_close : id_hand_over, 3, arguments + 1);
}

static VALUE
run_on_worker(VALUE costs_object, VALUE pool, VALUE work, const struct hw_place *place, int skip)
{
    struct hw_costs *costs = costs_of(costs_object);
    struct leave leave = { .costs_object = costs_object, .turns = costs->turns,
                           .closes = place->note == CLOSES || (place->note != DECLINABLE && of_the_vm(work) && called_to(closes, skip)),
                           .arguments = { pool, work, ULL2NUM(place->key), costs->mode == HW_COSTS_ADAPTIVE && hw_costs_light(place) ? Qtrue : Qfalse } };
    costs->elsewhere++;
    costs->handed_over++;
    VALUE result = rb_ensure(hand_over, (VALUE)&leave, came_back_from_worker, (VALUE)&leave);
    RB_GC_GUARD(leave.costs_object);
    return result;
}

static VALUE
yield_to_loop(VALUE leave)
{
    VALUE scheduler = ((struct leave *)leave)->scheduler;
    VALUE result = rb_check_funcall(scheduler, id_yield, 0, NULL);
    return result == Qundef ? rb_fiber_scheduler_kernel_sleep(scheduler, INT2FIX(0)) : result;
}

/* The scheduler lets what else is ready run. What is known of places may be another afterwards. */
static void
breathe(VALUE costs_object, VALUE scheduler)
{
    struct hw_costs *costs = costs_of(costs_object);
    if (NIL_P(scheduler)) {
        hw_costs_turned(costs); /* no loop to wait for it */
        return;
    }
    struct leave leave = { .costs_object = costs_object, .scheduler = scheduler, .turns = costs->turns };
    costs->elsewhere++;
    rb_ensure(yield_to_loop, (VALUE)&leave, came_back, (VALUE)&leave);
    RB_GC_GUARD(leave.costs_object);
}

static enum hw_choice
choose(struct hw_costs *costs, struct hw_place *place, bool breathed)
{
    return hw_costs_choose(costs, place, hw_costs_wants_time(place) ? hw_now_ns() : 0, breathed);
}

static VALUE
wait_for(VALUE self, VALUE pool, VALUE costs_object, VALUE work)
{
    struct hw_costs *costs = costs_of(costs_object);
    for (bool breathed = false;; breathed = true) {
        struct hw_place *place = find_place(costs, 1);
        if (place->note == NEW) note_place(place, work);
        enum hw_choice choice = place->note == STAYS ? HW_CHOICE_INLINE : choose(costs, place, breathed);
        switch (choice) {
          case HW_CHOICE_BREATHE: breathe(costs_object, self); break;
          case HW_CHOICE_INLINE: return place->note == NOT_DECLINABLE ? run_inline(work) : DECLINED;
          case HW_CHOICE_MEASURE: return run_measured(costs, place, work);
          default: return run_on_worker(costs_object, pool, work, place, 1);
        }
    }
}

/* scheduler.blocking_operation_wait(work); the scheduler's @worker_pool is an OffloadPool, or nil once it is closed */
static VALUE
blocking_operation_wait(VALUE self, VALUE work)
{
    VALUE pool = rb_ivar_get(self, id_pool);
    if (NIL_P(pool)) return run_inline(work);
    VALUE costs_object = rb_ivar_get(pool, id_costs);
    VALUE result = wait_for(self, pool, costs_object, work);
    RB_GC_GUARD(costs_object); /* what forks in between, its pool has others */
    return result;
}

/* Native.offload_operation(pool, costs, work): the same from OffloadPool#call, below a scheduler's own hook, where declining is not
 * possible. */
static VALUE
offload_operation(VALUE self, VALUE pool, VALUE costs_object, VALUE work)
{
    struct hw_costs *costs = costs_of(costs_object);
    if (called_to(copies_a_stream, 2)) {
        rb_funcallv(pool, id_guard, 0, NULL);
        return rb_funcallv(pool, id_hand_over, 3, (VALUE[]){ work, Qnil, Qfalse }); /* rare, and of no known place */
    }
    for (bool breathed = false;; breathed = true) {
        struct hw_place *place = find_place(costs, 3);
        switch (choose(costs, place, breathed)) {
          case HW_CHOICE_BREATHE: breathe(costs_object, rb_fiber_scheduler_current()); break;
          case HW_CHOICE_INLINE: return run_inline(work);
          case HW_CHOICE_MEASURE: return run_measured(costs, place, work);
          default: return run_on_worker(costs_object, pool, work, place, 2);
        }
    }
}

/* Native.offload_costs(mode, hand_over_ns, most, crew) -> what is known of operations: nothing yet */
static VALUE
offload_costs(VALUE self, VALUE mode, VALUE hand_over_ns, VALUE most, VALUE crew)
{
    struct hw_costs *costs;
    VALUE object = TypedData_Make_Struct(rb_cObject, struct hw_costs, &costs_type, costs);
    hw_costs_init(costs, (enum hw_costs_mode)NUM2INT(mode), NUM2ULL(hand_over_ns), NUM2UINT(most), NUM2UINT(crew));
    return object;
}

/* Native.offload_done(costs): a worker is done with an operation that was handed over here */
static VALUE
offload_done(VALUE self, VALUE costs_object)
{
    struct hw_costs *costs = costs_of(costs_object);
    if (costs->done < costs->handed_over) costs->done++;
    return Qnil;
}

/* Native.offload_learn(costs, key, wall_ns, cpu_ns): it ran an operation of that place to its end */
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
    id_close = rb_intern("hand_over_close");
    id_costs = rb_intern("@costs");
    id_guard = rb_intern("guard_io_wait");
    id_hand_over = rb_intern("hand_over_operation");
    id_pool = rb_intern("@worker_pool");
    id_yield = rb_intern("yield");
    rb_define_singleton_method(native, "offload_costs", offload_costs, 4);
    rb_define_singleton_method(native, "offload_operation", offload_operation, 3);
    rb_define_singleton_method(native, "offload_done", offload_done, 1);
    rb_define_singleton_method(native, "offload_learn", offload_learn, 4);
    rb_define_singleton_method(native, "offload_turned", offload_turned, 1);
    rb_define_singleton_method(native, "offload_chosen", offload_chosen, 1);
    VALUE hook = rb_define_module_under(native, "OffloadHook");
    rb_define_method(hook, "blocking_operation_wait", blocking_operation_wait, 1);
}
