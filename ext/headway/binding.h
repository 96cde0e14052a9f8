/* The binding's own header: what its files share. The binding translates between the VM and the runtime; it decides nothing. */
#ifndef HW_BINDING_H
#define HW_BINDING_H

#include "control.h"

#include <ruby.h>
#include <ruby/thread.h>

extern struct hw_runtime hw_runtime;
extern struct hw_control hw_control;

/* hooks.c */
void hw_hooks_init(void);    /* takes the thread-specific key; with the GVL, in the main Ractor */
const char *hw_hooks_add(void); /* installs the hooks and adds the threads there are; NULL, or the reason it can't */
void hw_hooks_remove(void);
struct hw_thread *hw_record_of(VALUE thread); /* NULL: not tracked */
void hw_hooks_forget(VALUE thread);
bool hw_in_main_ractor(void);

/* yield.c */
void hw_yield_init(void);
void hw_trigger(void);       /* makes the calling context run the job; async-signal-safe */
VALUE hw_pass(VALUE self);

/* stats.c */
void hw_stats_init(VALUE native);

/* errands.c */
void hw_errands_init(VALUE native);
void hw_errands_after_fork(void); /* in the child */

#endif
