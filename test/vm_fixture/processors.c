/* Where native threads may run, and a filter that kills who asks to change it. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "vm_fixture.h"

#ifdef __linux__
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#endif

/* The processors a native thread may run on; elsewhere than on Linux always the same. */
static VALUE
processors_of(VALUE self, VALUE native_id)
{
    VALUE list = rb_ary_new();
#ifdef __linux__
    cpu_set_t set;
    if (sched_getaffinity(NUM2INT(native_id), sizeof(set), &set) != 0) rb_sys_fail("sched_getaffinity");
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &set)) rb_ary_push(list, INT2FIX(i));
#else
    rb_ary_push(list, INT2FIX(0));
#endif
    return list;
}

/* Of the current thread. */
static VALUE
processors(VALUE self)
{
    return processors_of(self, INT2FIX(0));
}

static VALUE
set_processors(VALUE self, VALUE list)
{
#ifdef __linux__
    cpu_set_t set;
    CPU_ZERO(&set);
    for (long i = 0; i < RARRAY_LEN(list); i++) CPU_SET(NUM2INT(RARRAY_AREF(list, i)), &set);
    if (sched_setaffinity(0, sizeof(set), &set) != 0) rb_sys_fail("sched_setaffinity");
#endif
    return list;
}

/* From here on a thread that sets its processors or its attributes of scheduling kills the process, as under systemd's
 * SystemCallFilter=~@resources; or nothing does, but there is a filter, as in most containers. Returns whether there is such a thing. */
static VALUE
filter_calls(VALUE self, VALUE deadly)
{
#if defined(__linux__) && defined(SYS_sched_setattr)
    unsigned action = RTEST(deadly) ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_ALLOW;
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sched_setattr, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sched_setaffinity, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, action),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { sizeof(code) / sizeof(*code), code };
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) rb_sys_fail("prctl");
    return Qtrue;
#else
    return Qfalse;
#endif
}

void
Init_processors(VALUE module)
{
    rb_define_module_function(module, "processors", processors, 0);
    rb_define_module_function(module, "processors_of", processors_of, 1);
    rb_define_module_function(module, "processors=", set_processors, 1);
    rb_define_module_function(module, "filter_calls", filter_calls, 1);
}
