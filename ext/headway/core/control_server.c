/* The server thread: a loop around poll over the listening socket and the clients. All signals are blocked in it, and nothing in it
 * blocks but poll. The lock is taken around each step, not while polling; descriptors come and go under it, so that a fork finds the
 * table whole. When all places are taken, newcomers wait in the socket's queue until one is free or its client has been idle for
 * SPARE_NS: a client that hangs keeps nobody out. */
#include "control_client.h"

#include <poll.h>
#include <unistd.h>

#define SPARE_NS (250 * HW_NS_PER_MS)

static struct hw_client *
free_place(struct hw_control *control)
{
    for (int i = 0; i < HW_CONTROL_CLIENTS; i++) {
        if (control->clients[i].fd < 0) return &control->clients[i];
    }
    return NULL;
}

/* The one that has been idle longest, if that is long enough. */
static struct hw_client *
spare_place(struct hw_control *control, uint64_t now, uint64_t *at_ns)
{
    struct hw_client *spare = NULL;
    for (int i = 0; i < HW_CONTROL_CLIENTS; i++) {
        struct hw_client *client = &control->clients[i];
        if (client->phase == HW_RECEIVING && (spare == NULL || client->since_ns < spare->since_ns)) spare = client;
    }
    *at_ns = spare ? spare->since_ns + SPARE_NS : now + SPARE_NS;
    return spare && now >= *at_ns ? spare : NULL;
}

static void
admit(struct hw_control *control, uint64_t now)
{
    struct hw_client *place;
    while ((place = free_place(control))) {
        int fd = hw_socket_accept(control);
        if (fd < 0) return;
        hw_client_begin(place, fd, now);
    }
}

struct round {
    struct pollfd fds[HW_CONTROL_CLIENTS + 2];
    int timeout_ms;
};

/* What to wait for. When no place is free, newcomers wait in the socket's queue until one is. */
static void
prepare(struct hw_control *control, struct round *round, bool crowded, uint64_t now)
{
    uint64_t until_ns = HW_NEVER;
    bool full = free_place(control) == NULL;
    if (full && crowded) {
        uint64_t at_ns;
        spare_place(control, now, &at_ns);
        until_ns = at_ns > now ? at_ns : now;
    }
    round->fds[0] = (struct pollfd){ .fd = control->wake_read.fd, .events = POLLIN };
    round->fds[1] = (struct pollfd){ .fd = full && crowded ? -1 : control->listener.fd, .events = POLLIN };
    for (int i = 0; i < HW_CONTROL_CLIENTS; i++) {
        struct hw_client *client = &control->clients[i];
        short events = client->phase == HW_RECEIVING ? POLLIN : client->phase == HW_SENDING ? POLLOUT : 0;
        round->fds[i + 2] = (struct pollfd){ .fd = client->fd, .events = events };
        if (client->fd < 0) continue;
        uint64_t at_ns = hw_client_looks_at_ns(client, now);
        if (at_ns < until_ns) until_ns = at_ns;
    }
    uint64_t wait_ns = until_ns > now ? until_ns - now : 0;
    round->timeout_ms = until_ns == HW_NEVER ? -1 : (int)(wait_ns / HW_NS_PER_MS) + 1;
}

/* False when the thread has to end. */
static bool
step(struct hw_control *control, struct round *round, bool *crowded)
{
    if (control->must_end) return false;
    if (round->fds[0].revents) {
        char bytes[64];
        if (!hw_socket_whole(&control->wake_read)) return false;
        while (read(control->wake_read.fd, bytes, sizeof(bytes)) > 0) continue;
    }
    if (!hw_socket_whole(&control->listener)) return false;

    uint64_t now = hw_now_ns();
    for (int i = 0; i < HW_CONTROL_CLIENTS; i++) {
        struct hw_client *client = &control->clients[i];
        short events = round->fds[i + 2].revents;
        if (client->fd < 0) continue;
        bool waits = client->phase == HW_STATS_DUE || client->phase == HW_DUMP_DUE;
        if (events & (POLLERR | POLLNVAL) || (waits && events & POLLHUP)) {
            hw_client_drop(control, client);
            continue;
        }
        if (waits) hw_client_look_after(control, client, now);
        hw_client_serve(control, client, events & (POLLIN | POLLHUP), now);
        if (client->fd >= 0) hw_client_look_after(control, client, now);
    }
    if (round->fds[1].revents || *crowded) {
        struct hw_client *place = NULL;
        if (free_place(control) == NULL) {
            uint64_t at_ns;
            place = spare_place(control, now, &at_ns);
            if (place) hw_client_drop(control, place);
        }
        admit(control, now);
    }
    *crowded = free_place(control) == NULL && (*crowded || round->fds[1].revents);
    return true;
}

void *
hw_control_serve(void *arg)
{
    struct hw_control *control = arg;
    struct round round = { .timeout_ms = 0 };
    bool crowded = false;

    pthread_mutex_lock(&control->lock);
    if (!control->must_end) hw_control_sweep(control);
    while (step(control, &round, &crowded)) {
        prepare(control, &round, crowded, hw_now_ns());
        pthread_mutex_unlock(&control->lock);
        poll(round.fds, HW_CONTROL_CLIENTS + 2, round.timeout_ms);
        pthread_mutex_lock(&control->lock);
    }
    hw_clients_drop(control);
    pthread_mutex_unlock(&control->lock);
    return NULL;
}
