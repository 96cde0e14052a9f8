/* The control socket: one native thread that answers who asks this process for its statistics, or changes its settings, over a Unix
 * socket. docs/control-protocol.md is what it speaks.
 *
 * Why a native thread. A Ruby thread that waits for clients would be in everybody's Thread.list, would count as alive, so that the
 * VM would never again see a deadlock, and would itself wait for the GVL just when somebody looks because of that. This thread is
 * none that the VM knows: it sleeps in poll, and what it tells it reads under the runtime's lock. It answers while every Ruby thread
 * computes, while one holds the GVL in native code, and while all sleep.
 *
 * Names. Threads are called what their native threads are, or what Ruby last said (names.h). No request ever starts a Ruby thread, or
 * waits for one.
 *
 * Locks, in order:  control.lock  →  recorder.lock  →  runtime.lock.  control.lock protects the settings while they are changed,
 * here and in Ruby's methods, and descriptors while they come and go. It is held for instants: neither while an answer is written or
 * sent, nor during a dump, nor while a recording starts or stops. The clients are the server thread's own.
 *
 * fork: the lock is taken across it. In the child the descriptors are closed at once, so that the child neither answers for its
 * parent nor keeps the parent's socket alive; what the server thread had in hand is left behind. `reopen` then says that a socket
 * of its own is wanted: it gets one with its second thread, as with only one there is nobody to wait for. The parent's file is
 * left alone. */
#ifndef HW_CONTROL_H
#define HW_CONTROL_H

#include "descriptor.h"
#include "figures.h"
#include "json.h"
#include "runtime.h"
#include "teller.h"

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
    uint32_t cpus;
    char quota_path[HW_PATH_LONGEST];
};

struct hw_client;

struct hw_control {
    pthread_mutex_t lock;
    struct hw_runtime *runtime;
    struct hw_control_facts facts;
    struct hw_teller teller;
    void (*trigger)(void);      /* any thread: makes Ruby see, soon, that something records */

    bool open, must_end, reopen;
    bool stranded;              /* the program closed what wakes the thread, which may sleep on: nothing is opened again, as it would
                                   wake up in the middle of that */
    bool settings_changed;      /* by a client; Ruby's side has not seen it yet */
    pthread_t thread;
    struct hw_descriptor listener, wake_read, wake_write;
    char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
    struct stat file;           /* the socket's, to know it by */
    struct hw_client *clients, *left_behind; /* the latter: the parent's, kept for whoever looks for leaks */
};

void hw_control_init(struct hw_control *control, struct hw_runtime *runtime, const struct hw_strings *strings,
                     const struct hw_stacks *stacks, void (*trigger)(void));
/* Makes directory and socket, and starts the thread. NULL, or why it can't; opening it twice does nothing. */
const char *hw_control_open(struct hw_control *control);
/* Ends the thread and removes the file. */
void hw_control_close(struct hw_control *control);
/* In a forked child: opens the socket that the fork closed. */
void hw_control_ensure(struct hw_control *control);

/* pthread_atfork; before the runtime's own. */
void hw_control_before_fork(struct hw_control *control);
void hw_control_after_fork_parent(struct hw_control *control);
void hw_control_after_fork_child(struct hw_control *control);

/* -- inside --------------------------------------------------------------------------------------------------------------- */

/* control_socket.c */
const char *hw_socket_open(struct hw_control *control);
void hw_socket_close(struct hw_control *control, bool remove);
void hw_socket_wake(struct hw_control *control);
struct hw_descriptor hw_socket_accept(struct hw_control *control); /* none: nobody there, or nobody we talk to */
#define HW_NO_ROOM -2 /* its number then: no room for another */

/* control_sweep.c: files of processes that are gone */
void hw_control_sweep(struct hw_control *control);
bool hw_socket_refused(const char *path); /* nobody listens there */

/* control_client.c */
bool hw_clients_make(struct hw_control *control);
void hw_clients_drop(struct hw_control *control);
void hw_clients_leave(struct hw_control *control); /* in a forked child: to the parent */

/* control_server.c */
void *hw_control_serve(void *control);

/* control_request.c: one line without its end */
void hw_control_request(struct hw_control *control, const char *line, size_t length, struct hw_text *answer);
void hw_control_error(struct hw_text *answer, const char *message);

/* control_answer.c, control_threads.c, control_blame.c */
void hw_answer_settings(struct hw_control *control, struct hw_text *answer);
void hw_answer_ping(struct hw_control *control, struct hw_text *answer);
void hw_answer_stats(struct hw_control *control, struct hw_text *answer);
void hw_answer_figures(struct hw_text *answer, const struct hw_figures *figures);
unsigned hw_answer_threads(struct hw_control *control, struct hw_text *answer); /* the number left out */
void hw_answer_blame(struct hw_control *control, struct hw_text *answer);

/* control_record.c */
void hw_add_recorder(struct hw_control *control, struct hw_text *answer); /* a member of an object */
void hw_answer_recorder(struct hw_control *control, struct hw_text *answer);
void hw_control_record(struct hw_control *control, const struct hw_json *json, int value, struct hw_text *answer); /* the token's index */
void hw_control_dump(struct hw_control *control, const struct hw_json_token *path, struct hw_text *answer);

/* The error's words: %s is the token. */
void hw_control_refuse(struct hw_text *answer, const char *format, const struct hw_json_token *token);

#endif
