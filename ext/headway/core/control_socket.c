/* Where the socket is: the directory and its checks, the file, the descriptors.
 *
 * The file appears under its name only when it can be connected to (it is bound under another name, and renamed), so that whoever
 * finds nobody behind a file knows that its process is gone. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "control.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKLOG 64
/* Out of the way of programs that count their descriptors. */
#define LOWEST_FD 100

static char reason_text[512];

__attribute__((format(printf, 1, 2))) static const char *
reason(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason_text, sizeof(reason_text), format, arguments);
    va_end(arguments);
    return reason_text;
}

static const char *
check_directory(const char *directory)
{
    struct stat info;
    if (mkdir(directory, 0700) != 0 && errno != EEXIST) return reason("%s cannot be made: %s", directory, strerror(errno));
    if (lstat(directory, &info) != 0) return reason("%s: %s", directory, strerror(errno));
    if (!S_ISDIR(info.st_mode)) return reason("%s is no directory", directory);
    if (info.st_uid != geteuid()) return reason("%s belongs to another user (%ld)", directory, (long)info.st_uid);
    if (info.st_mode & 077) {
        return reason("%s can be entered by others (mode %04o): it takes one of your own that nobody else can (mode 700)", directory,
                      (unsigned)(info.st_mode & 07777));
    }
    return NULL;
}

/* -- descriptors ---------------------------------------------------------------------------------------------------------- */

static const struct hw_descriptor none = { .fd = -1 };

static struct hw_descriptor
descriptor_of(int fd)
{
    int high = fcntl(fd, F_DUPFD_CLOEXEC, LOWEST_FD);
    if (high >= 0) {
        close(fd);
        fd = high;
    }
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    return hw_descriptor_of(fd);
}

static const char *
make_wake_pipe(struct hw_control *control)
{
    int ends[2];
#ifdef __linux__
    int failed = pipe2(ends, O_CLOEXEC);
#else
    int failed = pipe(ends);
#endif
    if (failed) return reason("no pipe: %s", strerror(errno));
    control->wake_read = descriptor_of(ends[0]);
    control->wake_write = descriptor_of(ends[1]);
    return NULL;
}

void
hw_socket_wake(struct hw_control *control)
{
    if (!hw_descriptor_whole(&control->wake_write)) return;
    ssize_t ignored = write(control->wake_write.fd, "", 1); /* a full pipe wakes as well */
    (void)ignored;
}

/* -- the socket ----------------------------------------------------------------------------------------------------------- */

static const char *
bind_to(int fd, const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    strcpy(address.sun_path, path);
    unlink(path);
    if (bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0) return reason("%s: %s", path, strerror(errno));
    if (chmod(path, 0600) != 0 || listen(fd, BACKLOG) != 0) {
        reason("%s: %s", path, strerror(errno));
        unlink(path);
        return reason_text;
    }
    return NULL;
}

static const char *
listen_at(struct hw_control *control, int fd)
{
    char unfinished[sizeof(control->path)];
    strcpy(unfinished, control->path);
    strcpy(strrchr(unfinished, '.'), ".new");
    struct stat info;
    if (lstat(control->path, &info) == 0 && S_ISSOCK(info.st_mode) && !hw_socket_refused(control->path)) {
        return reason("another process answers at %s: do containers share the directory?", control->path);
    }
    const char *wrong = bind_to(fd, unfinished);
    if (wrong) return wrong;
    if (lstat(unfinished, &control->file) == 0 && rename(unfinished, control->path) == 0) return NULL;
    reason("%s: %s", control->path, strerror(errno));
    unlink(unfinished);
    return reason_text;
}

const char *
hw_socket_open(struct hw_control *control)
{
    control->listener = control->wake_read = control->wake_write = none;
    const char *directory = control->facts.directory;
    int length = snprintf(control->path, sizeof(control->path), "%s/%ld.sock", directory, (long)getpid());
    if (length < 0 || (size_t)length >= sizeof(control->path)) {
        return reason("%.60s... is too long: a socket's path has %zu bytes at the most, set HEADWAY_CONTROL_DIR to a shorter directory",
                      directory, sizeof(control->path) - 1);
    }
    const char *wrong = check_directory(directory);
    if (wrong) return wrong;
#ifdef SOCK_CLOEXEC
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
#else
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
#endif
    if (fd < 0) return reason("no socket: %s", strerror(errno));
    control->listener = descriptor_of(fd);
    wrong = listen_at(control, control->listener.fd);
    if (wrong) {
        hw_socket_close(control, false);
        return wrong;
    }
    wrong = make_wake_pipe(control);
    if (wrong) hw_socket_close(control, true);
    return wrong;
}

/* The name may be another process's by now, if this one was stopped and its number given away. */
static void
remove_file(struct hw_control *control)
{
    struct stat info;
    if (lstat(control->path, &info) == 0 && info.st_dev == control->file.st_dev && info.st_ino == control->file.st_ino) {
        unlink(control->path);
    }
}

void
hw_socket_close(struct hw_control *control, bool remove)
{
    if (remove) remove_file(control);
    hw_descriptor_close(&control->listener);
    hw_descriptor_close(&control->wake_read);
    hw_descriptor_close(&control->wake_write);
}

/* -- clients -------------------------------------------------------------------------------------------------------------- */

static bool
same_user(int fd)
{
#ifdef SO_PEERCRED
    struct ucred peer;
    socklen_t length = sizeof(peer);
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == geteuid();
#else
    uid_t uid;
    gid_t gid;
    return getpeereid(fd, &uid, &gid) == 0 && uid == geteuid();
#endif
}

struct hw_descriptor
hw_socket_accept(struct hw_control *control)
{
    if (!hw_descriptor_whole(&control->listener)) return none;
#ifdef SOCK_CLOEXEC
    int fd = accept4(control->listener.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
#else
    int fd = accept(control->listener.fd, NULL, NULL);
#endif
    if (fd < 0) {
        bool room = errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM;
        return (struct hw_descriptor){ .fd = room ? -1 : HW_NO_ROOM };
    }
    struct hw_descriptor accepted = descriptor_of(fd);
#ifdef SO_NOSIGPIPE
    setsockopt(accepted.fd, SOL_SOCKET, SO_NOSIGPIPE, &(int){ 1 }, sizeof(int));
#endif
    if (same_user(accepted.fd)) return accepted;
    hw_descriptor_close(&accepted);
    return none;
}
