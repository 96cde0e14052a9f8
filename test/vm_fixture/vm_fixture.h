#ifndef VM_FIXTURE_H
#define VM_FIXTURE_H

#include <ruby.h>
#include <ruby/atomic.h>
#include <ruby/debug.h>
#include <ruby/ractor.h>
#include <ruby/thread.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* One file per job; each adds its methods to the VMFixture module. */
void Init_gvl(VALUE module);
void Init_events(VALUE module);
void Init_jobs(VALUE module);
void Init_signals(VALUE module);
void Init_probes(VALUE module);
void Init_processors(VALUE module);

/* clock.c: helpers that need no GVL and never touch Ruby */
uint64_t now_ns(void);
uint64_t ns_from_seconds(VALUE seconds);
void spin_ns(uint64_t duration_ns);

/* events.c: the number of a thread; safe in a hook or a signal handler */
long thread_number(VALUE thread);

/* jobs.c: flags the calling thread; safe in a hook or a signal handler */
void trigger_job(void);

#endif
