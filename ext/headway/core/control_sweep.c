/* Files that processes left behind that could not remove them: killed, exec, exit!. Only of such whose number nobody has and whose
 * socket refuses: another container's processes may share the directory. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "control.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define NAMES_MAX 4096 /* looked at; and so many files: the lock is held meanwhile */
#define FILES_MAX 64

bool
hw_socket_refused(const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    if (strlen(path) >= sizeof(address.sun_path)) return false;
    strcpy(address.sun_path, path);
#ifdef SOCK_CLOEXEC
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
#else
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (fd >= 0) fcntl(fd, F_SETFL, O_NONBLOCK);
#endif
    if (fd < 0) return false;
    bool refused = connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0 && errno == ECONNREFUSED;
    close(fd);
    return refused;
}

/* The process a file is named after, or 0. */
static long
owner_of(const char *name)
{
    char *end;
    if (*name < '1' || *name > '9') return 0;
    errno = 0;
    long pid = strtol(name, &end, 10);
    if (errno || pid > INT32_MAX) return 0;
    return strcmp(end, ".sock") == 0 || strcmp(end, ".new") == 0 ? pid : 0;
}

/* Whether there was something to be looked at. */
static bool
sweep_file(const struct hw_control *control, const char *name)
{
    char path[sizeof(control->path)];
    struct stat before, after;
    long pid = owner_of(name);
    if (pid == 0 || kill((pid_t)pid, 0) == 0 || errno != ESRCH) return false;
    int length = snprintf(path, sizeof(path), "%s/%s", control->facts.directory, name);
    if (length < 0 || (size_t)length >= sizeof(path)) return false;
    if (lstat(path, &before) != 0 || !S_ISSOCK(before.st_mode) || !hw_socket_refused(path)) return true;
    if (lstat(path, &after) == 0 && after.st_ino == before.st_ino && after.st_dev == before.st_dev) unlink(path);
    return true;
}

/* Lock held, so that no fork comes between and copies the descriptors in use here. */
void
hw_control_sweep(struct hw_control *control)
{
    DIR *directory = opendir(control->facts.directory);
    if (directory == NULL) return;
    struct dirent *entry;
    int files = 0;
    for (int names = 0; names < NAMES_MAX && files < FILES_MAX && (entry = readdir(directory)); names++) {
        files += sweep_file(control, entry->d_name);
    }
    closedir(directory);
}
