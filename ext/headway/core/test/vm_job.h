/* Preemption in the VM in miniature: the job, as in yield.c, the signal, and the VM's own time slice. */
#ifndef HW_TEST_VM_JOB_H
#define HW_TEST_VM_JOB_H

#include "vm_gvl.h"

static inline void *
vm_park(void *record)
{
    hw_runtime_park(&runtime, record);
    return record;
}

static inline void
vm_unpark(void *record)
{
    hw_runtime_unpark(&runtime, record);
}

static inline bool
vm_give_way(struct hw_thread *record)
{
    VM_ASSERT(!current->took);
    hw_runtime_pull_next(&runtime, record);
    vm_check_bound();
    atomic_store(&record->interrupted, false);
    record->yielding = true;
    bool ran = vm_nogvl(vm_park, record, vm_unpark, record) != NULL;
    record->yielding = false;
    if (!ran) hw_runtime_pull_nobody(&runtime);
    return ran && !atomic_load(&record->interrupted);
}

static inline bool
vm_must_yield(struct hw_thread *record)
{
    if (!atomic_load(&runtime.active)) return false;
    pthread_mutex_lock(&runtime.lock);
    bool must = hw_scheduler_must_yield(&runtime.scheduler, record, hw_now_ns());
    pthread_mutex_unlock(&runtime.lock);
    return must;
}

/* All checks look alike here, so that where the job triggered itself needs no telling. */
static inline void
vm_job(void)
{
    struct hw_thread *record = atomic_load(&current->record);
    VM_ASSERT(!current->in_job);
    if (record == NULL) return;
    bool again = record->job_resume == record->resumes;
    record->job_resume = 0;
    if (!vm_must_yield(record)) return;
    if (!again) {
        record->job_resume = record->resumes;
        atomic_store(&current->job_due, true);
        return;
    }
    current->in_job = true;
    atomic_fetch_add(&vm.jobs, 1);
    do {
        if (!vm_give_way(record)) {
            hw_runtime_leave_alone(&runtime, record);
            break;
        }
    } while (vm_must_yield(record));
    current->in_job = false;
}

/* From the signal's handler on the holder, from the holder itself, or from the ticker, which is no thread of the VM's. */
static inline void
vm_trigger(void)
{
    struct vm_thread *thread = current ? current : atomic_load(&vm.running);
    struct hw_thread *record = current ? atomic_load(&current->record) : NULL;
    if (record && record->parked) atomic_fetch_add(&vm.parked_triggers, 1);
    if (thread) atomic_store(&thread->job_due, true);
}

/* The VM's own time slice. */
static inline void
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

static inline void
vm_check_interrupts(void)
{
    for (;;) {
        bool job = atomic_exchange(&current->job_due, false), interrupted = atomic_exchange(&current->pending, false);
        if (!job && !interrupted) break;
        current->took = interrupted && atomic_exchange(&current->raised, false);
        if (job) vm_job();
        current->took = false;
        if (interrupted) atomic_fetch_add(&vm.raises, 1);
    }
    if (hw_now_ns() - current->resumed_ns > atomic_load(&vm.slice_ns)) vm_slice();
}

static inline void
vm_compute(uint64_t ns)
{
    uint64_t end_ns = hw_now_ns() + ns;
    do {
        vm_check_interrupts();
        for (volatile int i = 0; i < 200; i++) continue;
    } while (hw_now_ns() < end_ns);
}

#endif
