/* A control socket without a Ruby, in a directory of its own, and a client's view of it. */
#ifndef HW_TEST_CONTROLLED_H
#define HW_TEST_CONTROLLED_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "feed.h"
#include "control.h"
#include "json_text.h"
#include "test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static struct hw_runtime runtime;
static struct hw_control control;
static struct hw_strings strings;
static struct hw_stacks stacks;
static char directory[64];
static atomic_bool over;

static inline void
ignore_trigger(void)
{
}

static inline void
set_up(void)
{
    strcpy(directory, "/tmp/hw-control-XXXXXX");
    if (mkdtemp(directory) == NULL || chdir(directory) != 0) abort(); /* where dumps go that were given no path */
    static bool initialised; /* once: its records are kept for reuse */
    if (!initialised) CHECK(hw_runtime_init(&runtime, ignore_trigger) && hw_strings_init(&strings) && hw_stacks_init(&stacks));
    initialised = true;
    struct hw_policy policy = hw_policy_default;
    policy.kind = HW_OBSERVE;
    hw_runtime_reset(&runtime);
    CHECK(hw_runtime_start(&runtime, &policy, HW_POLL, false));
    hw_control_init(&control, &runtime, &strings, &stacks, ignore_trigger);
    runtime.recorder.teller = &control.teller;
    snprintf(control.facts.directory, sizeof(control.facts.directory), "%s/s", directory);
    strcpy(control.facts.headway, "0");
    strcpy(control.facts.ruby, "0");
    strcpy(control.facts.command, J("a 'test'"));
}

static inline int
files(void)
{
    int count = 0;
    DIR *entries = opendir(control.facts.directory);
    struct dirent *entry;
    while (entries && (entry = readdir(entries))) count += entry->d_name[0] != '.';
    if (entries) closedir(entries);
    return count;
}

static inline void
clean_directory(void)
{
    DIR *entries = opendir(directory);
    struct dirent *entry;
    while (entries && (entry = readdir(entries))) unlinkat(dirfd(entries), entry->d_name, 0);
    if (entries) closedir(entries);
}

static inline void
tear_down(void)
{
    if (chdir("/") != 0) abort();
    hw_control_close(&control);
    hw_runtime_stop(&runtime);
    free(control.clients);
    CHECK_EQUAL(0, files());
    clean_directory();
    rmdir(control.facts.directory);
    rmdir(directory);
}

/* The answer's first bytes; false when there was none. */
static inline bool
ask(const char *path, const char *request, char *answer, size_t capacity)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    strcpy(address.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool ended = false;
    size_t length = 0;
    answer[0] = '\0';
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0 &&
        send(fd, request, strlen(request), MSG_NOSIGNAL) == (ssize_t)strlen(request)) {
        char part[4096];
        ssize_t got;
        while (!ended && (got = recv(fd, part, sizeof(part), 0)) > 0) {
            ended = part[got - 1] == '\n';
            size_t kept = (size_t)got < capacity - 1 - length ? (size_t)got : capacity - 1 - length;
            memcpy(answer + length, part, kept);
            length += kept;
        }
        answer[length] = '\0';
    }
    close(fd);
    return ended;
}

/* A client that a busy machine keeps from sending for a second of these tests' is dropped unheard: it asks again. */
static inline bool
says(const char *request, const char *words)
{
    char answer[4096];
    bool answered = false;
    for (int tries = 0; tries < 10 && !answered; tries++) answered = ask(control.path, request, answer, sizeof(answer));
    return answered && strstr(answer, words);
}

static inline void
end_recording(void)
{
    if (!hw_recorder_claim_end(&runtime.recorder)) return;
    hw_feed_close(&runtime);
    hw_recorder_stop(&runtime.recorder, NULL);
}

/* What clients ask until it is over; counts the answers. */
static inline void *
ask_all(void *answers)
{
    char dump[128], stream[128];
    snprintf(dump, sizeof(dump), "{\"dump\":\"%s/dump\"}\n", directory);
    snprintf(stream, sizeof(stream), "{\"record\":{\"file\":\"%s/stream\",\"events\":5000}}\n", directory);
    const char *const requests[] = { J("{'get':'stats'}\n"), J("{'ping':true}\n"), J("{'set':{'quantum_ms':7}}\n"), dump,
                                     J("{'set':{'policy':'quantum'}}\n"), J("{'set':{'policy':'observe'}}\n"), "garbage\n",
                                     J("{'dump':'/no/such/directory/x'}\n"), stream, J("{'get':'recorder'}\n"),
                                     J("{'record':false}\n"), J("{'record':{'events':300,'wait_threshold':0.001}}\n"),
                                     J("{'record':false}\n") };
    char *path = stream + strlen(J("{'record':{'file':'"));
    char answer[256];
    for (unsigned i = 0; !atomic_load(&over); i++) {
        if (ask(control.path, requests[i % 13], answer, sizeof(answer))) atomic_fetch_add((atomic_uint *)answers, 1);
        if (i % 13 != 10) continue;
        char *end = strchr(path, '"');
        *end = '\0';
        unlink(path); /* it must not be there yet */
        *end = '"';
    }
    return NULL;
}

#endif
