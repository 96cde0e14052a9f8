/* The signal that makes the holder run the job. SIGURG, because its default action is to be ignored: one that is pending across
 * an exec harms nobody. (Go's runtime chose it for the same reason.) A handler that was there before still gets every SIGURG
 * that no thread of this process sent; where the system doesn't tell who did (BSD, macOS) it gets none. */
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

/* sa_handler and sa_sigaction share their place; SIG_IGN may have been set with any flags. */
static bool
somebody_was_there(void)
{
    return before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN;
}

/* A handler that was set after ours may hand a foreign signal on to ours, which hands it back. The C library may allocate a thread's
 * storage when it is first looked up, which no handler should: so only where somebody was there before. Inlined it would be always. */
__attribute__((noinline)) static void
hand_on(int number, siginfo_t *info, void *context)
{
    static _Thread_local volatile sig_atomic_t handing_on;
    if (handing_on) return;
    handing_on = 1;
    if (before.sa_flags & SA_SIGINFO) before.sa_sigaction(number, info, context);
    else before.sa_handler(number);
    handing_on = 0;
}

static void
hw_signal_handler(int number, siginfo_t *info, void *context)
{
    int saved_errno = errno;
    if (ours(info)) trigger_job();
    else if (somebody_was_there()) hand_on(number, info, context);
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
    if (hw_signal_installed()) return installed = true; /* after a restore, too, when somebody has given it back since */
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
