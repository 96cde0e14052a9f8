/* The GVL of the VM in miniature: its ready queue, the hooks' events, and what threads do with and without it. */
#ifndef HW_TEST_VM_GVL_H
#define HW_TEST_VM_GVL_H

#include "runtime.h"
#include "test.h"
#include "times.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define VM_THREADS 64
#define VM_STACK_BYTES (512 << 10)

struct vm_thread {
    struct hw_thread *_Atomic record; /* the thread-specific key */
    bool used, asleep;
    pthread_cond_t turn;
    struct vm_thread *next;           /* in the ready queue */
    void (*body)(void *arg);
    void *arg;

    atomic_bool job_due, pending;     /* interrupt bits */
    atomic_bool raised;               /* an exception in its queue */
    pthread_mutex_t interrupt_lock;
    void (*unblock)(void *);
    void *unblock_arg;
    bool in_job, took;                /* took: an exception it has yet to raise */
    uint64_t resumed_ns;
    atomic_ullong rounds;             /* of its body: whoever stands still doesn't count on */
};

static struct {
    pthread_mutex_t lock;             /* the VM's scheduler lock */
    struct vm_thread threads[VM_THREADS];
    struct vm_thread *_Atomic running;
    struct vm_thread *head, *tail;
    unsigned alive;
    atomic_ullong slice_ns;           /* the VM's own time slice: 100 ms, but tests are short */
    atomic_ullong progress;           /* holds that began */
    atomic_ullong jobs, raises;
    atomic_ullong parked_triggers;    /* of the job, by a thread that is parked: for itself, as anybody's */
} vm;

static struct hw_runtime runtime;
static _Thread_local struct vm_thread *current;

/* What goes wrong on another thread than the test's ends the program. */
#define VM_ASSERT(condition)                                                                                                   \
    do {                                                                                                                       \
        if (!(condition)) {                                                                                                    \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                                            \
            abort();                                                                                                           \
        }                                                                                                                      \
    } while (0)

/* -- events ------------------------------------------------------------------------------------------------------------- */

/* With the GVL: whoever is bound waits for it, and nothing else. */
static inline void
vm_check_bound(void)
{
    VM_ASSERT(runtime.bound == NULL || !runtime.bound->yielding);
}

static inline void
vm_event(struct vm_thread *thread, enum hw_event event)
{
    if (!atomic_load_explicit(&runtime.active, memory_order_acquire)) return;
    struct hw_thread *record = atomic_load(&thread->record);
    if (record == NULL) return;
    if (event == HW_EVENT_EXITED) atomic_store(&thread->record, NULL);
    if (event == HW_EVENT_RESUMED) record->called_back = atomic_load(&thread->pending);
    hw_runtime_event(&runtime, record, event);
    if (event == HW_EVENT_SUSPENDED) vm_check_bound();
}

/* -- the GVL; vm.lock is held ------------------------------------------------------------------------------------------- */

static inline void
vm_to_ready(struct vm_thread *thread)
{
    if (atomic_load(&vm.running) == NULL) {
        atomic_store(&vm.running, thread);
        pthread_cond_signal(&thread->turn);
    }
    else {
        thread->next = NULL;
        if (vm.tail) vm.tail->next = thread;
        else vm.head = thread;
        vm.tail = thread;
    }
    vm_event(thread, HW_EVENT_READY);
}

static inline void
vm_wait_turn(struct vm_thread *thread)
{
    while (atomic_load(&vm.running) != thread) pthread_cond_wait(&thread->turn, &vm.lock);
    atomic_fetch_add(&vm.progress, 1);
    thread->resumed_ns = hw_now_ns();
    vm_event(thread, HW_EVENT_RESUMED);
}

static inline void
vm_to_next(void)
{
    struct vm_thread *next = vm.head;
    if (next) {
        vm.head = next->next;
        if (vm.head == NULL) vm.tail = NULL;
        pthread_cond_signal(&next->turn);
    }
    atomic_store(&vm.running, next);
}

/* -- what threads do ---------------------------------------------------------------------------------------------------- */

static inline void
vm_acquire(void)
{
    pthread_mutex_lock(&vm.lock);
    vm_to_ready(current);
    vm_wait_turn(current);
    pthread_mutex_unlock(&vm.lock);
}

static inline void
vm_release(void)
{
    pthread_mutex_lock(&vm.lock);
    VM_ASSERT(atomic_load(&vm.running) == current);
    vm_event(current, HW_EVENT_SUSPENDED);
    vm_to_next();
    pthread_mutex_unlock(&vm.lock);
}

/* A blocking region with RB_NOGVL_INTR_FAIL, in the job. */
static inline void *
vm_nogvl(void *(*function)(void *), void *arg, void (*unblock)(void *), void *unblock_arg)
{
    pthread_mutex_lock(&current->interrupt_lock);
    bool declines = atomic_load(&current->pending);
    if (!declines) {
        current->unblock = unblock;
        current->unblock_arg = unblock_arg;
    }
    pthread_mutex_unlock(&current->interrupt_lock);
    if (declines) return NULL;

    vm_release();
    void *result = function(arg);
    pthread_mutex_lock(&current->interrupt_lock);
    current->unblock = NULL;
    pthread_mutex_unlock(&current->interrupt_lock);
    vm_acquire();
    return result;
}

/* Any thread, even one the VM doesn't know; the target lives. */
static inline void
vm_interrupt(struct vm_thread *thread)
{
    pthread_mutex_lock(&thread->interrupt_lock);
    atomic_store(&thread->pending, true);
    if (thread->unblock) thread->unblock(thread->unblock_arg);
    pthread_mutex_unlock(&thread->interrupt_lock);
}

/* Thread#raise: with the GVL, the target lives. */
static inline void
vm_raise(struct vm_thread *thread)
{
    VM_ASSERT(atomic_load(&vm.running) == current);
    atomic_store(&thread->raised, true);
    vm_interrupt(thread);
}

static inline void
sleep_ns(uint64_t ns)
{
    struct timespec length = { (time_t)(ns / HW_NS_PER_S), (long)(ns % HW_NS_PER_S) };
    nanosleep(&length, NULL);
}

static inline void
vm_sleep(uint64_t ns)
{
    vm_release();
    sleep_ns(ns);
    vm_acquire();
}

/* Queue#pop and Queue#push: the waker says READY for the sleeper. */
static inline void
vm_wait_for_wake(void)
{
    pthread_mutex_lock(&vm.lock);
    current->asleep = true;
    vm_event(current, HW_EVENT_SUSPENDED);
    vm_to_next();
    vm_wait_turn(current);
    pthread_mutex_unlock(&vm.lock);
}

static inline void
vm_wake(struct vm_thread *thread)
{
    pthread_mutex_lock(&vm.lock);
    if (thread->asleep) {
        thread->asleep = false;
        vm_to_ready(thread);
    }
    pthread_mutex_unlock(&vm.lock);
}

#endif
