/* The writer: the native thread that brings events from the ring to the file in mode stream. It sleeps for a quarter of the time
 * in which two million events a second would fill the ring, a quarter of a second at the most. */
#include "recorder.h"

#include "clock.h"
#include "cond.h"
#include "teller.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define NS_PER_SLOT 125
#define SHORTEST_NAP_NS (1 * HW_NS_PER_MS)
#define LONGEST_NAP_NS (250 * HW_NS_PER_MS)
/* What becomes known of frames and strings is in the file after twice that: it is looked for, and written when it is looked for again.
 * (Threads' names take a second: teller.c.) */
#define KEEP_UP_NS (250 * HW_NS_PER_MS)
/* Bytes that are worth a write of their own while there is more in the ring. */
#define ENOUGH_BYTES (256 * 1024)
/* How long a pipe may take nothing. A writer that waited for good would be waited for by the program's end, and by a stop that has the
 * GVL: no signal ends such a wait. */
#ifdef HW_TEST
uint64_t hw_writer_patience_ns = 500 * HW_NS_PER_MS;
#define PATIENCE_NS hw_writer_patience_ns
#else
#define PATIENCE_NS (5 * HW_NS_PER_S)
#endif

/* A write beyond the limit of the process would be told of by SIGXFSZ first, which ends the program. */
static bool
within_limit(int file, size_t length)
{
    struct rlimit limit;
    off_t at = lseek(file, 0, SEEK_CUR);
    if (at < 0 || getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return true;
    return (uint64_t)at + length <= (uint64_t)limit.rlim_cur;
}

/* After a write that found no room. By the clock, as signals may cut each wait short. */
static bool
room_until(int file, uint64_t until_ns)
{
    struct pollfd polled = { .fd = file, .events = POLLOUT };
    uint64_t left_ns = hw_elapsed_ns(hw_now_ns(), until_ns);
    if (left_ns > 0 && poll(&polled, 1, (int)(left_ns / HW_NS_PER_MS) + 1) != 0) return true; /* or an error: the next write tells of it */
    errno = ETIMEDOUT;
    return false;
}

bool
hw_write_all(int file, const struct hw_buffer *buffer)
{
    if (!within_limit(file, buffer->length)) {
        errno = EFBIG;
        return false;
    }
    uint64_t until_ns = hw_now_ns() + PATIENCE_NS;
    for (size_t done = 0; done < buffer->length;) {
        ssize_t written = write(file, buffer->bytes + done, buffer->length - done);
        if (written > 0) {
            done += (size_t)written;
            until_ns = hw_now_ns() + PATIENCE_NS;
        }
        else if (written == 0) {
            errno = ENOSPC;
            return false;
        }
        else if (errno != EINTR && (errno != EAGAIN || !room_until(file, until_ns))) return false;
    }
    return true;
}

int
hw_writer_write(struct hw_recorder *r, const struct hw_buffer *buffer)
{
    if (!hw_descriptor_whole(&r->file)) return EBADF;
    return hw_write_all(r->file.fd, buffer) ? 0 : errno;
}

/* Lock held, or nobody else there. */
void
hw_writer_fail(struct hw_recorder *r, int error)
{
    hw_recorder_path(r, r->failed_path);
    atomic_store(&r->failure, error);
    atomic_store(&r->recording, false);
}

static bool
encode_batch(struct hw_recorder *r)
{
    size_t count = hw_ring_take(&r->ring, r->batch, HW_BATCH);
    if (count > 0 && !hw_write_events(&r->encoded, r->batch, count)) hw_writer_fail(r, ENOMEM);
    return count == HW_BATCH;
}

static void
encode_losses(struct hw_recorder *r)
{
    uint64_t dropped = hw_ring_dropped(&r->ring), folded = r->folded;
    if (dropped == r->reported_dropped && folded == r->reported_folded) return;
    r->reported_dropped = dropped;
    r->reported_folded = folded;
    if (!hw_write_dropped(&r->encoded, dropped, folded)) hw_writer_fail(r, ENOMEM);
}

/* A process that is killed, or goes on, has no end that tells. */
static void
encode_quota(struct hw_recorder *r)
{
    struct hw_quota quota = hw_recorder_quota(r);
    if (quota.exhausted == r->reported_exhausted) return;
    r->reported_exhausted = quota.exhausted;
    if (!hw_write_quota(&r->encoded, &quota)) hw_writer_fail(r, ENOMEM);
}

void
hw_writer_encode(struct hw_recorder *r)
{
    while (encode_batch(r)) {}
    encode_losses(r);
}

/* Lock held; released while the disk is waited for. */
static void
write_away(struct hw_recorder *r)
{
    if (r->encoded.length == 0) return;
    struct hw_buffer empty = r->writing;
    r->writing = r->encoded;
    r->encoded = empty;
    r->encoded.length = 0;
    pthread_mutex_unlock(&r->lock);
    int error = hw_writer_write(r, &r->writing);
    pthread_mutex_lock(&r->lock);
    if (error) hw_writer_fail(r, error);
    else r->bytes += r->writing.length;
    r->writing.length = 0;
}

/* Lock held; released meanwhile. */
static void
keep_up(struct hw_recorder *r)
{
    uint64_t now = hw_now_ns();
    if (now < r->kept_up_ns + KEEP_UP_NS) return;
    r->kept_up_ns = now;
    encode_quota(r);
    if (r->teller == NULL) return;
    pthread_mutex_unlock(&r->lock);
    hw_teller_keep_up(r->teller, now);
    pthread_mutex_lock(&r->lock);
}

static uint64_t
nap_ns(const struct hw_recorder *r)
{
    uint64_t nap = hw_ring_slots(&r->ring) * NS_PER_SLOT;
    return nap < SHORTEST_NAP_NS ? SHORTEST_NAP_NS : nap > LONGEST_NAP_NS ? LONGEST_NAP_NS : nap;
}

static void *
run(void *arg)
{
    struct hw_recorder *r = arg;
    uint64_t nap = nap_ns(r);
    pthread_mutex_lock(&r->lock);
    while (!r->writer_must_end && atomic_load(&r->failure) == 0) {
        bool more = encode_batch(r);
        if (!more) encode_losses(r);
        keep_up(r);
        if (!more || r->encoded.length >= ENOUGH_BYTES) write_away(r);
        if (!more && !r->writer_must_end) hw_cond_wait_until(&r->writer_cond, &r->lock, hw_now_ns() + nap);
    }
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

/* Lock held. */
bool
hw_writer_start(struct hw_recorder *r)
{
    sigset_t all, before;
    r->writer_must_end = false;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    r->watch_must_end = false;
    pthread_mutex_lock(&r->alarm_lock);
    r->heeded = r->alarms; /* here, as events may come before the thread does */
    pthread_mutex_unlock(&r->alarm_lock);
    r->writer_runs = pthread_create(&r->writer, NULL, r->set.flight ? hw_watch : run, r) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return r->writer_runs;
}

void
hw_writer_end(struct hw_recorder *r)
{
    pthread_mutex_lock(&r->lock);
    bool runs = r->writer_runs;
    r->writer_must_end = true;
    pthread_cond_signal(&r->writer_cond);
    pthread_mutex_unlock(&r->lock);
    if (!runs) return;
    pthread_mutex_lock(&r->alarm_lock);
    r->watch_must_end = true;
    pthread_cond_signal(&r->alarm_cond);
    pthread_mutex_unlock(&r->alarm_lock);
    pthread_join(r->writer, NULL);
    r->writer_runs = false;
}
