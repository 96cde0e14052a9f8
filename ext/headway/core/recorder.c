#include "recorder.h"

#include "clock.h"
#include "cond.h"

#include <errno.h>
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

void
hw_recorder_init(struct hw_recorder *r)
{
    memset(r, 0, sizeof(*r));
    r->file.fd = -1;
    pthread_mutex_init(&r->lock, NULL);
    pthread_mutex_init(&r->alarm_lock, NULL);
    hw_cond_init(&r->writer_cond);
    hw_cond_init(&r->alarm_cond);
}

/* -- the file ----------------------------------------------------------------------------------------------------------- */

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

struct hw_quota
hw_recorder_quota(const struct hw_recorder *r)
{
    return hw_quota_since(r->quota_before, hw_quota_read(r->set.quota_path));
}

/* What an earlier recording left there goes once it is known that there is room for a beginning. 0 or an errno. */
static int
write_beginning(const struct hw_recorder_file *file, const struct hw_buffer *beginning)
{
    off_t earlier = file->regular ? lseek(file->fd, 0, SEEK_END) : 0;
    int error = hw_write_all(file->fd, beginning) ? 0 : errno;
    if (earlier <= 0) return error;
    if (ftruncate(file->fd, error ? earlier : 0) != 0 || error) return error ? error : errno;
    return lseek(file->fd, 0, SEEK_SET) == 0 && hw_write_all(file->fd, beginning) ? 0 : errno;
}

/* Lock held. Opens the stream's file, writes the header and starts the writer. 0 or an errno. */
static int
open_stream(struct hw_recorder *r)
{
    char path[HW_PATH_LONGEST];
    struct hw_recorder_file file;
    hw_recorder_path(r, path);
    int error = hw_recorder_open(path, r->set.fresh && !r->forked, &file);
    if (error) return error;
    r->file = hw_descriptor_of(file.fd);
    struct hw_trace_header header = hw_recorder_header(r);
    struct hw_buffer buffer = { NULL, 0, 0 };
    error = hw_write_header(&buffer, &header) ? write_beginning(&file, &buffer) : ENOMEM;
    r->bytes = buffer.length;
    buffer_free(&buffer);
    if (!error && !hw_writer_start(r)) error = EAGAIN;
    if (error) {
        if (file.made) unlink(path);
        hw_recorder_close(r->file.fd);
        r->file.fd = -1;
    }
    return error;
}

/* -- life --------------------------------------------------------------------------------------------------------------- */

static void
begin(struct hw_recorder *r)
{
    atomic_fetch_add(&r->session, 1);
    r->folded = 0;
    r->bytes = r->reported_dropped = r->reported_folded = r->reported_exhausted = r->refreshed_ns = 0;
    r->quota_before = hw_quota_read(r->set.quota_path);
    r->encoded.length = r->writing.length = r->ended[0].length = r->ended[1].length = 0;
    r->written = (struct hw_encoded){ 0, 0, 0 };
    r->named = r->told_count = 0;
    r->told_ns = r->told_before_ns = r->told_events = 0;
    r->kept_up_ns = hw_now_ns();
    atomic_store(&r->kept, false);
    atomic_store(&r->failure, 0);
    atomic_store(&r->undumped, 0);
}

/* Lock held. Stream: its file and its writer; flight: its watch, if it has one. 0 or an errno. */
static int
take_up(struct hw_recorder *r)
{
    atomic_store(&r->pending, false);
    if (!r->set.flight) return open_stream(r);
    return r->set.alarm_ns == 0 || hw_writer_start(r) ? 0 : EAGAIN;
}

/* A flight recorder opens its file when it dumps, which would be late to learn that it can't. 0 or an errno. */
static int
place_for_dump(const struct hw_recording *set)
{
    char directory[sizeof(set->path)];
    if (!set->flight || set->path[0] == '\0') return 0;
    if (set->fresh && access(set->path, F_OK) == 0) return EEXIST;
    if (hw_recorder_spares(set->path)) return ENOEXEC;
    strcpy(directory, set->path);
    char *slash = strrchr(directory, '/');
    if (slash == NULL || slash[1] == '\0') return 0;
    strcpy(slash, "/.");
    return access(directory, W_OK) == 0 ? 0 : errno;
}

int
hw_recorder_start(struct hw_recorder *r, const struct hw_recording *set)
{
    enum hw_recorder_state idle = HW_RECORDER_IDLE;
    if (!atomic_compare_exchange_strong(&r->state, &idle, HW_RECORDER_STARTING)) return EBUSY;
    int error = hw_ring_init(&r->ring, set->slots, set->flight) ? 0 : ENOMEM; /* takes its time, so without the lock */
    pthread_mutex_lock(&r->lock);
    r->set = *set;
    r->forked = false;
    begin(r);
    if (!error && r->batch == NULL) r->batch = malloc(HW_BATCH * sizeof(*r->batch));
    if (!error && r->batch == NULL) error = ENOMEM;
    if (!error) error = place_for_dump(set);
    if (!error) error = take_up(r);
    if (error) {
        hw_ring_free(&r->ring);
        atomic_store(&r->state, HW_RECORDER_IDLE);
    }
    pthread_mutex_unlock(&r->lock);
    return error;
}

void
hw_recorder_go(struct hw_recorder *r)
{
    atomic_store(&r->recording, atomic_load(&r->failure) == 0);
    atomic_store(&r->state, HW_RECORDER_RUNNING);
}

void
hw_recorder_ensure(struct hw_recorder *r)
{
    if (!atomic_load(&r->pending)) return;
    pthread_mutex_lock(&r->lock);
    int error = atomic_load(&r->pending) ? take_up(r) : 0;
    if (error) hw_writer_fail(r, error);
    pthread_mutex_unlock(&r->lock);
}

bool
hw_recorder_claim_end(struct hw_recorder *r)
{
    enum hw_recorder_state running = HW_RECORDER_RUNNING;
    return atomic_compare_exchange_strong(&r->state, &running, HW_RECORDER_ENDING);
}

/* Lock held, released while the disk is waited for: what the writer has not written yet, and the end. */
static void
finish_stream(struct hw_recorder *r)
{
    if (r->file.fd < 0) return;
    int error = 0;
    if (atomic_load(&r->failure) == 0) hw_writer_encode(r);
    if (atomic_load(&r->failure) == 0) {
        struct hw_quota quota = hw_recorder_quota(r);
        if (quota.periods > 0 && !hw_write_quota(&r->encoded, &quota)) error = ENOMEM;
        if (!hw_write_end(&r->encoded)) error = ENOMEM;
        pthread_mutex_unlock(&r->lock);
        if (!error) error = hw_writer_write(r, &r->encoded);
        pthread_mutex_lock(&r->lock);
        if (!error) r->bytes += r->encoded.length;
    }
    if (hw_descriptor_whole(&r->file)) {
        if (!error && hw_recorder_is_gone(r->file.fd)) error = ENOENT;
        /* Some file systems tell of a full disk only now. */
        if (hw_recorder_close(r->file.fd) != 0 && !error) error = errno;
    }
    if (error && atomic_load(&r->failure) == 0) hw_writer_fail(r, error);
    r->file.fd = -1;
}

/* Lock held. */
static void
tell(struct hw_recorder *r, struct hw_recorder_status *status)
{
    *status = (struct hw_recorder_status){ .flight = r->set.flight, .events = hw_ring_claimed(&r->ring) - r->ring.floor,
                                           .dropped = hw_ring_dropped(&r->ring), .bytes = r->bytes,
                                           .slots = hw_ring_slots(&r->ring) };
    hw_recorder_path(r, status->path);
    status->failure = atomic_load(&r->failure);
}

int
hw_recorder_stop(struct hw_recorder *r, struct hw_recorder_status *status)
{
    hw_recorder_ensure(r);
    hw_writer_end(r);
    pthread_mutex_lock(&r->lock);
    while (r->dumps > 0) hw_cond_wait_until(&r->writer_cond, &r->lock, HW_NEVER);
    if (!r->set.flight) finish_stream(r);
    if (status) tell(r, status);
    hw_ring_free(&r->ring);
    buffer_free(&r->encoded);
    buffer_free(&r->writing);
    buffer_free(&r->ended[0]);
    buffer_free(&r->ended[1]);
    int failure = atomic_load(&r->failure);
    atomic_store(&r->state, HW_RECORDER_IDLE);
    pthread_mutex_unlock(&r->lock);
    return failure;
}

bool
hw_recorder_status(struct hw_recorder *r, struct hw_recorder_status *status)
{
    if (!hw_recorder_runs(r)) return false; /* whoever starts it may hold the lock for long */
    pthread_mutex_lock(&r->lock);
    bool runs = hw_recorder_runs(r);
    if (runs) tell(r, status);
    pthread_mutex_unlock(&r->lock);
    return runs;
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
    /* Short of memory: a name less. */
    if (hw_recorder_runs(r)) hw_write_thread(buffer, number, name, name_length, site, site_length);
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
    atomic_store(&r->pending, false);
    hw_descriptor_close(&r->file); /* not hw_recorder_close: the lock is the parent's, and would be gone for both */
    enum hw_recorder_state state = atomic_load(&r->state);
    if (state != HW_RECORDER_RUNNING) {
        atomic_store(&r->recording, false);
        if (state == HW_RECORDER_STARTING) memset(&r->ring, 0, sizeof(r->ring)); /* it may be half there: left behind */
        hw_ring_free(&r->ring);
        atomic_store(&r->state, HW_RECORDER_IDLE);
        return;
    }
    begin(r);
    hw_ring_forget(&r->ring);
    r->forked = true;
    atomic_store(&r->pending, hw_recording(r) && (!r->set.flight || r->set.alarm_ns > 0));
}
