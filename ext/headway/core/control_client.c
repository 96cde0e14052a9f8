#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "control_client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define KEPT_CAPACITY (64 * 1024) /* an answer buffer this small is kept for the next */

#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0
#endif

void
hw_client_drop(struct hw_control *control, struct hw_client *client)
{
    pthread_mutex_lock(&control->lock);
    hw_descriptor_close(&client->descriptor);
    pthread_mutex_unlock(&control->lock);
    hw_text_free(&client->answer);
}

bool
hw_clients_make(struct hw_control *control)
{
    if (control->clients == NULL) control->clients = calloc(HW_CONTROL_CLIENTS, sizeof(struct hw_client));
    if (control->clients == NULL) return false;
    for (int i = 0; i < HW_CONTROL_CLIENTS; i++) control->clients[i].descriptor.fd = -1;
    return true;
}

void
hw_clients_drop(struct hw_control *control)
{
    for (int i = 0; i < HW_CONTROL_CLIENTS; i++) {
        if (control->clients[i].descriptor.fd >= 0) hw_client_drop(control, &control->clients[i]);
    }
}

/* Its buffers may just have been changing. */
void
hw_clients_leave(struct hw_control *control)
{
    for (int i = 0; i < HW_CONTROL_CLIENTS; i++) hw_descriptor_close(&control->clients[i].descriptor);
    control->left_behind = control->clients;
    control->clients = NULL;
}

static void
enter(struct hw_client *client, enum hw_client_phase phase, uint64_t now)
{
    client->phase = phase;
    client->since_ns = now;
}

void
hw_client_begin(struct hw_client *client, struct hw_descriptor descriptor, uint64_t now)
{
    client->descriptor = descriptor;
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
answer_line(struct hw_control *control, struct hw_client *client, size_t length)
{
    hw_text_clear(&client->answer);
    hw_control_request(control, client->line, length, &client->answer);
    client->received -= length + 1;
    memmove(client->line, client->line + length + 1, client->received);
    finish_answer(client, hw_now_ns()); /* a dump takes its time */
}

/* False: no whole line is there yet. */
static bool
answer_next(struct hw_control *control, struct hw_client *client, uint64_t now)
{
    char *end = memchr(client->line, '\n', client->received);
    if (end) {
        answer_line(control, client, (size_t)(end - client->line));
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
        ssize_t sent = send(client->descriptor.fd, client->answer.bytes + client->sent, client->answer.length - client->sent,
                            MSG_NOSIGNAL);
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
    ssize_t length = recv(client->descriptor.fd, client->line + client->received, sizeof(client->line) - client->received, 0);
    if (length < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return false;
    if (length <= 0) {
        hw_client_drop(control, client);
        return false;
    }
    if (client->received == 0) client->since_ns = now;
    client->received += (size_t)length;
    return true;
}

bool
hw_client_has_line(const struct hw_client *client)
{
    return client->descriptor.fd >= 0 && client->phase == HW_RECEIVING && memchr(client->line, '\n', client->received);
}

void
hw_client_serve(struct hw_control *control, struct hw_client *client, bool readable, uint64_t now)
{
    if (client->phase == HW_SENDING && !send_answer(control, client, now)) return;
    bool answered = answer_next(control, client, now);
    if (!answered && readable && receive(control, client, now)) answered = answer_next(control, client, now);
    if (answered) send_answer(control, client, hw_now_ns());
}

uint64_t
hw_client_until_ns(const struct hw_client *client)
{
    bool idle = client->phase == HW_RECEIVING && client->received == 0;
    return client->since_ns + (idle ? HW_CLIENT_IDLE_NS : HW_CLIENT_PATIENCE_NS);
}
