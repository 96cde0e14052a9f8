/* Headway::Native.offload_wait(job): waits until a worker of the offload pool is done with a job, whatever happens to the waiting
 * fiber meanwhile. The VM's work points into that fiber's C stack, so leaving it earlier crashes the process.
 *
 * In C because an interrupt can then arrive only inside the calls below: Ruby code checks for interrupts at every branch and return,
 * those of an ensure clause too. It loops rather than nests: a scheduler that is closing raises again at each of its turns.
 *
 * Of several interruptions the gravest goes on: a kill or a throw, then what is no StandardError, then the first one.
 *
 * Called with the GVL, on any thread or fiber; the calls into Ruby switch fibers. */
#include "binding.h"

static ID id_begin, id_cancel, id_left;

struct waiting {
    VALUE job;
    VALUE interruption; /* an exception that came while settling, or nil */
    bool leaving;       /* a kill or a throw is on its way already */
    bool begun;         /* begin came back: nothing is on its way yet */
};

static VALUE
begin_job(VALUE argument)
{
    struct waiting *waiting = (struct waiting *)argument;
    rb_funcallv(waiting->job, id_begin, 0, NULL);
    waiting->begun = true;
    return Qnil;
}

static VALUE
cancel_job(VALUE argument)
{
    return rb_funcallv(((struct waiting *)argument)->job, id_cancel, 0, NULL);
}

static VALUE
go_on_leaving(VALUE tag)
{
    rb_jump_tag((int)tag);
    return Qnil;
}

static bool
grave(VALUE exception)
{
    return !RTEST(rb_obj_is_kind_of(exception, rb_eStandardError));
}

/* Returns only when the job is done, and no wake-up on its way. */
static VALUE
settle(VALUE argument)
{
    struct waiting *waiting = (struct waiting *)argument;
    while (!RTEST(rb_ivar_get(waiting->job, id_left))) {
        int tag = 0;
        rb_protect(cancel_job, argument, &tag);
        if (tag == 0) continue;
        VALUE reason = rb_errinfo();
        /* A kill's reason is a number and a throw's internal: only rb_ensure can keep and restore those. */
        if (!SPECIAL_CONST_P(reason) && !RB_TYPE_P(reason, T_IMEMO)) {
            if (NIL_P(waiting->interruption) || (grave(reason) && !grave(waiting->interruption))) waiting->interruption = reason;
            rb_set_errinfo(Qnil);
        }
        else if (!waiting->leaving) {
            waiting->leaving = true;
            rb_ensure(go_on_leaving, (VALUE)tag, settle, argument);
        }
    }
    return Qnil;
}

/* The ensure of the whole: what interrupted the job first, if anything did, is on its way already. */
static VALUE
finish(VALUE argument)
{
    struct waiting *waiting = (struct waiting *)argument;
    VALUE first = waiting->begun ? Qnil : rb_errinfo(); /* nil, too, for a kill or a throw: rb_ensure hides those */
    waiting->leaving = !waiting->begun && NIL_P(first);
    settle(argument);
    if (waiting->leaving || NIL_P(waiting->interruption)) return Qnil;
    if (NIL_P(first) || (grave(waiting->interruption) && !grave(first))) rb_exc_raise(waiting->interruption);
    return Qnil;
}

static VALUE
offload_wait(VALUE self, VALUE job)
{
    struct waiting waiting = { .job = job, .interruption = Qnil, .leaving = false, .begun = false };
    rb_ensure(begin_job, (VALUE)&waiting, finish, (VALUE)&waiting);
    RB_GC_GUARD(waiting.job);
    return Qnil;
}

void
hw_offload_init(VALUE native)
{
    id_begin = rb_intern("begin");
    id_cancel = rb_intern("cancel");
    id_left = rb_intern("@left");
    rb_define_singleton_method(native, "offload_wait", offload_wait, 1);
}
