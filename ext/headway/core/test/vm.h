/* A VM in miniature on real threads: a GVL with a ready queue served first come first served, event hooks called as CRuby calls
 * them (READY under the VM's lock, on whoever wakes the thread; RESUMED on the thread itself; SUSPENDED; EXITED right after a
 * SUSPENDED), interrupt checks that run the job of yield.c, and calls without the GVL that an interrupt can cut short.
 *
 * Records of its threads are static and reused, never freed, as a late look at one must be harmless. */
#ifndef HW_TEST_VM_H
#define HW_TEST_VM_H

#include "runtime.h"
#include "test.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define MS(ms) ((uint64_t)((ms) * 1e6))
#define US(us) ((uint64_t)((us) * 1e3))
#define VM_THREADS 64
#define DECLINED_RETRY_NS US(100)

struct vm_thread {
    struct hw_thread *_Atomic record; /* the thread-specific key */
    bool used, asleep;
    pthread_cond_t turn;
    struct vm_thread *next;           /* in the ready queue */
    void (*body)(void *arg);
    void *arg;

    atomic_bool job_due, pending;     /* interrupt bits */
    pthread_mutex_t interrupt_lock;
    void (*unblock)(void *);
    void *unblock_arg;
    bool in_job;
    uint64_t resumed_ns;
    atomic_ullong rounds;             /* of its body: whoever stands still doesn't count on */
};

static struct {
    pthread_mutex_t lock;             /* the VM's scheduler lock */
    struct vm_thread threads[VM_THREADS];
    struct vm_thread *_Atomic running;
    struct vm_thread *head, *tail;
    unsigned alive;
    atomic_ullong first_park_ns;      /* 5 ms, as in yield.c */
    atomic_ullong slice_ns;           /* the VM's own time slice: 100 ms, but tests are short */
    atomic_ullong progress;           /* holds that began */
    atomic_ullong jobs, raises;
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

static void
vm_event(struct vm_thread *thread, enum hw_event event)
{
    if (!atomic_load_explicit(&runtime.active, memory_order_acquire)) return;
    struct hw_thread *record = atomic_load(&thread->record);
    if (record == NULL) return;
    if (event == HW_EVENT_EXITED) atomic_store(&thread->record, NULL);
    hw_runtime_event(&runtime, record, event);
}

/* -- the GVL; vm.lock is held ------------------------------------------------------------------------------------------- */

static void
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

static void
vm_wait_turn(struct vm_thread *thread)
{
    while (atomic_load(&vm.running) != thread) pthread_cond_wait(&thread->turn, &vm.lock);
    atomic_fetch_add(&vm.progress, 1);
    thread->resumed_ns = hw_now_ns();
    vm_event(thread, HW_EVENT_RESUMED);
}

static void
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

static void
vm_acquire(void)
{
    pthread_mutex_lock(&vm.lock);
    vm_to_ready(current);
    vm_wait_turn(current);
    pthread_mutex_unlock(&vm.lock);
}

static void
vm_release(void)
{
    pthread_mutex_lock(&vm.lock);
    VM_ASSERT(atomic_load(&vm.running) == current);
    vm_event(current, HW_EVENT_SUSPENDED);
    vm_to_next();
    pthread_mutex_unlock(&vm.lock);
}

/* A blocking region with RB_NOGVL_INTR_FAIL. */
static void *
vm_nogvl(void *(*function)(void *), void *arg, void (*unblock)(void *), void *unblock_arg)
{
    pthread_mutex_lock(&current->interrupt_lock);
    bool declines = atomic_load(&current->job_due) || atomic_load(&current->pending);
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

/* Thread#raise: any thread, the target lives. */
static void
vm_interrupt(struct vm_thread *thread)
{
    pthread_mutex_lock(&thread->interrupt_lock);
    atomic_store(&thread->pending, true);
    if (thread->unblock) thread->unblock(thread->unblock_arg);
    pthread_mutex_unlock(&thread->interrupt_lock);
}

static void
sleep_ns(uint64_t ns)
{
    struct timespec length = { (time_t)(ns / HW_NS_PER_S), (long)(ns % HW_NS_PER_S) };
    nanosleep(&length, NULL);
}

static void
vm_sleep(uint64_t ns)
{
    vm_release();
    sleep_ns(ns);
    vm_acquire();
}

/* Queue#pop and Queue#push: the waker says READY for the sleeper. */
static void
vm_wait_for_wake(void)
{
    pthread_mutex_lock(&vm.lock);
    current->asleep = true;
    vm_event(current, HW_EVENT_SUSPENDED);
    vm_to_next();
    vm_wait_turn(current);
    pthread_mutex_unlock(&vm.lock);
}

static void
vm_wake(struct vm_thread *thread)
{
    pthread_mutex_lock(&vm.lock);
    if (thread->asleep) {
        thread->asleep = false;
        vm_to_ready(thread);
    }
    pthread_mutex_unlock(&vm.lock);
}

/* -- the job, as in yield.c --------------------------------------------------------------------------------------------- */

struct vm_park {
    struct hw_thread *record;
    uint64_t until_ns;
    bool wait;
};

static void *
vm_park(void *arg)
{
    struct vm_park *park = arg;
    if (park->wait) hw_runtime_park(&runtime, park->record, park->until_ns);
    return park;
}

static void
vm_unpark(void *arg)
{
    hw_runtime_unpark(&runtime, ((struct vm_park *)arg)->record);
}

static bool
vm_give_way(struct hw_thread *record, uint64_t until_ns)
{
    struct vm_park park = { record, until_ns, runtime.scheduler.policy.kind == HW_FAIR };
    atomic_store(&record->interrupted, false);
    record->yielding = true;
    bool ran = vm_nogvl(vm_park, &park, vm_unpark, &park) != NULL;
    record->yielding = false;
    if (!ran) {
        pthread_mutex_lock(&runtime.lock);
        uint64_t at_ns = hw_now_ns() + DECLINED_RETRY_NS;
        if (at_ns < runtime.tick_ns) hw_ticker_at(&runtime, at_ns);
        pthread_mutex_unlock(&runtime.lock);
    }
    return ran && !atomic_load(&record->interrupted);
}

static bool
vm_must_yield(struct hw_thread *record)
{
    if (!atomic_load(&runtime.active)) return false;
    pthread_mutex_lock(&runtime.lock);
    bool must = hw_scheduler_must_yield(&runtime.scheduler, record, hw_now_ns());
    pthread_mutex_unlock(&runtime.lock);
    return must;
}

static void
vm_job(void)
{
    struct hw_thread *record = atomic_load(&current->record);
    VM_ASSERT(!current->in_job);
    if (record == NULL || !vm_must_yield(record)) return;
    current->in_job = true;
    atomic_fetch_add(&vm.jobs, 1);
    bool clean = record->clean_resume == record->resumes;
    record->clean_resume = 0;
    uint64_t until_ns = clean ? HW_NEVER : hw_now_ns() + atomic_load(&vm.first_park_ns);
    while (vm_give_way(record, until_ns) && vm_must_yield(record)) {
        if (!clean) {
            record->clean_resume = record->resumes;
            atomic_store(&current->job_due, true);
            break;
        }
    }
    current->in_job = false;
}

/* From the signal's handler on the holder, from the holder itself, or from the ticker, which is no thread of the VM's. */
static void
vm_trigger(void)
{
    struct vm_thread *thread = current ? current : atomic_load(&vm.running);
    if (thread) atomic_store(&thread->job_due, true);
}

/* The VM's own time slice. */
static void
vm_slice(void)
{
    pthread_mutex_lock(&vm.lock);
    if (vm.head) {
        vm_event(current, HW_EVENT_SUSPENDED);
        vm_to_next();
        vm_to_ready(current);
        vm_wait_turn(current);
    }
    pthread_mutex_unlock(&vm.lock);
}

static void
vm_check_interrupts(void)
{
    if (atomic_load(&current->pending)) {
        atomic_store(&current->pending, false);
        atomic_fetch_add(&vm.raises, 1);
    }
    if (atomic_exchange(&current->job_due, false)) vm_job();
    if (hw_now_ns() - current->resumed_ns > atomic_load(&vm.slice_ns)) vm_slice();
}

static void
vm_compute(uint64_t ns)
{
    uint64_t end_ns = hw_now_ns() + ns;
    do {
        vm_check_interrupts();
        for (volatile int i = 0; i < 200; i++) continue;
    } while (hw_now_ns() < end_ns);
}

/* -- threads ------------------------------------------------------------------------------------------------------------ */

static void *
vm_thread_main(void *arg)
{
    current = arg;
    pthread_mutex_lock(&vm.lock);
    vm_wait_turn(current);
    pthread_mutex_unlock(&vm.lock);

    current->body(current->arg);

    pthread_mutex_lock(&vm.lock);
    vm_event(current, HW_EVENT_SUSPENDED);
    vm_event(current, HW_EVENT_EXITED);
    vm_to_next();
    current->used = false;
    vm.alive--;
    pthread_mutex_unlock(&vm.lock);
    current = NULL;
    return NULL;
}

static struct vm_thread *
vm_take_thread(void)
{
    for (int i = 0; i < VM_THREADS; i++) {
        struct vm_thread *thread = &vm.threads[i];
        if (thread->used) continue;
        thread->used = true;
        thread->asleep = thread->in_job = false;
        atomic_store(&thread->record, NULL);
        atomic_store(&thread->job_due, false);
        atomic_store(&thread->pending, false);
        atomic_store(&thread->rounds, 0);
        vm.alive++;
        return thread;
    }
    return NULL;
}

/* With the GVL. NULL when there are too many. */
static struct vm_thread *
vm_thread_start(void (*body)(void *), void *arg)
{
    pthread_mutex_lock(&vm.lock);
    struct vm_thread *thread = vm_take_thread();
    pthread_mutex_unlock(&vm.lock);
    if (thread == NULL) return NULL;
    thread->body = body;
    thread->arg = arg;
    if (atomic_load(&runtime.active)) {
        atomic_store(&thread->record, hw_runtime_add(&runtime, HW_SUSPENDED, true));
        hw_ticker_ensure(&runtime);
    }
    pthread_mutex_lock(&vm.lock);
    vm_to_ready(thread);
    pthread_mutex_unlock(&vm.lock);

    pthread_t pthread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    VM_ASSERT(pthread_create(&pthread, &attributes, vm_thread_main, thread) == 0);
    pthread_attr_destroy(&attributes);
    return thread;
}

static unsigned
vm_alive(void)
{
    pthread_mutex_lock(&vm.lock);
    unsigned alive = vm.alive;
    pthread_mutex_unlock(&vm.lock);
    return alive;
}

/* -- Headway.start and stop, as in headway.c and hooks.c ---------------------------------------------------------------- */

static void
vm_headway_start(enum hw_policy_kind kind, uint64_t quantum_ns, enum hw_preempt preempt)
{
    struct hw_policy policy = hw_policy_default;
    policy.kind = kind;
    policy.quantum_ns = quantum_ns;
    if (atomic_load(&runtime.active)) {
        hw_runtime_configure(&runtime, &policy, preempt);
        return;
    }
    for (int i = 0; i < VM_THREADS; i++) {
        struct vm_thread *thread = &vm.threads[i];
        pthread_mutex_lock(&vm.lock);
        bool used = thread->used;
        pthread_mutex_unlock(&vm.lock);
        if (!used) continue;
        enum hw_state state = thread == current ? HW_RUNNING : HW_SUSPENDED;
        struct hw_thread *record = atomic_load(&thread->record);
        if (record) hw_runtime_revive(&runtime, record, state);
        else atomic_store(&thread->record, record = hw_runtime_add(&runtime, state, false));
        record->seen = true;
    }
    hw_runtime_sweep(&runtime);
    hw_runtime_reset(&runtime);
    VM_ASSERT(hw_runtime_start(&runtime, &policy, preempt));
}

/* Headway.batch { } and the like */
static void
vm_set_class(enum hw_class set_class)
{
    hw_runtime_set_class(&runtime, atomic_load(&current->record), set_class);
}

static void
vm_headway_stop(void)
{
    if (atomic_load(&runtime.active)) hw_runtime_stop(&runtime);
}

/* -- fork and the beginning --------------------------------------------------------------------------------------------- */

static void vm_before_fork(void) { hw_runtime_before_fork(&runtime); }
static void vm_after_fork_parent(void) { hw_runtime_after_fork_parent(&runtime); }
static void vm_after_fork_child(void) { hw_runtime_after_fork_child(&runtime); }

static void
vm_init_locks(void)
{
    pthread_mutex_init(&vm.lock, NULL);
    for (int i = 0; i < VM_THREADS; i++) {
        pthread_mutex_init(&vm.threads[i].interrupt_lock, NULL);
        pthread_cond_init(&vm.threads[i].turn, NULL);
    }
}

/* With the GVL. In the child the caller alone lives. */
static pid_t
vm_fork(void)
{
    pid_t pid = fork();
    if (pid != 0) return pid;
    vm_init_locks();
    for (int i = 0; i < VM_THREADS; i++) {
        vm.threads[i].used = &vm.threads[i] == current;
        vm.threads[i].asleep = false;
    }
    vm.head = vm.tail = NULL;
    vm.alive = 1;
    return 0;
}

static void
vm_boot(void)
{
    vm_init_locks();
    atomic_store(&vm.slice_ns, MS(20));
    atomic_store(&vm.first_park_ns, MS(5));
    VM_ASSERT(hw_runtime_init(&runtime, vm_trigger));
    pthread_atfork(vm_before_fork, vm_after_fork_parent, vm_after_fork_child);
    current = vm_take_thread();
    atomic_store(&vm.running, current);
}

#endif
