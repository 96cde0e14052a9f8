/* The recorder: owns the ring and what becomes of its events. In mode stream a native thread takes them out, encodes and writes
 * them to a file; in mode flight they stay in the ring until somebody asks for a dump. Knows neither Ruby nor the scheduler.
 *
 * Who calls what
 *   hw_record                anybody, at any time: the ring's producers. No lock, no allocation, no system call
 *   hw_recorder_name_thread, hw_recorder_definitions    Ruby methods and the end of a thread, with the GVL
 *   start, stop, ensure, dump    Ruby methods (stop and dump wait for the disk: without the GVL, where that can be)
 *   dump                     the control socket's thread, too
 *   the writer               its own native thread, all signals blocked; Ruby doesn't know it
 *
 * Locks: recorder.lock protects the encoder's buffers and the file. It is never asked for by a producer, nor with the runtime's
 * lock held, and never held while the disk is waited for but at start and stop. recorder.alarm_lock is a leaf, held for instants.
 *
 * Invariants
 *   1. The ring is freed by nobody but start and stop, whose caller sees to it that no producer is inside (record.c: it holds the
 *      GVL and turns `recording` off under the runtime's lock).
 *   2. A write that fails ends the recording: `recording` turns false, `failure` and `failed_path` say why; the program goes on.
 *   3. Bytes are written once: a forked child closes the parent's file and forgets what was buffered and what was in the ring.
 *   4. A child's file is opened when it has something to tell (its second thread, a mark, its end): one that only runs another
 *      program leaves none behind. */
#ifndef HW_RECORDER_H
#define HW_RECORDER_H

#include "ring.h"
#include "trace_writer.h"

#include <pthread.h>

#define HW_PATH_LONGEST 4096

struct hw_recording {
    bool flight;
    uint64_t slots;
    uint64_t alarm_ns; /* flight: sound the alarm for a wait of this length; 0: never */
    uint64_t keep_ns;  /* flight: a dump leaves out what is older; 0: nothing */
    char path[HW_PATH_LONGEST]; /* of the parent of all forked children; "" in mode flight without one */
    struct hw_trace_header header; /* pids and clocks are filled in here */
};

struct hw_recorder {
    atomic_bool recording;  /* producers look at this first */
    struct hw_ring ring;
    struct hw_recording set;
    uint64_t session;       /* numbers the recordings, a forked child's included */

    pthread_mutex_t lock;
    bool pending;           /* a child whose file isn't open yet */
    bool forked;            /* the path gets this process's number */
    int file;               /* -1: none */
    uint64_t bytes, folded; /* written so far; stacks that found no place */
    uint64_t reported_dropped, reported_folded;
    struct hw_buffer encoded, writing; /* writing: the writer's own while it writes without the lock */
    struct hw_buffer ended[2];         /* flight: names of threads that ended, older half and newer half */
    unsigned newer;

    pthread_t writer;
    pthread_cond_t writer_cond;
    bool writer_runs, writer_must_end;
    unsigned dumps;         /* under way: the ring stays */
    struct hw_trace_event *batch; /* room for the events on their way from the ring to the encoder */

    atomic_int failure;     /* errno of the write that ended the recording */
    char failed_path[HW_PATH_LONGEST];

    pthread_mutex_t alarm_lock;
    pthread_cond_t alarm_cond;
    uint64_t alarms;        /* sounded so far */
};

bool hw_recorder_init(struct hw_recorder *recorder);

/* 0, or an errno: nothing is recorded then. Turning `recording` on is the caller's. */
int hw_recorder_start(struct hw_recorder *recorder, const struct hw_recording *recording);
/* `recording` is off. Writes what is left and closes. 0, or the errno that ended the recording. */
int hw_recorder_stop(struct hw_recorder *recorder);
/* In a forked child: opens its file. */
void hw_recorder_ensure(struct hw_recorder *recorder);

static inline bool
hw_recording(struct hw_recorder *recorder)
{
    return atomic_load_explicit(&recorder->recording, memory_order_relaxed);
}

static inline void
hw_record(struct hw_recorder *recorder, enum hw_trace_kind kind, uint32_t thread, uint32_t value, uint64_t now)
{
    if (!hw_recording(recorder)) return;
    struct hw_trace_event event = { .time_ns = now, .thread = thread, .value = value, .kind = (uint8_t)kind };
    hw_ring_push(&recorder->ring, &event);
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

/* Where this process writes: out.headway, in a forked child out.PID.headway. "" when no path was given. */
void hw_recorder_path(struct hw_recorder *recorder, char path[HW_PATH_LONGEST]);

/* Mode flight with alarm_ns: sounded by a hook, waited for by a Ruby thread without the GVL. */
void hw_recorder_sound_alarm(struct hw_recorder *recorder);
uint64_t hw_recorder_await_alarm(struct hw_recorder *recorder, uint64_t alarms_seen, uint64_t until_ns);

/* For pthread_atfork. The child's `recording` stays as it was. */
void hw_recorder_before_fork(struct hw_recorder *recorder);
void hw_recorder_after_fork_parent(struct hw_recorder *recorder);
void hw_recorder_after_fork_child(struct hw_recorder *recorder);

/* Inside the recorder */
#define HW_BATCH 8192
int hw_recorder_open(const char *path);
struct hw_trace_header hw_recorder_header(const struct hw_recorder *recorder); /* as of now */

/* writer.c */
bool hw_writer_start(struct hw_recorder *recorder);
void hw_writer_end(struct hw_recorder *recorder);
bool hw_write_all(int file, const struct hw_buffer *buffer); /* false: errno says why */
void hw_writer_fail(struct hw_recorder *recorder, int error);
void hw_writer_encode(struct hw_recorder *recorder); /* everything the ring holds now; lock held */

#endif
