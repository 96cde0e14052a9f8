/* The signal that makes the holder run the job. SIGURG, because its default action is to be ignored: one that is pending across
 * an exec harms nobody. (Go's runtime chose it for the same reason.) A handler that was there before still gets every SIGURG
 * that isn't ours. */
#include "runtime.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static void (*trigger_job)(void);
static struct sigaction before;
static bool installed;

static bool
ours(const siginfo_t *info)
{
#ifdef SI_TKILL
    return info->si_code == SI_TKILL && info->si_pid == getpid();
#else
    (void)info;
    return true;
#endif
}

static void
hand_on(int number, siginfo_t *info, void *context)
{
    if (before.sa_flags & SA_SIGINFO) {
        if (before.sa_sigaction) before.sa_sigaction(number, info, context);
    }
    else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
        before.sa_handler(number);
    }
}

static void
hw_signal_handler(int number, siginfo_t *info, void *context)
{
    /* A handler that was set after ours may hand a foreign signal on to ours, which hands it back. */
    static _Thread_local volatile sig_atomic_t handing_on;
    int saved_errno = errno;
    if (ours(info)) {
        trigger_job();
    }
    else if (!handing_on) {
        handing_on = 1;
        hand_on(number, info, context);
        handing_on = 0;
    }
    errno = saved_errno;
}

int
hw_signal_number(void)
{
    return SIGURG;
}

bool
hw_signal_installed(void)
{
    struct sigaction now;
    return sigaction(SIGURG, NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) && now.sa_sigaction == hw_signal_handler;
}

bool
hw_signal_install(void (*trigger)(void))
{
    if (installed && hw_signal_installed()) return true;
    struct sigaction action, current;
    memset(&action, 0, sizeof(action));
    action.sa_sigaction = hw_signal_handler;
    action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    trigger_job = trigger;
    if (sigaction(SIGURG, NULL, &current) != 0) return false;
    before = current;
    installed = sigaction(SIGURG, &action, NULL) == 0;
    return installed;
}

void
hw_signal_restore(void)
{
    if (installed && hw_signal_installed()) sigaction(SIGURG, &before, NULL);
    installed = false;
}
