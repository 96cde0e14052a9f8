#include "recorder.h"

#include "clock.h"
#include "cond.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Names of ended threads kept for a dump: some 2,000 of them, and the older half goes when there are more. */
#define ENDED_BYTES (128 * 1024)

static void
buffer_free(struct hw_buffer *buffer)
{
    free(buffer->bytes);
    memset(buffer, 0, sizeof(*buffer));
}

bool
hw_recorder_init(struct hw_recorder *r)
{
    memset(r, 0, sizeof(*r));
    r->file = -1;
    pthread_mutex_init(&r->lock, NULL);
    pthread_mutex_init(&r->alarm_lock, NULL);
    hw_cond_init(&r->writer_cond);
    hw_cond_init(&r->alarm_cond);
    return true;
}

/* -- the file ----------------------------------------------------------------------------------------------------------- */

/* "out.headway" -> "out.123.headway", "out" -> "out.123" */
static void
path_of_child(const char *path, char child[HW_PATH_LONGEST])
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    const char *extension = strrchr(name, '.');
    if (extension == NULL || extension == name) extension = path + strlen(path);
    snprintf(child, HW_PATH_LONGEST, "%.*s.%ld%s", (int)(extension - path), path, (long)getpid(), extension);
}

void
hw_recorder_path(struct hw_recorder *r, char path[HW_PATH_LONGEST])
{
    if (r->forked && r->set.path[0]) path_of_child(r->set.path, path);
    else snprintf(path, HW_PATH_LONGEST, "%s", r->set.path);
}

struct hw_trace_header
hw_recorder_header(const struct hw_recorder *r)
{
    struct hw_trace_header header = r->set.header;
    struct timespec wall;
    header.pid = (uint32_t)getpid();
    header.parent_pid = (uint32_t)getppid();
    header.clock_ns = hw_now_ns();
    clock_gettime(CLOCK_REALTIME, &wall);
    header.wall_ns = (uint64_t)wall.tv_sec * HW_NS_PER_S + (uint64_t)wall.tv_nsec;
    return header;
}

int
hw_recorder_open(const char *path)
{
    return open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0644);
}

/* Lock held. Opens the stream's file, writes the header and starts the writer. 0 or an errno. */
static int
open_stream(struct hw_recorder *r)
{
    char path[HW_PATH_LONGEST];
    hw_recorder_path(r, path);
    r->pending = false;
    r->file = hw_recorder_open(path);
    if (r->file < 0) return errno;
    struct hw_trace_header header = hw_recorder_header(r);
    struct hw_buffer buffer = { NULL, 0, 0 };
    int error = 0;
    if (!hw_write_header(&buffer, &header)) error = ENOMEM;
    else if (!hw_write_all(r->file, &buffer)) error = errno;
    r->bytes = buffer.length;
    buffer_free(&buffer);
    if (!error && !hw_writer_start(r)) error = EAGAIN;
    if (error) {
        close(r->file);
        r->file = -1;
    }
    return error;
}

/* -- life --------------------------------------------------------------------------------------------------------------- */

static void
begin(struct hw_recorder *r)
{
    r->session++;
    r->bytes = r->folded = r->reported_dropped = r->reported_folded = 0;
    r->encoded.length = r->writing.length = r->ended[0].length = r->ended[1].length = 0;
    atomic_store(&r->failure, 0);
}

int
hw_recorder_start(struct hw_recorder *r, const struct hw_recording *set)
{
    pthread_mutex_lock(&r->lock);
    r->set = *set;
    r->forked = false;
    begin(r);
    int error = 0;
    if (!hw_ring_init(&r->ring, set->slots, set->flight)) error = ENOMEM;
    if (!error && r->batch == NULL) r->batch = malloc(HW_BATCH * sizeof(*r->batch));
    if (!error && r->batch == NULL) error = ENOMEM;
    if (!error && !set->flight) error = open_stream(r);
    if (error) hw_ring_free(&r->ring);
    pthread_mutex_unlock(&r->lock);
    return error;
}

void
hw_recorder_ensure(struct hw_recorder *r)
{
    if (!r->pending) return;
    pthread_mutex_lock(&r->lock);
    int error = r->pending ? open_stream(r) : 0;
    if (error) hw_writer_fail(r, error);
    pthread_mutex_unlock(&r->lock);
}

/* Lock held. What the writer has not written yet, and the end. */
static void
finish_stream(struct hw_recorder *r)
{
    if (r->file >= 0 && atomic_load(&r->failure) == 0) {
        hw_writer_encode(r);
        if (!hw_write_end(&r->encoded)) hw_writer_fail(r, ENOMEM);
        else if (!hw_write_all(r->file, &r->encoded)) hw_writer_fail(r, errno);
        else r->bytes += r->encoded.length;
    }
    r->encoded.length = 0;
    /* Some file systems tell of a full disk only now. */
    if (r->file >= 0 && close(r->file) != 0 && atomic_load(&r->failure) == 0) hw_writer_fail(r, errno);
    r->file = -1;
}

int
hw_recorder_stop(struct hw_recorder *r)
{
    if (r->ring.slots == NULL) return atomic_load(&r->failure);
    hw_recorder_ensure(r);
    hw_writer_end(r);
    pthread_mutex_lock(&r->lock);
    while (r->dumps > 0) hw_cond_wait_until(&r->writer_cond, &r->lock, HW_NEVER);
    if (!r->set.flight) finish_stream(r);
    hw_ring_free(&r->ring);
    buffer_free(&r->encoded);
    buffer_free(&r->writing);
    buffer_free(&r->ended[0]);
    buffer_free(&r->ended[1]);
    pthread_mutex_unlock(&r->lock);
    return atomic_load(&r->failure);
}

/* -- definitions -------------------------------------------------------------------------------------------------------- */

struct hw_buffer *
hw_recorder_definitions(struct hw_recorder *r)
{
    pthread_mutex_lock(&r->lock);
    return &r->encoded;
}

void
hw_recorder_definitions_done(struct hw_recorder *r)
{
    pthread_mutex_unlock(&r->lock);
}

void
hw_recorder_name_thread(struct hw_recorder *r, uint32_t number, const char *name, size_t name_length, const char *site,
                        size_t site_length)
{
    pthread_mutex_lock(&r->lock);
    struct hw_buffer *buffer = &r->encoded;
    if (r->set.flight) {
        if (r->ended[r->newer].length > ENDED_BYTES) {
            r->newer = 1 - r->newer;
            r->ended[r->newer].length = 0;
        }
        buffer = &r->ended[r->newer];
    }
    hw_write_thread(buffer, number, name, name_length, site, site_length); /* short of memory: a name less */
    pthread_mutex_unlock(&r->lock);
}

/* -- the alarm ---------------------------------------------------------------------------------------------------------- */

void
hw_recorder_sound_alarm(struct hw_recorder *r)
{
    pthread_mutex_lock(&r->alarm_lock);
    r->alarms++;
    pthread_cond_signal(&r->alarm_cond);
    pthread_mutex_unlock(&r->alarm_lock);
}

uint64_t
hw_recorder_await_alarm(struct hw_recorder *r, uint64_t alarms_seen, uint64_t until_ns)
{
    pthread_mutex_lock(&r->alarm_lock);
    while (r->alarms == alarms_seen && hw_now_ns() < until_ns) hw_cond_wait_until(&r->alarm_cond, &r->alarm_lock, until_ns);
    uint64_t alarms = r->alarms;
    pthread_mutex_unlock(&r->alarm_lock);
    return alarms;
}

/* -- fork --------------------------------------------------------------------------------------------------------------- */

void
hw_recorder_before_fork(struct hw_recorder *r)
{
    pthread_mutex_lock(&r->lock);
}

void
hw_recorder_after_fork_parent(struct hw_recorder *r)
{
    pthread_mutex_unlock(&r->lock);
}

void
hw_recorder_after_fork_child(struct hw_recorder *r)
{
    pthread_mutex_init(&r->lock, NULL);
    pthread_mutex_init(&r->alarm_lock, NULL);
    hw_cond_init(&r->writer_cond);
    hw_cond_init(&r->alarm_cond);
    r->writer_runs = r->writer_must_end = false;
    r->dumps = 0;
    if (r->file >= 0) close(r->file);
    r->file = -1;
    if (r->ring.slots == NULL) return;
    begin(r);
    hw_ring_forget(&r->ring);
    r->forked = true;
    r->pending = !r->set.flight && hw_recording(r);
}
