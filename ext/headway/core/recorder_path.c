/* Where a recording goes. */
#include "recorder.h"

#include "trace_format.h"

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

#define MOST_FILES 100000

void
hw_recorder_next_path(const char *path, const char *why, char next[HW_PATH_LONGEST])
{
    char infix[64];
    for (unsigned number = 1; number <= MOST_FILES; number++) {
        snprintf(infix, sizeof(infix), "%s-%u", why, number);
        hw_recorder_variant(path, infix, next);
        if (access(next, F_OK) != 0) return;
    }
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

/* True: `made` is whether the file wasn't there. O_NONBLOCK stays, or a pipe whose reader no longer reads holds the writer for good. It
 * is this open file's alone, /dev/stdout's too, which opens the program's pipe or terminal anew. (Where such a path is a dup, as on BSDs,
 * the flags are the program's, and stay as they are.) */
static bool
open_to_write(const char *path, bool fresh, struct hw_recorder_file *file)
{
    int flags = O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
    file->made = true;
    file->fd = open(path, flags | O_CREAT | O_EXCL, 0644);
    if (file->fd >= 0 || errno != EEXIST || fresh) return file->fd >= 0;
    file->made = false;
    file->fd = open(path, flags | O_CREAT, 0644); /* through a link it may be made even so */
    return file->fd >= 0;
}

/* Locked, and what it was. */
static int
take_possession(struct hw_recorder_file *file, struct stat *facts)
{
    if (flock(file->fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return ETXTBSY;
    if (fstat(file->fd, facts) != 0) return errno;
    file->regular = S_ISREG(facts->st_mode);
    return 0;
}

/* Begins as no trace does. */
static bool
is_no_trace(int file)
{
    uint8_t start[HW_TRACE_MAGIC_LENGTH];
    ssize_t length = read(file, start, sizeof(start));
    for (ssize_t i = 0; i < length; i++) {
        if (start[i] != (uint8_t)(HW_TRACE_MAGIC >> (8 * i))) return true;
    }
    return false;
}

/* A file that has something in it that is no trace, be it a damaged one, or can't be told from one, is somebody's by mistake. Where `opened`
 * is given, and the path leads elsewhere by now: EAGAIN. 0: it may be written to. */
static int
look_whose(const char *path, const struct stat *opened)
{
    struct stat facts;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    int error = 0;
    if (file < 0) {
        if (stat(path, &facts) != 0) return 0;
        return S_ISREG(facts.st_mode) && facts.st_size > 0 ? ENOEXEC : 0;
    }
    if (fstat(file, &facts) == 0 && S_ISREG(facts.st_mode)) {
        if (opened && (facts.st_dev != opened->st_dev || facts.st_ino != opened->st_ino)) error = EAGAIN;
        else if (is_no_trace(file)) error = ENOEXEC;
    }
    close(file);
    return error;
}

bool
hw_recorder_spares(const char *path)
{
    return look_whose(path, NULL) != 0;
}

/* Nobody else's that is being written: the lock goes with the process. Some file systems have none. A pipe that nobody reads is
 * refused, as it would hold us up. A file that a dump took the place of in between is no longer the one of that path. */
int
hw_recorder_open(const char *path, bool fresh, struct hw_recorder_file *file)
{
    for (int tries = 1;; tries++) {
        struct stat facts;
        if (!open_to_write(path, fresh, file)) return errno;
        int error = take_possession(file, &facts);
        if (!error && !file->made) error = look_whose(path, file->regular ? &facts : NULL);
        if (!error && (facts.st_nlink > 0 || tries == 3)) return 0;
        close(file->fd);
        file->fd = -1;
        if (error && (error != EAGAIN || tries == 3)) return error;
    }
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
    if (error == ETXTBSY) return "another recording writes to it";
    if (error == ENOEXEC) return "it is there and is no trace; give another name, or remove it";
    if (error == ETIMEDOUT) return "it takes nothing any more: does nobody read from it?";
    return error == EBADF ? "the program closed it" : strerror(error);
}
