/* One client of the control socket: what it is at, and how long it may take. No client can make the server wait:
 *
 *   one that sends nothing         is dropped after HW_CLIENT_IDLE_NS
 *   one that sends half a line     is dropped HW_CLIENT_PATIENCE_NS after the line's beginning
 *   one that doesn't read          is dropped HW_CLIENT_PATIENCE_NS after its answer was written
 *   one that sends too long a line gets an error and is dropped
 *
 * The server thread's own; but descriptors come and go under control.lock, so that a fork finds them whole. */
#ifndef HW_CONTROL_CLIENT_H
#define HW_CONTROL_CLIENT_H

#include "control.h"

#ifdef HW_TEST
#define HW_CLIENT_SECOND_NS (100 * HW_NS_PER_MS)
#else
#define HW_CLIENT_SECOND_NS HW_NS_PER_S
#endif
#define HW_CLIENT_IDLE_NS (10 * HW_CLIENT_SECOND_NS)
#define HW_CLIENT_PATIENCE_NS (2 * HW_CLIENT_SECOND_NS)

enum hw_client_phase { HW_RECEIVING, HW_SENDING };

struct hw_client {
    struct hw_descriptor descriptor; /* none: a free place */
    enum hw_client_phase phase;
    bool last;               /* dropped once its answer is sent */
    uint64_t since_ns;       /* of the phase; while receiving, of the last request's end or the line's first byte */
    char line[HW_CONTROL_REQUEST_MAX];
    size_t received;
    struct hw_text answer;
    size_t sent;
};

void hw_client_begin(struct hw_client *client, struct hw_descriptor descriptor, uint64_t now);
void hw_client_drop(struct hw_control *control, struct hw_client *client);
/* As far as it goes without waiting, but no more than one request, so that everybody has a turn. */
void hw_client_serve(struct hw_control *control, struct hw_client *client, bool readable, uint64_t now);
bool hw_client_has_line(const struct hw_client *client); /* it need not be waited for */
uint64_t hw_client_until_ns(const struct hw_client *client); /* it is dropped then */

#endif
