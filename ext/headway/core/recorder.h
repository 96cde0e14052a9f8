/* The recorder: owns the ring and what becomes of its events. In mode stream a native thread takes them out, encodes and writes
 * them to a file; in mode flight they stay in the ring until somebody asks for a dump. Knows neither Ruby nor the scheduler.
 *
 * Who calls what
 *   hw_record                under the runtime's lock, which makes for one producer at a time; no allocation, no system call
 *   hw_recorder_name_thread  Ruby methods and the end of a thread, with the GVL; hw_recorder_definitions, the teller, too (teller.c)
 *   start, stop, dump        Ruby methods (stop and dump wait for the disk: without the GVL, where that can be), and the control
 *                            socket's thread
 *   ensure                   Ruby methods, stop, and the hook of a new thread
 *   the writer, the watch    native threads of its own, all signals blocked; Ruby doesn't know them. The writer also sees to it
 *                            that names come into the file soon, which may not have an end: hw_teller_keep_up, no lock held
 *
 * Locks: recorder.lock protects the encoder's buffers and the file. It is never asked for by a producer, nor with the runtime's
 * lock held, and never held while the disk is waited for but when a file is opened. recorder.alarm_lock is a leaf, held for
 * instants.
 *
 * Recordings are started and stopped from several threads, so each goes through the states idle, starting, running, ending, idle.
 * Only who has brought it from idle to starting, or from running to ending, may do what comes next. A forked child keeps a
 * recording that runs; one that was starting or ending is over there.
 *
 * Invariants
 *   1. The ring is freed by nobody but who ends a recording, after `recording` was turned off under the runtime's lock.
 *   2. A write that fails ends the recording: `recording` turns false, `failure` and `failed_path` say why; the program goes on.
 *   3. Bytes are written once: a forked child closes the parent's file and forgets what was buffered and what was in the ring.
 *   4. Nothing is written to a file that isn't ours any more, because the program closed every descriptor it has.
 *   5. A child's file is opened when it has something to tell (its second thread, a mark, its end): one that only runs another
 *      program leaves none behind. */
#ifndef HW_RECORDER_H
#define HW_RECORDER_H

#include "descriptor.h"
#include "encode_tables.h"
#include "quota.h"
#include "ring.h"
#include "trace_writer.h"

#include <pthread.h>

#define HW_PATH_LONGEST 4096
#define HW_TOLD_MOST 1000 /* the youngest threads, whose names the writer looks after */

enum hw_recorder_state { HW_RECORDER_IDLE, HW_RECORDER_STARTING, HW_RECORDER_RUNNING, HW_RECORDER_ENDING };

struct hw_recording {
    bool flight;
    bool fresh;        /* refuse a file that is there already */
    uint64_t slots;
    uint64_t alarm_ns; /* flight: sound the alarm for a wait of this length; 0: never */
    uint64_t keep_ns;  /* flight: a dump leaves out what is older; 0: nothing */
    char path[HW_PATH_LONGEST]; /* of the parent of all forked children; "" in mode flight without one */
    char quota_path[HW_PATH_LONGEST]; /* see hw_quota_read */
    struct hw_trace_header header; /* pids and clocks are filled in here */
};

struct hw_recorder {
    atomic_bool recording;  /* producers look at this first */
    _Atomic enum hw_recorder_state state;
    struct hw_ring ring;
    struct hw_recording set;
    _Atomic uint64_t session; /* numbers the recordings, a forked child's included */

    pthread_mutex_t lock;
    atomic_bool pending;    /* a child whose file isn't open yet, or whose watch isn't there */
    bool forked;            /* the path gets this process's number */
    struct hw_descriptor file;
    _Atomic uint64_t folded; /* stacks that found no place; told with the GVL alone */
    uint64_t bytes;          /* written so far */
    uint64_t reported_dropped, reported_folded, reported_exhausted;
    struct hw_quota quota_before; /* the recording */
    struct hw_buffer encoded, writing; /* writing: the writer's own while it writes without the lock */
    struct hw_buffer ended[2];         /* flight: names of threads that ended, older half and newer half */
    unsigned newer;
    struct hw_encoded written; /* stream: of the tables, so far */
    uint32_t named;            /* the latest thread whose name was written with where it was created */
    uint64_t refreshed_ns;
    struct hw_told {
        uint32_t number, name; /* a checksum of what it was called when that was last looked at; 0: nobody knew */
    } told[HW_TOLD_MOST];
    uint32_t told_count;
    uint64_t told_ns, told_before_ns, told_events; /* when that was, and the time before; how many events there were */
    uint64_t kept_up_ns;

    pthread_t writer;       /* stream: the writer; flight with alarm_ns: the watch */
    pthread_cond_t writer_cond;
    bool writer_runs, writer_must_end;
    unsigned dumps;         /* under way: the ring stays */
    struct hw_trace_event *batch; /* room for the events on their way from the ring to the encoder */

    atomic_bool kept;       /* flight: a stop that could not dump has left it to go on; the next one ends it */
    atomic_int failure;     /* errno of the write that ended the recording */
    char failed_path[HW_PATH_LONGEST];

    pthread_mutex_t alarm_lock;
    pthread_cond_t alarm_cond;
    uint64_t alarms, heeded; /* sounded so far; of these, the watch needn't see to any more */
    bool watch_must_end;
    const struct hw_teller *teller; /* who can tell what the watch's dumps and the writer's file need */
    atomic_int undumped;    /* errno of a dump that the watch could not write */
    char undumped_path[HW_PATH_LONGEST];
};

void hw_recorder_init(struct hw_recorder *recorder);

/* 0: it is starting, and hw_recorder_go is the caller's, with the runtime's lock held. Or an errno, EBUSY: another one is there. */
int hw_recorder_start(struct hw_recorder *recorder, const struct hw_recording *recording);
void hw_recorder_go(struct hw_recorder *recorder);
/* A stop that could not dump: true, once a recording: it goes on, so that what it holds can be dumped elsewhere. */
static inline bool
hw_recorder_keep(struct hw_recorder *recorder)
{
    return !atomic_exchange(&recorder->kept, true);
}
/* True: it is ending, and turning `recording` off and hw_recorder_stop are the caller's. */
bool hw_recorder_claim_end(struct hw_recorder *recorder);
/* Writes what is left and closes; status, unless it is NULL: as it was in the end. 0, or the errno that ended the recording. */
struct hw_recorder_status;
int hw_recorder_stop(struct hw_recorder *recorder, struct hw_recorder_status *status);
/* In a forked child: opens its file, or starts its watch. */
void hw_recorder_ensure(struct hw_recorder *recorder);

static inline bool
hw_recorder_runs(struct hw_recorder *recorder)
{
    return atomic_load(&recorder->state) == HW_RECORDER_RUNNING;
}

/* False: none runs. */
struct hw_recorder_status {
    bool flight;
    uint64_t events, dropped, bytes, slots;
    char path[HW_PATH_LONGEST]; /* as hw_recorder_path */
    int failure; /* errno of the write that ended it before its time; 0: it goes on */
};
bool hw_recorder_status(struct hw_recorder *recorder, struct hw_recorder_status *status);

static inline bool
hw_recording(const struct hw_recorder *recorder)
{
    return atomic_load_explicit(&recorder->recording, memory_order_relaxed);
}

static inline void
hw_record_detailed(struct hw_recorder *recorder, enum hw_trace_kind kind, uint32_t thread, uint32_t value, uint8_t detail,
                   uint64_t now)
{
    if (!hw_recording(recorder)) return;
    struct hw_trace_event event = { .time_ns = now, .thread = thread, .value = value, .kind = (uint8_t)kind, .detail = detail };
    hw_ring_push(&recorder->ring, &event);
}

static inline void
hw_record(struct hw_recorder *recorder, enum hw_trace_kind kind, uint32_t thread, uint32_t value, uint64_t now)
{
    hw_record_detailed(recorder, kind, thread, value, 0, now);
}

/* A buffer for definitions (strings, frames, stacks, threads) on their way to the file of mode stream; locked until _done. */
struct hw_buffer *hw_recorder_definitions(struct hw_recorder *recorder);
void hw_recorder_definitions_done(struct hw_recorder *recorder);

/* A thread that ends. */
void hw_recorder_name_thread(struct hw_recorder *recorder, uint32_t number, const char *name, size_t name_length, const char *site,
                             size_t site_length);

/* Mode flight: a whole file of what the ring holds; dump.c. The caller has taken `walk`, `known` and `now` at one instant, with
 * the runtime's lock held. 0 or an errno. */
struct hw_known {
    uint64_t since_ns; /* when it entered its state */
    uint32_t thread, state;
};
struct hw_dump {
    const char *path;
    const struct hw_buffer *definitions; /* encoded by the caller */
    const struct hw_known *known;        /* the living threads */
    size_t known_count;
    struct hw_ring_walk walk;
    uint64_t now;
    uint64_t events, bytes;              /* filled in: what was written */
    int error;
};
bool hw_recorder_announce_dump(struct hw_recorder *recorder); /* before each dump: a stop waits for it. False: no flight recorder runs */
int hw_recorder_dump(struct hw_recorder *recorder, struct hw_dump *dump);

/* Where this process writes: out.headway, in a forked child out.PID.headway. "" when no path was given. The recording stays:
 * lock held, or a dump announced. */
void hw_recorder_path(struct hw_recorder *recorder, char path[HW_PATH_LONGEST]);
/* The same, or headway-PID.headway in the current directory. */
void hw_recorder_dump_path(struct hw_recorder *recorder, char path[HW_PATH_LONGEST]);
/* "out.headway" -> "out.INFIX.headway", "out" -> "out.INFIX" */
void hw_recorder_variant(const char *path, const char *infix, char variant[HW_PATH_LONGEST]);
/* "out.headway" -> the first of "out.WHY-1.headway", "out.WHY-2.headway", … that isn't there */
void hw_recorder_next_path(const char *path, const char *why, char next[HW_PATH_LONGEST]);

/* Of an errno of starting, stopping and dumping: what to say of it. */
const char *hw_recorder_reason(int error);

/* Mode flight with alarm_ns: sounded by a hook or the ticker, under the runtime's lock; the watch then dumps. */
void hw_recorder_sound_alarm(struct hw_recorder *recorder);

/* For pthread_atfork. The child's `recording` stays as it was. */
void hw_recorder_before_fork(struct hw_recorder *recorder);
void hw_recorder_after_fork_parent(struct hw_recorder *recorder);
void hw_recorder_after_fork_child(struct hw_recorder *recorder);

/* Inside the recorder */
#define HW_BATCH 8192
struct hw_recorder_file {
    int fd;
    bool made, regular; /* it wasn't there before; it is no device, pipe, terminal */
};
bool hw_recorder_spares(const char *path); /* it is there and is no trace: nothing is to be written to it */
int hw_recorder_open(const char *path, bool fresh, struct hw_recorder_file *file); /* to write, as it is, and locked. 0 or an errno */
int hw_recorder_close(int file);    /* as close */
bool hw_recorder_is_gone(int file); /* deleted, and nobody will ever read it */
struct hw_trace_header hw_recorder_header(const struct hw_recorder *recorder); /* as of now */
struct hw_quota hw_recorder_quota(const struct hw_recorder *recorder);         /* since it began */

/* watch.c: the native thread that dumps when the alarm sounds */
void *hw_watch(void *recorder);

/* writer.c */
bool hw_writer_start(struct hw_recorder *recorder); /* in mode flight the watch */
void hw_writer_end(struct hw_recorder *recorder);
bool hw_write_all(int file, const struct hw_buffer *buffer); /* false: errno says why */
int hw_writer_write(struct hw_recorder *recorder, const struct hw_buffer *buffer); /* 0 or an errno */
void hw_writer_fail(struct hw_recorder *recorder, int error);
void hw_writer_encode(struct hw_recorder *recorder); /* everything the ring holds now; lock held */

#endif
