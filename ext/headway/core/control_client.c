#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "control_client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define KEPT_CAPACITY (64 * 1024)          /* an answer buffer this small is kept for the next */
#define RETRY_NS (2 * HW_NS_PER_MS)        /* a trigger may be lost: asked for again after so long */
#define NAMES_WAIT_NS (50 * HW_NS_PER_MS)
#define DUMP_WAIT_NS (10 * HW_NS_PER_S)

#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0
#endif

void
hw_client_drop(struct hw_control *control, struct hw_client *client)
{
    if (client->phase == HW_DUMP_DUE && control->dump == HW_DUMP_WANTED) control->dump = HW_DUMP_NONE;
    close(client->fd);
    client->fd = -1;
    hw_text_free(&client->answer);
}

bool
hw_clients_make(struct hw_control *control)
{
    if (control->clients == NULL) control->clients = calloc(HW_CONTROL_CLIENTS, sizeof(struct hw_client));
    if (control->clients == NULL) return false;
    for (int i = 0; i < HW_CONTROL_CLIENTS; i++) control->clients[i].fd = -1;
    return true;
}

void
hw_clients_drop(struct hw_control *control)
{
    for (int i = 0; i < HW_CONTROL_CLIENTS; i++) {
        if (control->clients[i].fd >= 0) hw_client_drop(control, &control->clients[i]);
    }
}

static void
enter(struct hw_client *client, enum hw_client_phase phase, uint64_t now)
{
    client->phase = phase;
    client->since_ns = now;
}

void
hw_client_begin(struct hw_client *client, int fd, uint64_t now)
{
    client->fd = fd;
    client->last = false;
    client->received = client->sent = 0;
    client->answer.limit = HW_CONTROL_ANSWER_MAX;
    enter(client, HW_RECEIVING, now);
}

/* -- receiving, answering, sending ---------------------------------------------------------------------------------------- */

static void
finish_answer(struct hw_client *client, uint64_t now)
{
    if (client->answer.incomplete) {
        hw_text_clear(&client->answer);
        hw_control_error(&client->answer, "the answer would be too long");
    }
    hw_text_add(&client->answer, "\n");
    client->sent = 0;
    enter(client, HW_SENDING, now);
}

static void
answer_line(struct hw_control *control, struct hw_client *client, size_t length, uint64_t now)
{
    hw_text_clear(&client->answer);
    enum hw_reply reply = hw_control_request(control, client->line, length, &client->answer);
    client->received -= length + 1;
    memmove(client->line, client->line + length + 1, client->received);
    if (reply == HW_REPLY_READY) finish_answer(client, now);
    else enter(client, reply == HW_REPLY_STATS ? HW_STATS_DUE : HW_DUMP_DUE, now);
}

/* False: no whole line is there yet. */
static bool
answer_next(struct hw_control *control, struct hw_client *client, uint64_t now)
{
    char *end = memchr(client->line, '\n', client->received);
    if (end) {
        answer_line(control, client, (size_t)(end - client->line), now);
        return true;
    }
    if (client->received < sizeof(client->line)) return false;
    hw_text_clear(&client->answer);
    hw_control_error(&client->answer, HW_CONTROL_TOO_LONG);
    client->last = true;
    finish_answer(client, now);
    return true;
}

/* False: the client is gone, or has not read all of it yet. */
static bool
send_answer(struct hw_control *control, struct hw_client *client, uint64_t now)
{
    while (client->sent < client->answer.length) {
        ssize_t sent = send(client->fd, client->answer.bytes + client->sent, client->answer.length - client->sent, MSG_NOSIGNAL);
        if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0) {
            hw_client_drop(control, client);
            return false;
        }
        client->sent += (size_t)sent;
    }
    if (client->last) {
        hw_client_drop(control, client);
        return false;
    }
    if (client->answer.capacity > KEPT_CAPACITY) hw_text_free(&client->answer);
    enter(client, HW_RECEIVING, now);
    return true;
}

static bool
receive(struct hw_control *control, struct hw_client *client, uint64_t now)
{
    ssize_t length = recv(client->fd, client->line + client->received, sizeof(client->line) - client->received, 0);
    if (length < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return false;
    if (length <= 0) {
        hw_client_drop(control, client);
        return false;
    }
    if (client->received == 0) client->since_ns = now;
    client->received += (size_t)length;
    return true;
}

void
hw_client_serve(struct hw_control *control, struct hw_client *client, bool readable, uint64_t now)
{
    for (;;) {
        bool on = false;
        if (client->phase == HW_SENDING) {
            on = send_answer(control, client, now);
        }
        else if (client->phase == HW_RECEIVING) {
            on = answer_next(control, client, now);
            if (!on && readable) {
                readable = false;
                on = receive(control, client, now);
            }
        }
        if (!on) return;
    }
}

/* -- what is due by itself ------------------------------------------------------------------------------------------------ */

/* Nobody holds the GVL or wants it: no Ruby thread will run an errand soon. */
static bool
all_sleep(struct hw_control *control)
{
    struct hw_runtime *rt = control->runtime;
    pthread_mutex_lock(&rt->lock);
    bool sleep = rt->scheduler.holder == NULL && rt->scheduler.counts[HW_IS_READY] == 0;
    pthread_mutex_unlock(&rt->lock);
    return sleep;
}

static void
look_for_names(struct hw_control *control, struct hw_client *client, uint64_t now)
{
    bool done = !control->names_wanted && !control->errand_runs;
    if (!done && now < client->since_ns + NAMES_WAIT_NS && !all_sleep(control)) {
        if (control->names_wanted && !control->errand_runs) control->trigger();
        return;
    }
    hw_answer_stats(control, &client->answer);
    finish_answer(client, now);
}

static void
look_for_dump(struct hw_control *control, struct hw_client *client, uint64_t now)
{
    bool in_vain = control->dump != HW_DUMP_DONE && now >= client->since_ns + DUMP_WAIT_NS;
    if (control->dump == HW_DUMP_DONE || in_vain) {
        hw_answer_dump(control, &client->answer, in_vain);
        if (control->dump != HW_DUMP_TAKEN) control->dump = HW_DUMP_NONE; /* else it is still being made */
        finish_answer(client, now);
        return;
    }
    if (control->dump == HW_DUMP_WANTED && !control->errand_runs) control->trigger();
}

void
hw_client_look_after(struct hw_control *control, struct hw_client *client, uint64_t now)
{
    switch (client->phase) {
      case HW_STATS_DUE:
        look_for_names(control, client, now);
        break;
      case HW_DUMP_DUE:
        look_for_dump(control, client, now);
        break;
      case HW_RECEIVING:
        if (now >= client->since_ns + (client->received ? HW_CLIENT_PATIENCE_NS : HW_CLIENT_IDLE_NS)) hw_client_drop(control, client);
        break;
      case HW_SENDING:
        if (now >= client->since_ns + HW_CLIENT_PATIENCE_NS) hw_client_drop(control, client);
        break;
    }
}

uint64_t
hw_client_looks_at_ns(const struct hw_client *client, uint64_t now)
{
    switch (client->phase) {
      case HW_STATS_DUE:
      case HW_DUMP_DUE:
        return now + RETRY_NS;
      case HW_RECEIVING:
        return client->since_ns + (client->received ? HW_CLIENT_PATIENCE_NS : HW_CLIENT_IDLE_NS);
      default:
        return client->since_ns + HW_CLIENT_PATIENCE_NS;
    }
}

