/* Headway::Native::WorkTimes: how long a piece of work took, and what its thread did meanwhile. Every request is asked three times,
 * in a server that does something else in between and has none of this in its caches: so it is one object and few steps, and
 * numbers are made of it when somebody wants them. All with the GVL. */
#include "binding.h"
#include "hash.h"

#include <string.h>

struct work_times {
    VALUE thread; /* whose times they are; nil when the work is finished */
    uint64_t started_ns, wall_ns;
    uint64_t first_ns[HW_STATE_COUNT], last_ns[HW_STATE_COUNT]; /* the thread's account when the work began, and as it was seen last */
    bool measured, finished;
};

static void
mark_times(void *data)
{
    rb_gc_mark(((const struct work_times *)data)->thread);
}

static const rb_data_type_t times_type = {
    .wrap_struct_name = "Headway::Native::WorkTimes",
    .function = { .dmark = mark_times, .dfree = RUBY_TYPED_DEFAULT_FREE },
    .flags = RUBY_TYPED_FREE_IMMEDIATELY | RUBY_TYPED_WB_PROTECTED | RUBY_TYPED_EMBEDDABLE,
};

static struct work_times *
times_of(VALUE self)
{
    return rb_check_typeddata(self, &times_type);
}

static VALUE
allocate(VALUE class)
{
    struct work_times *times;
    VALUE self = TypedData_Make_Struct(class, struct work_times, &times_type, times);
    VALUE thread = rb_thread_current();
    RB_OBJ_WRITE(self, &times->thread, thread);
    times->started_ns = hw_now_ns();
    times->measured = hw_read_account(thread, times->started_ns, times->first_ns);
    memcpy(times->last_ns, times->first_ns, sizeof(times->last_ns));
    return self;
}

/* Another thread sees what the last look saw. */
static void
look_at(struct work_times *times, uint64_t now)
{
    if (times->measured && times->thread == rb_thread_current()) hw_read_account(times->thread, now, times->last_ns);
}

/* -> self */
static VALUE
look(VALUE self)
{
    look_at(times_of(self), hw_now_ns());
    return self;
}

/* -> whether it wasn't finished yet */
static VALUE
finish(VALUE self)
{
    struct work_times *times = times_of(self);
    if (times->finished) return Qfalse;
    uint64_t now = hw_now_ns();
    look_at(times, now);
    times->wall_ns = now - times->started_ns;
    times->finished = true;
    RB_OBJ_WRITE(self, &times->thread, Qnil);
    return Qtrue;
}

/* Accounts begin at nothing with every start of Headway. */
static uint64_t
gain_ns(const struct work_times *times, enum hw_state state)
{
    uint64_t first = times->first_ns[state], last = times->last_ns[state];
    return last > first ? last - first : 0;
}

static VALUE
gain(const struct work_times *times, enum hw_state state)
{
    return hw_seconds(gain_ns(times, state));
}

void
hw_work_times_read(VALUE self, uint64_t *time_ns)
{
    const struct work_times *times = times_of(self);
    for (int state = 0; state < HW_STATE_COUNT; state++) time_ns[state] = gain_ns(times, state);
}

/* -> [running_s, ready_s, suspended_s] */
static VALUE
to_a(VALUE self)
{
    const struct work_times *times = times_of(look(self));
    return rb_ary_new_from_args(3, gain(times, HW_RUNNING), gain(times, HW_READY), gain(times, HW_SUSPENDED));
}

static VALUE
running(VALUE self)
{
    return gain(times_of(look(self)), HW_RUNNING);
}

static VALUE
ready(VALUE self)
{
    return gain(times_of(look(self)), HW_READY);
}

static VALUE
suspended(VALUE self)
{
    return gain(times_of(look(self)), HW_SUSPENDED);
}

/* -> seconds until it was finished, or until now */
static VALUE
wall(VALUE self)
{
    const struct work_times *times = times_of(self);
    return hw_seconds(times->finished ? times->wall_ns : hw_now_ns() - times->started_ns);
}

static VALUE
measured_p(VALUE self)
{
    return times_of(self)->measured ? Qtrue : Qfalse;
}

static VALUE
finished_p(VALUE self)
{
    return times_of(self)->finished ? Qtrue : Qfalse;
}

void
hw_work_times_init(VALUE native)
{
    VALUE class = rb_define_class_under(native, "WorkTimes", rb_cObject);
    rb_define_alloc_func(class, allocate);
    rb_define_method(class, "look", look, 0);
    rb_define_method(class, "finish", finish, 0);
    rb_define_method(class, "to_a", to_a, 0);
    rb_define_method(class, "running", running, 0);
    rb_define_method(class, "ready", ready, 0);
    rb_define_method(class, "suspended", suspended, 0);
    rb_define_method(class, "wall", wall, 0);
    rb_define_method(class, "measured?", measured_p, 0);
    rb_define_method(class, "finished?", finished_p, 0);
}
