/* A dump of the flight recorder that a client asked for: written here, on the server thread, with what is known without Ruby. */
#include "control.h"
#include "encode_tables.h"
#include "feed.h"
#include "names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOOK_NS (2 * HW_NS_PER_MS)
#define PATIENCE_LOOKS 50

static bool
all_named(const struct hw_stacks *stacks)
{
    uint32_t count = stacks->frames ? (uint32_t)stacks->frame_count : 0;
    return count == 0 || stacks->frames[count - 1].method != 0; /* in order */
}

static bool
somebody_runs(struct hw_runtime *rt)
{
    pthread_mutex_lock(&rt->lock);
    bool runs = rt->scheduler.holder != NULL || rt->scheduler.counts[HW_IS_READY] > 0;
    pthread_mutex_unlock(&rt->lock);
    return runs;
}

/* A trigger may be lost, so it is repeated. */
static void
await_names_of_frames(struct hw_control *control)
{
    for (int looks = 0; looks < PATIENCE_LOOKS && !all_named(control->stacks) && somebody_runs(control->runtime); looks++) {
        control->trigger();
        nanosleep(&(struct timespec){ .tv_nsec = LOOK_NS }, NULL);
    }
}

static void
encode_threads(struct hw_control *control, struct hw_buffer *buffer, size_t room)
{
    struct hw_runtime *rt = control->runtime;
    struct hw_naming *namings = malloc(room * sizeof(*namings));
    size_t count = 0;
    pthread_mutex_lock(&rt->lock);
    for (struct hw_thread *thread = rt->scheduler.threads; namings && thread && count < room; thread = thread->next) {
        namings[count++] = hw_naming_of(thread);
    }
    pthread_mutex_unlock(&rt->lock);
    for (size_t i = 0; i < count; i++) {
        char name[sizeof(namings->told)];
        hw_answer_name(control, &namings[i], name, sizeof(name));
        hw_write_thread(buffer, namings[i].number, name, strlen(name), "", 0);
    }
    free(namings);
}

static void
choose_path(struct hw_control *control, const char *wanted, char path[HW_PATH_LONGEST])
{
    if (wanted[0]) snprintf(path, HW_PATH_LONGEST, "%s", wanted);
    else hw_recorder_path(&control->runtime->recorder, path);
    if (path[0]) return;
    char directory[HW_PATH_LONGEST - 64];
    if (getcwd(directory, sizeof(directory)) == NULL) strcpy(directory, ".");
    snprintf(path, HW_PATH_LONGEST, "%s/headway-%ld.headway", directory, (long)getpid());
}

bool
hw_control_dump(struct hw_control *control, const char *wanted, char *answer, size_t capacity)
{
    struct hw_runtime *rt = control->runtime;
    char path[HW_PATH_LONGEST];
    if (!hw_recorder_announce_dump(&rt->recorder)) {
        snprintf(answer, capacity, "no flight recorder runs in this process");
        return false;
    }
    choose_path(control, wanted, path);
    await_names_of_frames(control);
    struct hw_buffer definitions = { NULL, 0, 0 };
    struct hw_encoded none = { 0, 0, 0 };
    struct hw_dump dump = { .path = path, .definitions = &definitions };
    hw_feed_instant(rt, &dump);
    encode_threads(control, &definitions, dump.known_count);
    hw_encode_tables(&definitions, control->strings, control->stacks, &none);
    int error = hw_recorder_dump(&rt->recorder, &dump);
    free((void *)dump.known);
    free(definitions.bytes);
    if (error) snprintf(answer, capacity, "no dump to %.900s: %s", path, strerror(error));
    else snprintf(answer, capacity, "%s", path);
    return error == 0;
}
