#include "teller.h"

#include "feed.h"
#include "names.h"

#include <stdlib.h>
#include <string.h>

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

void
hw_teller_name(const struct hw_teller *teller, const struct hw_naming *naming, char *name, size_t capacity)
{
    struct hw_naming known = *naming;
    if (teller->many_to_many) known.native_id = 0;
    hw_name_of(&known, name, capacity);
}

void
hw_teller_ask(const struct hw_teller *teller)
{
    if (!all_named(teller->stacks) && somebody_runs(teller->runtime)) teller->trigger();
}

/* A trigger may be lost, so it is repeated. */
void
hw_teller_await(const struct hw_teller *teller)
{
    for (int looks = 0; looks < PATIENCE_LOOKS && !all_named(teller->stacks) && somebody_runs(teller->runtime); looks++) {
        teller->trigger();
        nanosleep(&(struct timespec){ .tv_nsec = LOOK_NS }, NULL);
    }
}

struct threads {
    struct hw_naming *list; /* told: the name in the end */
    size_t count;
};

static struct threads
living_threads(const struct hw_teller *teller)
{
    struct hw_runtime *rt = teller->runtime;
    pthread_mutex_lock(&rt->lock);
    size_t room = rt->scheduler.living;
    pthread_mutex_unlock(&rt->lock);
    struct threads threads = { .list = malloc((room + 1) * sizeof(*threads.list)) };
    pthread_mutex_lock(&rt->lock);
    for (struct hw_thread *thread = rt->scheduler.threads; threads.list && thread && threads.count < room; thread = thread->next) {
        threads.list[threads.count++] = hw_naming_of(thread);
    }
    pthread_mutex_unlock(&rt->lock);
    for (size_t i = 0; i < threads.count; i++) {
        struct hw_naming *naming = &threads.list[i];
        char name[sizeof(naming->told)];
        hw_teller_name(teller, naming, name, sizeof(name));
        strcpy(naming->told, name);
    }
    return threads;
}

/* Those with numbers above `after`. */
static void
encode_threads(struct hw_buffer *buffer, const struct threads *threads, uint32_t after)
{
    for (size_t i = 0; i < threads->count; i++) {
        const struct hw_naming *naming = &threads->list[i];
        if (naming->number > after) hw_write_thread(buffer, naming->number, naming->told, strlen(naming->told), "", 0);
    }
}

int
hw_teller_dump(const struct hw_teller *teller, const char *path)
{
    struct hw_runtime *rt = teller->runtime;
    hw_teller_await(teller);
    struct hw_buffer definitions = { NULL, 0, 0 };
    struct hw_encoded none = { 0, 0, 0 };
    struct hw_dump dump = { .path = path, .definitions = &definitions };
    hw_feed_instant(rt, &dump);
    struct threads threads = living_threads(teller);
    encode_threads(&definitions, &threads, 0);
    free(threads.list);
    hw_encode_tables(&definitions, teller->strings, teller->stacks, &none);
    int error = hw_recorder_dump(&rt->recorder, &dump);
    free((void *)dump.known);
    free(definitions.bytes);
    return error;
}

void
hw_teller_complete(const struct hw_teller *teller)
{
    struct hw_recorder *recorder = &teller->runtime->recorder;
    hw_teller_await(teller);
    struct threads threads = living_threads(teller);
    struct hw_buffer *buffer = hw_recorder_definitions(recorder);
    encode_threads(buffer, &threads, recorder->named); /* Ruby knew more of the others */
    hw_encode_tables(buffer, teller->strings, teller->stacks, &recorder->written);
    hw_recorder_definitions_done(recorder);
    free(threads.list);
}
