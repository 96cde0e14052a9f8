#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "names.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#ifdef __linux__
#include <sys/syscall.h>
#endif

#define NATIVE_LONGEST 15

int
hw_native_id(void)
{
#ifdef __linux__
    return (int)syscall(SYS_gettid);
#else
    return 0;
#endif
}

struct hw_naming
hw_naming_of(const struct hw_thread *thread)
{
    struct hw_naming naming = { .number = thread->number, .native_id = thread->native_id, .main = thread->main };
    memcpy(naming.told, thread->name, sizeof(naming.told));
    return naming;
}

/* False when there is none: the thread has ended, never ran, or this is no Linux. */
static bool
native_name(int native_id, char name[NATIVE_LONGEST + 1])
{
    char path[64];
    if (native_id == 0) return false;
    snprintf(path, sizeof(path), "/proc/self/task/%d/comm", native_id);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return false;
    ssize_t length = read(file, name, NATIVE_LONGEST + 1);
    close(file);
    if (length <= 1) return false;
    name[length - 1] = '\0'; /* in place of the end of line */
    return true;
}

/* Whether the native name is the full one, or its beginning as far as there was room. Of a thread without a name of its own Ruby
 * makes the native one from where it was created, "FILE:LINE" without directories; cut short it ends with an asterisk. */
static bool
is_short_for(const char *native, const char *full)
{
    size_t length = strlen(native);
    const char *slash = strrchr(full, '/');
    const char *starts[] = { full, slash ? slash + 1 : full };
    bool cut = length == NATIVE_LONGEST || (length == NATIVE_LONGEST - 1 && native[length - 1] == '*');
    for (int i = 0; i < 2; i++) {
        if (strcmp(starts[i], native) == 0) return true;
        size_t same = length - (native[length - 1] == '*');
        if (cut && strncmp(starts[i], native, same) == 0) return true;
    }
    return false;
}

/* Room may have ended within a character. */
static void
drop_cut_character(char *name)
{
    size_t length = strlen(name), start = length;
    if (length < NATIVE_LONGEST) return;
    while (start > 0 && ((unsigned char)name[start - 1] & 0xC0) == 0x80) start--;
    if (start == 0) return;
    unsigned char lead = (unsigned char)name[--start];
    size_t whole = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 0;
    if (length - start < whole) name[start] = '\0';
}

bool
hw_name_of(const struct hw_naming *naming, char *name, size_t capacity)
{
    char native[NATIVE_LONGEST + 1];
    const char *found = naming->told;
    if (!naming->main && native_name(naming->native_id, native) && !is_short_for(native, naming->told)) {
        drop_cut_character(native);
        found = native;
    }
    if (found[0]) snprintf(name, capacity, "%s", found);
    else if (naming->main) snprintf(name, capacity, "main");
    else snprintf(name, capacity, "thread %u", naming->number);
    return found[0] || naming->main;
}
