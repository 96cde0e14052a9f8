/* The binding's own header: what its files share. The binding translates between the VM and the runtime; it decides nothing. */
#ifndef HW_BINDING_H
#define HW_BINDING_H

#include "control.h"
#include "event.h"
#include "runtime.h"
#include "stacks.h"
#include "strings.h"

#include <ruby.h>
#include <ruby/debug.h>
#include <ruby/thread.h>

extern struct hw_runtime hw_runtime;
extern struct hw_control hw_control;

/* hooks.c */
void hw_hooks_init(void);    /* takes the thread-specific key; with the GVL, in the main Ractor */
const char *hw_hooks_add(void); /* installs the hooks and adds the threads there are; NULL, or the reason it can't */
void hw_hooks_remove(void);
/* In a forked child that has its parent's hooks for good, and must add none (Bug #21959): has them tell this, too (NULL: nobody).
 * Elsewhere false. With the GVL. */
bool hw_hooks_lend(rb_internal_thread_event_callback callback);
struct hw_thread *hw_record_of(VALUE thread); /* NULL: not tracked */
VALUE hw_thread_name(VALUE thread); /* its name, else "main", else where it was created; from then on the runtime knows it, too */
/* The class's own method, for bind_call, kept for good. A subclass of Thread, say, may have a name method that does anything; Thread's does
 * nothing but tell. */
VALUE hw_own_method(VALUE class, const char *name);
VALUE hw_thread_own_name(VALUE thread); /* nil: it was given none */
VALUE hw_thread_site(VALUE thread); /* where it was created; "" for the main thread */
bool hw_in_main_ractor(void);
VALUE hw_living_threads(void); /* the VM's Thread.list: a program's own may leave some out, tell of others, or let others run */

/* stillborn.c */
void hw_stillborn_init(void);
void hw_stillborn_look(void); /* from STARTED: whether there are too many records is looked at */

/* class_blocks.c */
void hw_class_blocks_init(VALUE native);
void hw_class_blocks_end(const struct hw_thread *record); /* its thread ends; with the GVL */
void hw_class_blocks_after_fork_child(void); /* after the runtime's */

/* yield.c */
void hw_yield_init(void);
void hw_trigger(void);       /* makes the calling context run the job; async-signal-safe */
rb_postponed_job_handle_t hw_preregister(void (*job)(void *)); /* RuntimeError: the VM has no room for another */
VALUE hw_pass(VALUE self);

/* blame.c */
extern struct hw_stacks hw_stacks;
extern struct hw_strings hw_strings;
void hw_blame_init(VALUE native);
bool hw_blame_prepare(void);    /* with the GVL: false when memory is short */
void hw_blame_back(struct hw_thread *record);  /* in the hook of a thread that got the GVL, on it */
void hw_blame_block(struct hw_thread *record); /* in the job, as the next */
void hw_blame_sample(const struct hw_thread *record, uint64_t weight_ns, uint64_t now); /* in the job */

/* record.c */
void hw_record_init(VALUE headway, VALUE native);
bool hw_record_takes(void);     /* whether something records, and goes on to */
void hw_record_finish(void);    /* when the VM ends */

/* definitions.c */
void hw_record_thread_started(void);
void hw_record_thread_end(VALUE thread, const struct hw_thread *record, VALUE name);

/* mark.c */
void hw_mark_init(VALUE headway, VALUE native);
VALUE hw_begin_span(VALUE name, enum hw_span span); /* nil when nothing records */
void hw_queued_span(VALUE begun, uint64_t queued_ns); /* what hw_begin_span returned, while it lasts: how long its work stood in a queue */
void hw_end_span(VALUE begun, VALUE name); /* what hw_begin_span returned, and a better name or nil; on any thread */

/* collections.c */
void hw_collections_attend(void); /* takes or gives up the hook, after Headway or a recording was started or stopped; with the GVL */

/* poll_set.c */
void hw_poll_set_init(VALUE native);

/* keep_error.c */
void hw_keep_error_init(VALUE native);

/* io_hooks.c */
void hw_io_hooks_init(VALUE native);

/* address_hook.c */
void hw_address_hook_init(VALUE native);

/* interrupt_hook.c */
void hw_interrupt_hook_init(VALUE native);

/* stall.c */
void hw_stall_init(VALUE native);
void hw_stall_begin(VALUE watch); /* of a Native::LoopWatch */
VALUE hw_stall_end(VALUE watch); /* nil, or of a turn that was too long [seconds, backtrace or nil] */
bool hw_stall_of_loop(VALUE watch, VALUE scheduler); /* whose turns come, nil: nobody's; false: it was closed */

/* loops.c */
void hw_loops_init(VALUE native);
void hw_loops_attend(void); /* takes the hook, after a recording was started; with the GVL, in the main Ractor */

/* stats.c */
void hw_stats_init(VALUE native);
bool hw_read_account(VALUE thread, uint64_t now, uint64_t *time_ns); /* by state; false: Headway doesn't know the thread, or isn't started */
VALUE hw_account_array(const uint64_t *time_ns); /* [running_s, ready_s, suspended_s] */

/* work.c */
void hw_work_init(VALUE native);
bool hw_work_under_way(void); /* whether the current thread is at some, and a span that begins now is part of it */
uint64_t hw_work_queued_ns(VALUE work); /* UINT64_MAX: not known */
void hw_work_times(VALUE work, uint64_t *time_ns); /* what each state took of it, as it was seen last */

/* headway.c */
extern unsigned long hw_forks; /* from the first process to this one, but for daemons */

/* work_sums.c */
void hw_work_sums_init(VALUE native);

/* caller.c */
bool hw_called_by_c(VALUE *caller); /* whether C called the method in C that asks; the caller's frame goes to caller, if not NULL */
bool hw_amid_wakeups(void); /* whether the VM is waking many, and must not be switched away from */
bool hw_frame_named(VALUE frame, const char *name);
bool hw_frame_in(VALUE frame, const char *file);

/* offload.c, operation.c */
void hw_offload_init(VALUE native);
void hw_operation_init(VALUE native);

/* control_methods.c */
void hw_control_methods_init(VALUE native);

/* metered.c */
void hw_metered_init(VALUE native);

/* metrics.c */
#define HW_BOUNDS_MOST 64
void hw_metrics_init(VALUE native);
long hw_read_bounds(VALUE array, uint64_t *bounds_ns); /* how many there are; ArgumentError */
VALUE hw_distribution(const uint64_t *counts, long bounds, uint64_t sum_ns, uint64_t count); /* [counts up to each bound, sum_s, count] */

#endif
