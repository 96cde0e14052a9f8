/* The server thread: a loop around poll over the listening socket and the clients. All signals are blocked in it, and nothing in it
 * blocks but poll, and a dump. When all places are taken, newcomers wait in the socket's queue until one is free or its client has
 * been idle for SPARE_NS: a client that hangs keeps nobody out. */
#include "control_client.h"

#include <poll.h>
#include <time.h>

#define SPARE_NS (250 * HW_NS_PER_MS)

static struct hw_client *
free_place(struct hw_control *control)
{
    for (int i = 0; i < HW_CONTROL_CLIENTS; i++) {
        if (control->clients[i].descriptor.fd < 0) return &control->clients[i];
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

/* Where descriptors or memory are short it would go round for nothing. */
static void
rest(void)
{
    nanosleep(&(struct timespec){ .tv_nsec = 100 * HW_NS_PER_MS }, NULL);
}

static void
admit(struct hw_control *control, uint64_t now)
{
    struct hw_client *place;
    while ((place = free_place(control))) {
        pthread_mutex_lock(&control->lock);
        struct hw_descriptor accepted = hw_socket_accept(control);
        if (accepted.fd >= 0) hw_client_begin(place, accepted, now);
        pthread_mutex_unlock(&control->lock);
        if (accepted.fd == HW_NO_ROOM) rest();
        if (accepted.fd < 0) return;
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
        until_ns = hw_later_ns(at_ns, now);
    }
    round->fds[0] = (struct pollfd){ .fd = control->wake_read.fd, .events = POLLIN };
    round->fds[1] = (struct pollfd){ .fd = full && crowded ? -1 : control->listener.fd, .events = POLLIN };
    for (int i = 0; i < HW_CONTROL_CLIENTS; i++) {
        struct hw_client *client = &control->clients[i];
        short events = client->phase == HW_RECEIVING ? POLLIN : POLLOUT;
        round->fds[i + 2] = (struct pollfd){ .fd = client->descriptor.fd, .events = events };
        if (client->descriptor.fd < 0) continue;
        uint64_t at_ns = hw_client_has_line(client) ? now : hw_client_until_ns(client);
        if (at_ns < until_ns) until_ns = at_ns;
    }
    uint64_t wait_ns = until_ns > now ? until_ns - now : 0;
    round->timeout_ms = until_ns == HW_NEVER ? -1 : wait_ns == 0 ? 0 : (int)(wait_ns / HW_NS_PER_MS) + 1;
}

static bool
must_end(struct hw_control *control)
{
    pthread_mutex_lock(&control->lock);
    bool must = control->must_end || !hw_descriptor_whole(&control->wake_read) || !hw_descriptor_whole(&control->listener);
    pthread_mutex_unlock(&control->lock);
    return must;
}

static void
serve(struct hw_control *control, struct hw_client *client, short events, uint64_t now)
{
    if (client->descriptor.fd < 0) return;
    if ((events & (POLLERR | POLLNVAL)) || !hw_descriptor_whole(&client->descriptor)) hw_client_drop(control, client);
    else hw_client_serve(control, client, events & (POLLIN | POLLHUP), now);
    if (client->descriptor.fd >= 0 && now >= hw_client_until_ns(client)) hw_client_drop(control, client);
}

/* The wake pipe is never read: what it says is that the thread must end. */
static void
step(struct hw_control *control, const struct round *round, bool *crowded)
{
    uint64_t now = hw_now_ns();
    for (int i = 0; i < HW_CONTROL_CLIENTS; i++) serve(control, &control->clients[i], round->fds[i + 2].revents, now);
    if (round->fds[1].revents || *crowded) {
        uint64_t at_ns;
        struct hw_client *spare = free_place(control) ? NULL : spare_place(control, now, &at_ns);
        /* Unless it has just spoken: after the poll, while this thread didn't get to run. */
        if (spare && poll(&(struct pollfd){ .fd = spare->descriptor.fd, .events = POLLIN }, 1, 0) == 0) hw_client_drop(control, spare);
        admit(control, now);
    }
    *crowded = free_place(control) == NULL && (*crowded || round->fds[1].revents);
}

void *
hw_control_serve(void *arg)
{
    struct hw_control *control = arg;
    struct round round;
    bool crowded = false;

    pthread_mutex_lock(&control->lock);
    if (!control->must_end) hw_control_sweep(control);
    pthread_mutex_unlock(&control->lock);
    while (!must_end(control)) {
        prepare(control, &round, crowded, hw_now_ns());
        if (poll(round.fds, HW_CONTROL_CLIENTS + 2, round.timeout_ms) >= 0) step(control, &round, &crowded);
        else rest();
    }
    hw_clients_drop(control);
    return NULL;
}
