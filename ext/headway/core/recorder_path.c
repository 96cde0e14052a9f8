/* Where a recording goes. */
#include "recorder.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
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

int
hw_recorder_open(const char *path, bool fresh)
{
    return open(path, O_WRONLY | O_CREAT | (fresh ? O_EXCL : O_TRUNC) | O_CLOEXEC | O_NOCTTY, 0644);
}
