/* A VM in miniature on real threads: a GVL with a ready queue served first come first served, event hooks called as CRuby calls
 * them (READY under the VM's lock, on whoever wakes the thread; RESUMED on the thread itself; SUSPENDED; EXITED right after a
 * SUSPENDED), interrupt checks that run the job of yield.c, and calls without the GVL that an interrupt can cut short.
 *
 * Records of its threads are static and reused, never freed, as a late look at one must be harmless. */
#ifndef HW_TEST_VM_H
#define HW_TEST_VM_H

#include "vm_job.h"

/* -- threads ------------------------------------------------------------------------------------------------------------ */

static inline void *
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

static inline struct vm_thread *
vm_take_thread(void)
{
    for (int i = 0; i < VM_THREADS; i++) {
        struct vm_thread *thread = &vm.threads[i];
        if (thread->used) continue;
        thread->used = true;
        thread->asleep = thread->in_job = thread->took = false;
        atomic_store(&thread->record, NULL);
        atomic_store(&thread->job_due, false);
        atomic_store(&thread->pending, false);
        atomic_store(&thread->raised, false);
        atomic_store(&thread->rounds, 0);
        vm.alive++;
        return thread;
    }
    return NULL;
}

/* With the GVL. NULL when there are too many. */
static inline struct vm_thread *
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
    /* So small that the C library keeps them all for further threads. Freed by an ending thread while another one forks, one leaves the
     * address sanitizer's lock taken in the child, which then hangs. */
    pthread_attr_setstacksize(&attributes, VM_STACK_BYTES);
    VM_ASSERT(pthread_create(&pthread, &attributes, vm_thread_main, thread) == 0);
    pthread_attr_destroy(&attributes);
    return thread;
}

static inline unsigned
vm_alive(void)
{
    pthread_mutex_lock(&vm.lock);
    unsigned alive = vm.alive;
    pthread_mutex_unlock(&vm.lock);
    return alive;
}

/* -- Headway.start and stop, as in headway.c and hooks.c ---------------------------------------------------------------- */

static inline void
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
    hw_runtime_sweep(&runtime, false);
    hw_runtime_reset(&runtime);
    VM_ASSERT(hw_runtime_start(&runtime, &policy, preempt, true));
}

/* Headway.batch { } and the like */
static inline void
vm_set_class(enum hw_class set_class)
{
    hw_runtime_set_class(&runtime, atomic_load(&current->record), set_class);
}

static inline void
vm_headway_stop(void)
{
    if (atomic_load(&runtime.active)) hw_runtime_stop(&runtime);
}

/* -- fork and the beginning --------------------------------------------------------------------------------------------- */

static void vm_before_fork(void) { hw_runtime_before_fork(&runtime); }
static void vm_after_fork_parent(void) { hw_runtime_after_fork_parent(&runtime); }
static void vm_after_fork_child(void) { hw_runtime_after_fork_child(&runtime); }

static inline void
vm_init_locks(void)
{
    pthread_mutex_init(&vm.lock, NULL);
    for (int i = 0; i < VM_THREADS; i++) {
        pthread_mutex_init(&vm.threads[i].interrupt_lock, NULL);
        pthread_cond_init(&vm.threads[i].turn, NULL);
    }
}

/* With the GVL. In the child the caller alone lives. */
static inline pid_t
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

static inline void
vm_boot(void)
{
    vm_init_locks();
    atomic_store(&vm.slice_ns, MS(20));
    VM_ASSERT(hw_runtime_init(&runtime, vm_trigger));
    pthread_atfork(vm_before_fork, vm_after_fork_parent, vm_after_fork_child);
    current = vm_take_thread();
    atomic_store(&vm.running, current);
}

#endif
