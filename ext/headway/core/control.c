#include "control.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define STACK_BYTES (256 * 1024)

void
hw_control_init(struct hw_control *control, struct hw_runtime *runtime, const struct hw_strings *strings, const struct hw_stacks *stacks,
                void (*trigger)(void))
{
    memset(control, 0, sizeof(*control));
    pthread_mutex_init(&control->lock, NULL);
    control->runtime = runtime;
    control->teller = (struct hw_teller){ .runtime = runtime, .strings = strings, .stacks = stacks };
    control->trigger = trigger;
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
    if (!control->open && !control->stranded) {
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
    bool open = control->open, wakes = hw_descriptor_whole(&control->wake_write);
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
    control->open = false;
    control->stranded = !wakes;
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
        hw_clients_leave(control);
        hw_socket_close(control, false);
        control->reopen = true;
    }
    control->open = control->stranded = false;
}

void
hw_control_ensure(struct hw_control *control)
{
    if (control->reopen) hw_control_open(control);
}
