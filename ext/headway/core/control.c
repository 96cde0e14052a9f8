#include "control.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define STACK_BYTES (256 * 1024)
#define ASIDE_MAX (64 * 1024)

void
hw_control_init(struct hw_control *control, struct hw_runtime *runtime, void (*trigger)(void))
{
    memset(control, 0, sizeof(*control));
    pthread_mutex_init(&control->lock, NULL);
    control->runtime = runtime;
    control->trigger = trigger;
    control->aside.limit = ASIDE_MAX;
    control->listener.fd = control->wake_read.fd = control->wake_write.fd = -1;
}

/* -- life ----------------------------------------------------------------------------------------------------------------- */

static bool
start_thread(struct hw_control *control)
{
    sigset_t all, before;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES); /* refused where it is too small: the default then */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&control->thread, &attributes, hw_control_serve, control);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return !failed;
}

const char *
hw_control_open(struct hw_control *control)
{
    pthread_mutex_lock(&control->lock);
    const char *wrong = NULL;
    control->reopen = false;
    if (!control->open) {
        wrong = hw_clients_make(control) ? hw_socket_open(control) : "memory is short";
        control->must_end = false;
        if (wrong == NULL && !start_thread(control)) {
            hw_socket_close(control, true);
            wrong = "no thread could be started";
        }
        control->open = wrong == NULL;
    }
    pthread_mutex_unlock(&control->lock);
    return wrong;
}

void
hw_control_close(struct hw_control *control)
{
    pthread_mutex_lock(&control->lock);
    bool open = control->open, wakes = hw_socket_whole(&control->wake_write);
    control->reopen = false;
    control->must_end = true;
    if (open) hw_socket_wake(control);
    pthread_mutex_unlock(&control->lock);
    if (!open) return;
    /* Where the program closed our descriptors the thread may sleep on: it does nothing any more. */
    if (wakes) pthread_join(control->thread, NULL);
    else pthread_detach(control->thread);

    pthread_mutex_lock(&control->lock);
    hw_socket_close(control, true);
    control->open = !wakes; /* never to be opened again: the thread would wake up in the middle of it */
    pthread_mutex_unlock(&control->lock);
}

/* -- fork ----------------------------------------------------------------------------------------------------------------- */

void
hw_control_before_fork(struct hw_control *control)
{
    pthread_mutex_lock(&control->lock);
}

void
hw_control_after_fork_parent(struct hw_control *control)
{
    pthread_mutex_unlock(&control->lock);
}

void
hw_control_after_fork_child(struct hw_control *control)
{
    pthread_mutex_init(&control->lock, NULL);
    if (control->open && !control->must_end) {
        hw_clients_drop(control);
        hw_socket_close(control, false);
        control->reopen = true;
    }
    control->open = false;
    control->names_wanted = control->errand_runs = false;
    control->names_ns = 0;
    control->dump = HW_DUMP_NONE;
    if (control->reopen) control->trigger();
}

/* -- errands -------------------------------------------------------------------------------------------------------------- */

/* Whether a thread is to be started for them, which is then taken for granted until it finds nothing more to do. */
bool
hw_control_errands_due(struct hw_control *control)
{
    pthread_mutex_lock(&control->lock);
    bool due = !control->errand_runs && (control->names_wanted || control->dump == HW_DUMP_WANTED);
    if (due) control->errand_runs = true;
    pthread_mutex_unlock(&control->lock);
    return due;
}

enum hw_errand
hw_control_next_errand(struct hw_control *control, char *path, size_t capacity)
{
    enum hw_errand errand = HW_ERRAND_NONE;
    pthread_mutex_lock(&control->lock);
    if (control->names_wanted) {
        errand = HW_ERRAND_NAMES;
        control->names_wanted = false;
    }
    else if (control->dump == HW_DUMP_WANTED) {
        errand = HW_ERRAND_DUMP;
        control->dump = HW_DUMP_TAKEN;
        strncpy(path, control->dump_path, capacity - 1);
        path[capacity - 1] = '\0';
    }
    else {
        control->errand_runs = false;
    }
    pthread_mutex_unlock(&control->lock);
    return errand;
}

void
hw_control_errands_end(struct hw_control *control)
{
    pthread_mutex_lock(&control->lock);
    control->errand_runs = false;
    if (control->dump == HW_DUMP_TAKEN) {
        control->dump = HW_DUMP_DONE;
        control->dump_failed = true;
        strcpy(control->dump_answer, "the dump was broken off");
    }
    pthread_mutex_unlock(&control->lock);
}

/* Under the runtime's lock: answers are written without the GVL. */
void
hw_control_set_name(struct hw_control *control, struct hw_thread *thread, const char *name, size_t length)
{
    size_t kept = length < sizeof(thread->name) - 1 ? length : sizeof(thread->name) - 1;
    pthread_mutex_lock(&control->runtime->lock);
    memcpy(thread->name, name, kept);
    memset(thread->name + kept, 0, sizeof(thread->name) - kept);
    pthread_mutex_unlock(&control->runtime->lock);
}

void
hw_control_names_done(struct hw_control *control, const char *aside, size_t length)
{
    pthread_mutex_lock(&control->lock);
    hw_text_clear(&control->aside);
    hw_text_bytes(&control->aside, aside, length);
    control->names_ns = hw_now_ns();
    if (control->open) hw_socket_wake(control);
    pthread_mutex_unlock(&control->lock);
}

void
hw_control_dump_done(struct hw_control *control, const char *answer, size_t length, bool failed)
{
    size_t kept = length < sizeof(control->dump_answer) - 1 ? length : sizeof(control->dump_answer) - 1;
    pthread_mutex_lock(&control->lock);
    memcpy(control->dump_answer, answer, kept);
    control->dump_answer[kept] = '\0';
    control->dump_failed = failed;
    control->dump = HW_DUMP_DONE;
    if (control->open) hw_socket_wake(control);
    pthread_mutex_unlock(&control->lock);
}
