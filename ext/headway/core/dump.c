/* Dumps of the flight recorder. The order in the file: header, definitions, the threads as they were at the first event, the
 * events, the threads as they are now, the end. Runs without the GVL, while events go on being recorded.
 *
 * The dump before it stays until this one is whole: it is written to out.headway.part, which then takes the place of out.headway.
 * Who has the lock on out.headway has out.headway.part, too. */
#include "recorder.h"

#include "clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct writing {
    struct hw_recorder *recorder;
    struct hw_dump *dump;
    int file;
    struct hw_trace_event *batch;
    struct hw_buffer buffer;
};

static int
write_away(struct writing *w, const struct hw_buffer *buffer)
{
    if (!hw_write_all(w->file, buffer)) return errno;
    w->dump->bytes += buffer->length;
    return 0;
}

static int
write_buffer(struct writing *w)
{
    int error = write_away(w, &w->buffer);
    w->buffer.length = 0;
    return error;
}

static int
write_known(struct writing *w, uint64_t before_ns, uint64_t time_ns)
{
    for (size_t i = 0; i < w->dump->known_count; i++) {
        const struct hw_known *known = &w->dump->known[i];
        if (known->since_ns >= before_ns) continue;
        struct hw_trace_event event = { .time_ns = time_ns, .thread = known->thread, .value = known->state, .kind = HW_TRACE_KNOWN };
        if (!hw_write_events(&w->buffer, &event, 1)) return ENOMEM;
        w->dump->events++;
    }
    return 0;
}

static int
write_events(struct writing *w, size_t count)
{
    if (!hw_write_events(&w->buffer, w->batch, count)) return ENOMEM;
    w->dump->events += count;
    return write_buffer(w);
}

static uint64_t
earliest_ns(const struct hw_trace_event *events, size_t count, uint64_t now)
{
    uint64_t earliest = now;
    for (size_t i = 0; i < count; i++) {
        if (events[i].time_ns < earliest) earliest = events[i].time_ns;
    }
    return earliest;
}

/* The next events that aren't too old; 0: there are no more. */
static size_t
next_batch(struct writing *w)
{
    uint64_t keep_ns = w->recorder->set.keep_ns;
    uint64_t from_ns = keep_ns > 0 && w->dump->now > keep_ns ? w->dump->now - keep_ns : 0;
    for (;;) {
        size_t count = hw_ring_walk_next(&w->recorder->ring, &w->dump->walk, w->batch, HW_BATCH), kept = 0;
        for (size_t i = 0; i < count; i++) {
            if (w->batch[i].time_ns >= from_ns) w->batch[kept++] = w->batch[i];
        }
        if (kept > 0 || count == 0) return kept;
    }
}

/* A thread that has been in its state since before the first event kept has none there that says so. */
static int
write_ring(struct writing *w)
{
    size_t count = next_batch(w);
    uint64_t first_ns = earliest_ns(w->batch, count, w->dump->now);
    int error = write_known(w, first_ns, first_ns);
    while (!error && count > 0) {
        error = write_events(w, count);
        count = next_batch(w);
    }
    return error ? error : write_known(w, HW_NEVER, w->dump->now);
}

/* Copied, so that a thread that ends needn't wait for the disk. */
static bool
append(struct hw_buffer *to, const struct hw_buffer *from)
{
    if (from->length == 0) return true;
    if (!hw_buffer_reserve(to, from->length)) return false;
    memcpy(to->bytes + to->length, from->bytes, from->length);
    to->length += from->length;
    return true;
}

static int
write_ended(struct writing *w)
{
    struct hw_recorder *r = w->recorder;
    struct hw_buffer copy = { NULL, 0, 0 };
    pthread_mutex_lock(&r->lock);
    bool copied = append(&copy, &r->ended[1 - r->newer]) && append(&copy, &r->ended[r->newer]);
    pthread_mutex_unlock(&r->lock);
    int error = copied ? write_away(w, &copy) : ENOMEM;
    free(copy.bytes);
    return error;
}

static int
write_file(struct writing *w)
{
    struct hw_recorder *r = w->recorder;
    struct hw_trace_header header = hw_recorder_header(r);
    if (!hw_write_header(&w->buffer, &header)) return ENOMEM;
    int error = write_buffer(w);
    if (!error) error = write_ended(w);
    if (!error) error = write_away(w, w->dump->definitions);
    if (!error) error = write_ring(w);
    if (error) return error;
    uint64_t lost = hw_ring_dropped(&r->ring) + w->dump->walk.missed - w->dump->walk.older;
    struct hw_quota quota = hw_recorder_quota(r);
    if (quota.periods > 0 && !hw_write_quota(&w->buffer, &quota)) return ENOMEM;
    if (!hw_write_dropped(&w->buffer, lost, r->folded) || !hw_write_end(&w->buffer)) return ENOMEM;
    return write_buffer(w);
}

static int
write_to(struct hw_recorder *r, struct hw_dump *dump, int file)
{
    struct writing w = { .recorder = r, .dump = dump, .file = file };
    w.batch = malloc(HW_BATCH * sizeof(*w.batch));
    int error = w.batch ? write_file(&w) : ENOMEM;
    free(w.batch);
    free(w.buffer.bytes);
    return error;
}

/* A file that can take the other's place, its owner's and readable to whom that is. What a process that was killed left there goes.
 * -1: errno says why. */
static int
open_part(const char *part, int whole)
{
    struct stat facts;
    unlink(part);
    int file = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0) return -1;
    if (fstat(whole, &facts) == 0 && fchown(file, facts.st_uid, facts.st_gid) == 0) {
        fchmod(file, facts.st_mode & 0777);
        return file;
    }
    close(file);
    unlink(part);
    errno = EPERM;
    return -1;
}

/* 0 or an errno. */
static int
write_beside(struct hw_recorder *r, struct hw_dump *dump, const char *part, int file, const char *path)
{
    int error = write_to(r, dump, file);
    if (close(file) != 0 && !error) error = errno; /* some file systems tell of a full disk only now */
    if (!error && rename(part, path) != 0) error = errno;
    if (error) unlink(part);
    return error;
}

/* Where no such file can be had beside it, for want of permission mostly, it is written over. */
static int
replace(struct hw_recorder *r, struct hw_dump *dump, int whole)
{
    char *path = realpath(dump->path, NULL); /* a link stays one */
    if (path == NULL) return errno;
    size_t length = strlen(path) + sizeof(".part");
    char *part = malloc(length);
    int error = ENOMEM;
    if (part != NULL) {
        snprintf(part, length, "%s.part", path);
        int file = open_part(part, whole);
        if (file >= 0) error = write_beside(r, dump, part, file, path);
        else if (errno == ENOSPC || errno == EDQUOT || ftruncate(whole, 0) != 0) error = errno;
        else error = write_to(r, dump, whole);
    }
    free(part);
    free(path);
    return error;
}

static int
dump_to_file(struct hw_recorder *r, struct hw_dump *dump)
{
    struct hw_recorder_file file;
    dump->events = dump->bytes = 0;
    int error = hw_recorder_open(dump->path, false, &file);
    if (error) return error;
    error = file.regular ? replace(r, dump, file.fd) : write_to(r, dump, file.fd);
    if (error && file.made) unlink(dump->path);
    if (hw_recorder_close(file.fd) != 0 && !error) error = errno;
    return error;
}

int
hw_recorder_dump(struct hw_recorder *r, struct hw_dump *dump)
{
    int error = dump_to_file(r, dump);
    pthread_mutex_lock(&r->lock);
    r->dumps--;
    pthread_cond_broadcast(&r->writer_cond);
    pthread_mutex_unlock(&r->lock);
    return error;
}

bool
hw_recorder_announce_dump(struct hw_recorder *r)
{
    pthread_mutex_lock(&r->lock);
    bool runs = hw_recorder_runs(r) && r->set.flight;
    if (runs) r->dumps++;
    pthread_mutex_unlock(&r->lock);
    return runs;
}
