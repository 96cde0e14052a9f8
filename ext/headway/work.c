/* Headway::Native::Work: a request or a job, how long it took, and what its thread did meanwhile; lib/headway/work.rb tells the rest.
 * Every request is started, looked at and finished here, in a server that does something else in between and has none of this in its
 * caches: so it is one object and few steps, and numbers are made of it when somebody wants them.
 *
 * All with the GVL. Nothing of start, look or conclude lets another thread or an interrupt in but a span's name (mark.c), which has
 * its place where nothing is half done. */
#include "binding.h"
#include "hash.h"

#include <ruby/fiber/scheduler.h>
#include <math.h>
#include <string.h>

struct work {
    VALUE thread; /* whose times they are; nil when the work is finished */
    VALUE kind, name, status, queue, queued, error, parts;
    VALUE outer; /* what the thread was at before, and will be again */
    VALUE span;  /* what hw_end_span takes; nil: none */
    uint64_t started_ns, wall_ns;
    uint64_t first_ns[HW_STATE_COUNT], last_ns[HW_STATE_COUNT]; /* the thread's account when the work began, and as it was seen last */
    bool measured, finished, shared, answering;
};

static VALUE job, request;
static ID current_work;

static void
mark_work(void *data)
{
    const struct work *work = data;
    rb_gc_mark(work->thread);
    rb_gc_mark(work->kind);
    rb_gc_mark(work->name);
    rb_gc_mark(work->status);
    rb_gc_mark(work->queue);
    rb_gc_mark(work->queued);
    rb_gc_mark(work->error);
    rb_gc_mark(work->parts);
    rb_gc_mark(work->outer);
    rb_gc_mark(work->span);
}

static const rb_data_type_t work_type = {
    .wrap_struct_name = "Headway::Native::Work",
    .function = { .dmark = mark_work, .dfree = RUBY_TYPED_DEFAULT_FREE },
    .flags = RUBY_TYPED_FREE_IMMEDIATELY | RUBY_TYPED_WB_PROTECTED | RUBY_TYPED_EMBEDDABLE,
};

static struct work *
work_of(VALUE self)
{
    return rb_check_typeddata(self, &work_type);
}

/* What the fiber is at: not what another has finished, which could give back its own thread's place only. */
static VALUE
current(VALUE class)
{
    VALUE self = rb_thread_local_aref(rb_thread_current(), current_work);
    return rb_typeddata_is_kind_of(self, &work_type) && !work_of(self)->finished ? self : Qnil;
}

/* Whether what is done in it is a part of it. Of one that began before the accounts did, in the process that forked this one, say, nothing is
 * known here; nor is it in which of the fibers that share a thread something is done. */
static bool
has_parts(VALUE self)
{
    return !NIL_P(self) && !work_of(self)->shared && work_of(self)->started_ns >= hw_runtime.started_ns;
}

bool
hw_work_under_way(void)
{
    return has_parts(current(Qnil));
}

static bool
in_application(VALUE self)
{
    while (!NIL_P(self) && work_of(self)->kind == job) self = work_of(self)->outer;
    return !NIL_P(self) && work_of(self)->answering;
}

static void
end_span(struct work *work)
{
    VALUE span = work->span;
    work->span = Qnil;
    if (!NIL_P(span)) hw_end_span(span, work->name);
}

/* Requests don't nest: one that is there is being finished on another thread. */
static void
begin_span(VALUE self, struct work *work, VALUE before)
{
    if (!hw_record_takes() || work->shared) return;
    if (work->kind == request && !NIL_P(before) && work_of(before)->kind == request) end_span(work_of(before));
    VALUE name = work->name;
    if (NIL_P(name)) name = rb_block_given_p() ? rb_yield_values(0) : work->kind;
    enum hw_span span = has_parts(work->outer) ? HW_SPAN_PART : work->kind == job ? HW_SPAN_JOB : HW_SPAN_REQUEST;
    RB_OBJ_WRITE(self, &work->span, hw_begin_span(name, span));
}

static VALUE
begin(VALUE class, VALUE kind, VALUE name, VALUE before)
{
    struct work *work;
    VALUE self = TypedData_Make_Struct(class, struct work, &work_type, work);
    work->status = work->queue = work->queued = work->error = work->parts = work->outer = work->span = Qnil;
    VALUE thread = rb_thread_current();
    RB_OBJ_WRITE(self, &work->thread, thread);
    RB_OBJ_WRITE(self, &work->kind, kind);
    RB_OBJ_WRITE(self, &work->name, name);
    /* A request that is there may be one that another thread will finish. */
    if (!NIL_P(before) && (kind == job || work_of(before)->kind == job)) RB_OBJ_WRITE(self, &work->outer, before);
    work->shared = !NIL_P(rb_fiber_scheduler_current());
    work->started_ns = hw_now_ns();
    work->measured = hw_read_account(thread, work->started_ns, work->first_ns);
    memcpy(work->last_ns, work->first_ns, sizeof(work->last_ns));
    begin_span(self, work, before);
    rb_thread_local_aset(thread, current_work, self);
    return self;
}

/* start(kind, name = nil) { what a trace calls it until it has a name } -> a work, which is the current one now */
static VALUE
start(int argc, VALUE *argv, VALUE class)
{
    VALUE kind, name;
    rb_scan_args(argc, argv, "11", &kind, &name);
    if (kind != request && kind != job) rb_raise(rb_eArgError, "%+"PRIsVALUE": :request or :job", kind);
    return begin(class, kind, name, current(class));
}

/* answer { as for start } -> a request; nil where Headway isn't started, or the current thread is in an application that answers one: what
 * it makes of itself there is part of that */
static VALUE
answer(VALUE class)
{
    VALUE before = current(class);
    bool counts = atomic_load_explicit(&hw_runtime.active, memory_order_relaxed) && !in_application(before);
    return counts ? begin(class, request, Qnil, before) : Qnil;
}

/* Another thread sees what the last look saw. */
static void
look_at(struct work *work, uint64_t now)
{
    if (work->measured && work->thread == rb_thread_current()) hw_read_account(work->thread, now, work->last_ns);
}

/* -> self. An application isn't at it any more. */
static VALUE
look(VALUE self)
{
    struct work *work = work_of(self);
    work->answering = false;
    look_at(work, hw_now_ns());
    return self;
}

/* -> whether its thread is the current one */
static VALUE
here_p(VALUE self)
{
    return work_of(self)->thread == rb_thread_current() ? Qtrue : Qfalse;
}

/* One that was begun in it and that nobody finished is gone with it. */
static void
give_back(VALUE self)
{
    VALUE thread = rb_thread_current(), inner = rb_thread_local_aref(thread, current_work);
    while (rb_typeddata_is_kind_of(inner, &work_type) && inner != self) inner = work_of(inner)->outer;
    if (inner == self) rb_thread_local_aset(thread, current_work, work_of(self)->outer);
}

/* What is part of another is counted with that; and the time of fibers that share a thread is nobody's. What began before the accounts did,
 * in the process that forked this one, say, or ended after them, is of unknown times. */
static bool
counts(const struct work *work)
{
    bool known = work->started_ns >= hw_runtime.started_ns && atomic_load_explicit(&hw_runtime.active, memory_order_relaxed);
    return known && work->measured && !work->shared && NIL_P(work->outer);
}

static void
count(VALUE self, const struct work *work)
{
    uint64_t time_ns[HW_STATE_COUNT];
    hw_work_times(self, time_ns);
    hw_runtime_count_work(&hw_runtime, work->kind == job ? HW_JOB : HW_REQUEST, time_ns);
}

/* conclude(error or nil) -> whether it wasn't finished yet */
static VALUE
conclude(VALUE self, VALUE error)
{
    struct work *work = work_of(self);
    if (work->finished) return Qfalse;
    uint64_t now = hw_now_ns();
    look_at(work, now);
    work->wall_ns = now - work->started_ns;
    work->finished = true;
    work->answering = false;
    if (counts(work)) count(self, work);
    RB_OBJ_WRITE(self, &work->error, error);
    give_back(self);
    work->outer = work->thread = Qnil;
    end_span(work);
    return Qtrue;
}

/* Accounts begin at nothing with every start of Headway. */
static uint64_t
gain_ns(const struct work *work, enum hw_state state)
{
    uint64_t first = work->first_ns[state], last = work->last_ns[state];
    return last > first ? last - first : 0;
}

void
hw_work_times(VALUE self, uint64_t *time_ns)
{
    const struct work *work = work_of(self);
    for (int state = 0; state < HW_STATE_COUNT; state++) time_ns[state] = gain_ns(work, state);
}

uint64_t
hw_work_queued_ns(VALUE self)
{
    VALUE queued = work_of(self)->queued;
    return NIL_P(queued) ? UINT64_MAX : hw_nanoseconds(queued);
}

static VALUE
gain_now(VALUE self, enum hw_state state)
{
    look_at(work_of(self), hw_now_ns());
    return hw_seconds(gain_ns(work_of(self), state));
}

static VALUE
running(VALUE self)
{
    return gain_now(self, HW_RUNNING);
}

static VALUE
waiting(VALUE self)
{
    return gain_now(self, HW_READY);
}

static VALUE
suspended(VALUE self)
{
    return gain_now(self, HW_SUSPENDED);
}

/* -> [running_s, waiting_s, suspended_s] */
static VALUE
times(VALUE self)
{
    uint64_t time_ns[HW_STATE_COUNT];
    look_at(work_of(self), hw_now_ns());
    hw_work_times(self, time_ns);
    return hw_account_array(time_ns);
}

/* -> seconds until it was finished, or until now */
static VALUE
wall(VALUE self)
{
    const struct work *work = work_of(self);
    return hw_seconds(work->finished ? work->wall_ns : hw_now_ns() - work->started_ns);
}

#define READER(field) static VALUE get_##field(VALUE self) { return work_of(self)->field; }
#define WRITER(field) static VALUE set_##field(VALUE self, VALUE value) { return RB_OBJ_WRITE(self, &work_of(self)->field, value), value; }
#define ASKER(field) static VALUE field##_p(VALUE self) { return work_of(self)->field ? Qtrue : Qfalse; }
READER(kind) READER(name) READER(status) READER(queue) READER(queued) READER(error) READER(parts) READER(outer)
WRITER(name) WRITER(status) WRITER(queue) WRITER(parts)
ASKER(measured) ASKER(finished) ASKER(shared) ASKER(answering)

static VALUE
set_answering(VALUE self, VALUE value)
{
    work_of(self)->answering = RTEST(value);
    return value;
}

/* Below 0 are clocks that don't agree. A trace tells it of the outermost alone, as all else of work. */
static VALUE
set_queued(VALUE self, VALUE value)
{
    struct work *work = work_of(self);
    if (NIL_P(value)) {
        work->queued = Qnil;
        return value;
    }
    double seconds = NUM2DBL(value);
    if (!isfinite(seconds)) rb_raise(rb_eArgError, "%"PRIsVALUE" seconds: give a finite number", value);
    RB_OBJ_WRITE(self, &work->queued, DBL2NUM(seconds > 0 ? seconds : 0));
    if (NIL_P(work->outer)) hw_queued_span(work->span, hw_nanoseconds(work->queued));
    return value;
}

void
hw_work_init(VALUE native)
{
    VALUE class = rb_define_class_under(native, "Work", rb_cObject);
    rb_undef_alloc_func(class);
    job = ID2SYM(rb_intern("job"));
    request = ID2SYM(rb_intern("request"));
    current_work = rb_intern("headway_work");
    rb_define_singleton_method(class, "start", start, -1);
    rb_define_singleton_method(class, "current", current, 0);
    rb_define_singleton_method(class, "answer", answer, 0);
    rb_define_method(class, "look", look, 0);
    rb_define_method(class, "here?", here_p, 0);
    rb_define_method(class, "conclude", conclude, 1);
    rb_define_method(class, "running", running, 0);
    rb_define_method(class, "waiting", waiting, 0);
    rb_define_method(class, "suspended", suspended, 0);
    rb_define_method(class, "times", times, 0);
    rb_define_method(class, "wall", wall, 0);
    rb_define_method(class, "measured?", measured_p, 0);
    rb_define_method(class, "finished?", finished_p, 0);
    rb_define_method(class, "shared?", shared_p, 0);
    rb_define_method(class, "kind", get_kind, 0);
    rb_define_method(class, "name", get_name, 0);
    rb_define_method(class, "name=", set_name, 1);
    rb_define_method(class, "status", get_status, 0);
    rb_define_method(class, "status=", set_status, 1);
    rb_define_method(class, "queue", get_queue, 0);
    rb_define_method(class, "queue=", set_queue, 1);
    rb_define_method(class, "queued", get_queued, 0);
    rb_define_method(class, "queued=", set_queued, 1);
    rb_define_method(class, "error", get_error, 0);
    rb_define_method(class, "parts", get_parts, 0);
    rb_define_method(class, "parts=", set_parts, 1);
    rb_define_method(class, "outer", get_outer, 0);
    rb_define_method(class, "answering", answering_p, 0);
    rb_define_method(class, "answering=", set_answering, 1);
}
