#include "teller.h"

#include "crc32.h"
#include "feed.h"
#include "names.h"

#include <stdlib.h>
#include <string.h>

bool
hw_teller_name(const struct hw_teller *teller, const struct hw_naming *naming, char *name, size_t capacity)
{
    struct hw_naming known = *naming;
    if (teller->many_to_many) known.native_id = 0;
    return hw_name_of(&known, name, capacity);
}

struct threads {
    struct named {
        struct hw_naming naming;
        char name[sizeof(((struct hw_naming *)0)->told)];
        bool looked, known; /* of the others naming has the number only, and name nothing */
    } *list;
    size_t count;
};

/* The youngest first. Looks at those that have run since then: a file is read for each, and a lock is held meanwhile that events
 * wait for. */
static struct threads
living_threads(const struct hw_teller *teller, size_t most, uint64_t since_ns)
{
    struct hw_runtime *rt = teller->runtime;
    pthread_mutex_lock(&rt->lock);
    size_t room = rt->scheduler.living < most ? rt->scheduler.living : most;
    pthread_mutex_unlock(&rt->lock);
    struct threads threads = { .list = malloc((room + 1) * sizeof(*threads.list)) };
    pthread_mutex_lock(&rt->lock);
    for (struct hw_thread *thread = rt->scheduler.threads; threads.list && thread && threads.count < room; thread = thread->next) {
        struct named *found = &threads.list[threads.count++];
        found->looked = thread->state == HW_RUNNING || thread->since_ns >= since_ns;
        if (found->looked) found->naming = hw_naming_of(thread);
        else found->naming.number = thread->number;
    }
    pthread_mutex_unlock(&rt->lock);
    for (size_t i = 0; i < threads.count; i++) {
        struct named *thread = &threads.list[i];
        thread->known = thread->looked && hw_teller_name(teller, &thread->naming, thread->name, sizeof(thread->name));
    }
    return threads;
}

static void
encode_thread(struct hw_buffer *buffer, const struct named *thread)
{
    hw_write_thread(buffer, thread->naming.number, thread->name, strlen(thread->name), "", 0);
}

/* Those with numbers above `after`. */
static void
encode_threads(struct hw_buffer *buffer, const struct threads *threads, uint32_t after)
{
    for (size_t i = 0; i < threads->count; i++) {
        if (threads->list[i].naming.number > after) encode_thread(buffer, &threads->list[i]);
    }
}

int
hw_teller_dump(const struct hw_teller *teller, const char *path)
{
    struct hw_runtime *rt = teller->runtime;
    struct hw_buffer definitions = { NULL, 0, 0 };
    struct hw_encoded none = { 0, 0, 0 };
    struct hw_dump dump = { .path = path, .definitions = &definitions };
    hw_feed_instant(rt, &dump);
    struct threads threads = living_threads(teller, SIZE_MAX, 0);
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
    struct threads threads = living_threads(teller, SIZE_MAX, 0);
    struct hw_buffer *buffer = hw_recorder_definitions(recorder);
    encode_threads(buffer, &threads, recorder->named); /* Ruby knew more of the others */
    hw_encode_tables(buffer, teller->strings, teller->stacks, &recorder->written);
    hw_recorder_definitions_done(recorder);
    free(threads.list);
}

/* -- a stream that goes on ---------------------------------------------------------------------------------------------- */

/* Each name is a file to be read, so they are looked at less often, only after something happened, and only those of threads to
 * which it did: twice, as who makes a thread or wakes it may give it its name only then. Who names a thread that sleeps on is told
 * of by Ruby, or at the end. */
#define NAMES_NS HW_NS_PER_S

/* What it was called. Both lists are in about the same order: the search begins where the last one ended. 0: nobody knew. */
static uint32_t
told_before(const struct hw_recorder *recorder, uint32_t number, uint32_t *place)
{
    for (uint32_t i = 0; i < recorder->told_count; i++, ++*place) {
        const struct hw_told *told = &recorder->told[*place % recorder->told_count];
        if (told->number == number) return told->name;
    }
    return 0;
}

/* Recorder's lock held. Threads that Ruby has told of are in the file by more than their name, unless they were renamed. */
static void
encode_news(struct hw_recorder *recorder, struct hw_buffer *buffer, const struct threads *threads)
{
    struct hw_told told[HW_TOLD_MOST];
    uint32_t place = 0;
    for (size_t i = 0; i < threads->count; i++) {
        const struct named *thread = &threads->list[i];
        uint32_t number = thread->naming.number, before = told_before(recorder, number, &place);
        uint32_t name = thread->known ? hw_crc32(0, thread->name, strlen(thread->name)) : before;
        told[i] = (struct hw_told){ number, name };
        if (name == before) continue;
        if (number > recorder->named || strcmp(thread->name, thread->naming.told) != 0) encode_thread(buffer, thread);
    }
    memcpy(recorder->told, told, threads->count * sizeof(*told));
    recorder->told_count = (uint32_t)threads->count;
}

void
hw_teller_keep_up(const struct hw_teller *teller, uint64_t now)
{
    struct hw_recorder *recorder = &teller->runtime->recorder;
    struct threads threads = { NULL, 0 };
    uint64_t events = hw_ring_claimed(&recorder->ring);
    bool due = events != recorder->told_events && now >= recorder->told_ns + NAMES_NS;
    if (due) threads = living_threads(teller, HW_TOLD_MOST, recorder->told_before_ns);

    struct hw_buffer *buffer = hw_recorder_definitions(recorder);
    if (due) {
        encode_news(recorder, buffer, &threads);
        recorder->told_before_ns = recorder->told_ns;
        recorder->told_ns = now;
        recorder->told_events = events;
    }
    hw_encode_tables(buffer, teller->strings, teller->stacks, &recorder->written);
    hw_recorder_definitions_done(recorder);
    free(threads.list);
}
