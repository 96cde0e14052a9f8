/* The control socket: one native thread that answers who asks this process for its statistics, or changes its settings, over a Unix
 * socket. docs/control-protocol.md is what it speaks.
 *
 * Why a native thread. A Ruby thread that waits for clients would be in everybody's Thread.list, would count as alive, so that the
 * VM would never again see a deadlock, and would itself wait for the GVL just when somebody looks because of that. This thread is
 * none that the VM knows: it sleeps in poll, and what it tells it reads under the runtime's lock. It answers while every Ruby thread
 * computes, while one holds the GVL in native code, and while all sleep.
 *
 * Errands. What only Ruby knows (names of threads, what the recorder can tell) is fetched by a Ruby thread that lives for just that,
 * which a postponed job starts: `trigger` asks for the job. Statistics wait for it for NAMES_WAIT at the most, and not at all when no
 * thread runs or wants to.
 *
 * Locks, in order:  control.lock  →  runtime.lock.  control.lock protects all below but the clients, which are the server thread's
 * own, and is taken around whatever changes the runtime's settings, here and in Ruby's methods. Nobody waits for the GVL under it.
 *
 * fork: the lock is taken across it. In the child the descriptors are closed at once, so that the child neither answers for its
 * parent nor keeps the parent's socket alive; `reopen` then says that a socket of its own is wanted. The parent's file is left alone. */
#ifndef HW_CONTROL_H
#define HW_CONTROL_H

#include "json.h"
#include "runtime.h"

#include <sys/stat.h>
#include <sys/un.h>

#define HW_CONTROL_SCHEMA 1
#define HW_CONTROL_REQUEST_MAX 4096      /* bytes of a line, with its end */
#define HW_CONTROL_CLIENTS 16            /* served at a time; more wait in the socket's queue */
#define HW_CONTROL_ROWS 1000             /* threads in an answer; the youngest are left out */
#define HW_CONTROL_ANSWER_MAX (4u << 20) /* bytes */

#define HW_CONTROL_TOO_LONG "the request is too long: 4096 bytes at the most, with its end of line"

struct hw_control_facts {
    char directory[1024];
    char headway[32], ruby[32], command[256];
    bool only_observes; /* under M:N threads no other policy can be set */
};

/* A descriptor of ours: some programs close all there are, and the number may be somebody else's then. */
struct hw_descriptor {
    int fd;
    dev_t device;
    ino_t inode;
};

enum hw_errand { HW_ERRAND_NONE, HW_ERRAND_NAMES, HW_ERRAND_DUMP };

struct hw_client;

struct hw_control {
    pthread_mutex_t lock;
    struct hw_runtime *runtime;
    struct hw_control_facts facts;
    void (*trigger)(void);      /* any thread: makes Ruby run the errands */
    /* A recorder that can dump without Ruby sets it: called without the GVL, on the server thread; an empty path is for it to choose.
     * True: `answer` is the path; false: what went wrong. NULL: Ruby makes the dump, as soon as one of its threads runs. */
    bool (*dump_natively)(const char *path, char *answer, size_t capacity);

    bool open, must_end, reopen;
    bool settings_changed;      /* by a client; Ruby's side has not seen it yet */
    pthread_t thread;
    struct hw_descriptor listener, wake_read, wake_write;
    char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
    struct stat file;           /* the socket's, to know it by */
    struct hw_client *clients;

    /* Errands. */
    bool names_wanted, errand_runs;
    uint64_t names_ns;          /* when Ruby last told all names; 0: never */
    struct hw_text aside;       /* further members of the statistics, as Ruby wrote them: `,"name":…` */
    enum { HW_DUMP_NONE, HW_DUMP_WANTED, HW_DUMP_TAKEN, HW_DUMP_DONE } dump;
    bool dump_failed;
    char dump_path[1024];       /* empty: Ruby chooses */
    char dump_answer[1024];     /* the path, or what went wrong */
};

void hw_control_init(struct hw_control *control, struct hw_runtime *runtime, void (*trigger)(void));
/* Makes directory and socket, and starts the thread. NULL, or why it can't; opening it twice does nothing. */
const char *hw_control_open(struct hw_control *control);
/* Ends the thread and removes the file. */
void hw_control_close(struct hw_control *control);

/* pthread_atfork; before the runtime's own. */
void hw_control_before_fork(struct hw_control *control);
void hw_control_after_fork_parent(struct hw_control *control);
void hw_control_after_fork_child(struct hw_control *control);

/* Errands, on the thread that runs them: what is to be done next, with the dump's path; and what came of it. */
bool hw_control_errands_due(struct hw_control *control);
enum hw_errand hw_control_next_errand(struct hw_control *control, char *path, size_t capacity);
void hw_control_set_name(struct hw_control *control, struct hw_thread *thread, const char *name, size_t length);
void hw_control_names_done(struct hw_control *control, const char *aside, size_t length);
/* No errand runs any more; one that was begun has failed. */
void hw_control_errands_end(struct hw_control *control);
void hw_control_dump_done(struct hw_control *control, const char *answer, size_t length, bool failed);

/* -- inside --------------------------------------------------------------------------------------------------------------- */

/* control_socket.c */
const char *hw_socket_open(struct hw_control *control);
void hw_socket_close(struct hw_control *control, bool remove);
void hw_socket_wake(struct hw_control *control);
bool hw_socket_whole(const struct hw_descriptor *descriptor); /* still ours */
int hw_socket_accept(struct hw_control *control);             /* -1: nobody there, or nobody we talk to */

/* control_sweep.c: files of processes that are gone */
void hw_control_sweep(struct hw_control *control);
bool hw_socket_refused(const char *path); /* nobody listens there */

/* control_client.c */
bool hw_clients_make(struct hw_control *control);
void hw_clients_drop(struct hw_control *control);

/* control_server.c */
void *hw_control_serve(void *control);

/* control_request.c */
enum hw_reply { HW_REPLY_READY, HW_REPLY_STATS, HW_REPLY_DUMP };
/* One line without its end. READY: the answer is written; else it is due when the errand is done, or in vain. */
enum hw_reply hw_control_request(struct hw_control *control, const char *line, size_t length, struct hw_text *answer);
void hw_control_error(struct hw_text *answer, const char *message);

/* control_answer.c */
void hw_answer_settings(struct hw_control *control, struct hw_text *answer);
void hw_answer_ping(struct hw_control *control, struct hw_text *answer);
void hw_answer_stats(struct hw_control *control, struct hw_text *answer);
void hw_answer_dump(struct hw_control *control, struct hw_text *answer, bool in_vain);

#endif
