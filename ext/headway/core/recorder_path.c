/* Where a recording goes. */
#include "recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

void
hw_recorder_variant(const char *path, const char *infix, char variant[HW_PATH_LONGEST])
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    const char *extension = strrchr(name, '.');
    if (extension == NULL || extension == name) extension = path + strlen(path);
    snprintf(variant, HW_PATH_LONGEST, "%.*s.%s%s", (int)(extension - path), path, infix, extension);
}

void
hw_recorder_path(struct hw_recorder *r, char path[HW_PATH_LONGEST])
{
    char pid[24];
    snprintf(pid, sizeof(pid), "%ld", (long)getpid());
    if (r->forked && r->set.path[0]) hw_recorder_variant(r->set.path, pid, path);
    else snprintf(path, HW_PATH_LONGEST, "%s", r->set.path);
}

void
hw_recorder_dump_path(struct hw_recorder *r, char path[HW_PATH_LONGEST])
{
    char directory[HW_PATH_LONGEST - 64];
    hw_recorder_path(r, path);
    if (path[0]) return;
    if (getcwd(directory, sizeof(directory)) == NULL) strcpy(directory, ".");
    snprintf(path, HW_PATH_LONGEST, "%s/headway-%ld.headway", directory, (long)getpid());
}

/* Nobody else's that is being written: the lock goes with the process. Some file systems have none. A pipe that nobody reads is
 * refused, as it would hold us up. */
int
hw_recorder_open(const char *path, bool fresh)
{
    int file = open(path, O_WRONLY | O_CREAT | (fresh ? O_EXCL : 0) | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0644);
    if (file < 0) return -1;
    int error = flock(file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK ? ETXTBSY : 0;
    struct stat facts;
    if (!error && fstat(file, &facts) != 0) error = errno;
    if (!error && S_ISREG(facts.st_mode) && ftruncate(file, 0) != 0) error = errno;
    if (!error && fcntl(file, F_SETFL, 0) != 0) error = errno;
    if (error == 0) return file;
    close(file);
    errno = error;
    return -1;
}

/* A child that was just forked may have the file open still, and the lock with it. */
int
hw_recorder_close(int file)
{
    flock(file, LOCK_UN);
    return close(file);
}

bool
hw_recorder_is_gone(int file)
{
    struct stat facts;
    return fstat(file, &facts) == 0 && facts.st_nlink == 0;
}

const char *
hw_recorder_reason(int error)
{
    return error == ETXTBSY ? "another recording writes to it" : strerror(error);
}
