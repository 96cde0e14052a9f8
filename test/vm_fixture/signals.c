/* Signals as C sees them: handlers, dispositions, masks, and a storm of them. */

#include "vm_fixture.h"

#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static struct sigaction before_ours;
static bool handler_installed;

/* On whichever thread the signal hits. */
static void
trigger_from_signal(int signal_number)
{
    const int saved_errno = errno;
    trigger_job();
    errno = saved_errno;
}

/* Makes SIGURG trigger the job on the thread it is sent to. */
static VALUE
install_job_signal(VALUE self)
{
    struct sigaction action = {.sa_handler = trigger_from_signal, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    if (!handler_installed && sigaction(SIGURG, &action, &before_ours) != 0) rb_sys_fail("sigaction");
    handler_installed = true;
    return Qnil;
}

static VALUE
remove_job_signal(VALUE self)
{
    if (handler_installed && sigaction(SIGURG, &before_ours, NULL) != 0) rb_sys_fail("sigaction");
    handler_installed = false;
    return Qnil;
}

/* Returns :default, :ignore or [handler address, flags]. */
static VALUE
disposition(VALUE self, VALUE signal_number)
{
    struct sigaction action;
    if (sigaction(NUM2INT(signal_number), NULL, &action) != 0) rb_sys_fail("sigaction");
    if (action.sa_handler == SIG_DFL) return ID2SYM(rb_intern("default"));
    if (action.sa_handler == SIG_IGN) return ID2SYM(rb_intern("ignore"));
    return rb_ary_new_from_args(2, ULL2NUM((uintptr_t)action.sa_handler), INT2NUM(action.sa_flags));
}

/* The signals this native thread blocks. */
static VALUE
blocked_signals(VALUE self)
{
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    const VALUE blocked = rb_ary_new();
    for (int number = 1; number < 32; number++) {
        if (sigismember(&mask, number)) rb_ary_push(blocked, INT2NUM(number));
    }
    return blocked;
}

/* One storm at a time: a native thread unknown to Ruby that signals one task over and over. */
static struct {
    pthread_t thread;
    atomic_bool running;
    pid_t target;
    int signal_number;
    uint64_t interval_ns;
    long sent;
} storm;

static void *
storm_main(void *unused)
{
    const struct timespec pause = {0, (long)storm.interval_ns};
    while (atomic_load(&storm.running)) {
        if (syscall(SYS_tgkill, getpid(), storm.target, storm.signal_number) == 0) storm.sent++;
        nanosleep(&pause, NULL);
    }
    return NULL;
}

/* native_thread_id: as Thread#native_thread_id gives it, once the thread has run */
static VALUE
start_storm(VALUE self, VALUE native_thread_id, VALUE signal_number, VALUE interval_seconds)
{
    if (atomic_load(&storm.running)) rb_raise(rb_eRuntimeError, "one storm at a time");
    storm.target = NUM2INT(native_thread_id);
    storm.signal_number = NUM2INT(signal_number);
    storm.interval_ns = ns_from_seconds(interval_seconds);
    storm.sent = 0;
    atomic_store(&storm.running, true);
    if (pthread_create(&storm.thread, NULL, storm_main, NULL) != 0) rb_sys_fail("pthread_create");
    return Qnil;
}

static VALUE
stop_storm(VALUE self)
{
    if (!atomic_exchange(&storm.running, false)) return INT2FIX(0);
    pthread_join(storm.thread, NULL);
    return LONG2NUM(storm.sent);
}

/* -- a library's thread-local storage, which the C library may allocate when it is first used, in a handler, too --------------- */

struct storage {
    const char *library;
    void *block;
};

static int
find_storage(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct storage *storage = arg;
    if (strstr(info->dlpi_name, storage->library) == NULL) return 0;
    storage->block = info->dlpi_tls_data;
    return 1;
}

static void *
receive_signal(void *arg)
{
    struct storage *storages = arg;
    dl_iterate_phdr(find_storage, &storages[0]);
    pthread_sigqueue(pthread_self(), SIGURG, (union sigval){0});
    dl_iterate_phdr(find_storage, &storages[1]);
    return NULL;
}

/* Whether a new native thread has the library's storage: before and after a SIGURG that isn't ours. */
static VALUE
storage_around_signal(VALUE self, VALUE library)
{
    struct storage storages[2] = {{StringValueCStr(library), NULL}, {StringValueCStr(library), NULL}};
    pthread_t thread;
    if (pthread_create(&thread, NULL, receive_signal, storages) != 0) rb_sys_fail("pthread_create");
    pthread_join(thread, NULL);
    RB_GC_GUARD(library);
    return rb_ary_new_from_args(2, storages[0].block ? Qtrue : Qfalse, storages[1].block ? Qtrue : Qfalse);
}

void
Init_signals(VALUE module)
{
    rb_define_module_function(module, "install_job_signal", install_job_signal, 0);
    rb_define_module_function(module, "remove_job_signal", remove_job_signal, 0);
    rb_define_module_function(module, "disposition", disposition, 1);
    rb_define_module_function(module, "blocked_signals", blocked_signals, 0);
    rb_define_module_function(module, "storage_around_signal", storage_around_signal, 1);
    rb_define_module_function(module, "start_storm", start_storm, 3);
    rb_define_module_function(module, "stop_storm", stop_storm, 0);
}
