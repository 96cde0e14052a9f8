/* How often a CPU quota, a container's say, was used up: then every thread of the control group stands still until the quota's next
 * period begins, whoever has the GVL. As the kernel counts it (Linux; elsewhere there is no such file). No locks, nothing kept. */
#ifndef HW_QUOTA_H
#define HW_QUOTA_H

#include <stdint.h>

struct hw_quota {
    uint64_t periods;   /* in which the group had something to do; 0: there is no quota, or nobody tells */
    uint64_t exhausted; /* of these, in which the quota was used up */
};

/* path: of the group's cpu.stat; "": there is none. Opens, reads and closes it. */
struct hw_quota hw_quota_read(const char *path);

/* What was added since. A group may be made anew under its name: then all of it. */
struct hw_quota hw_quota_since(struct hw_quota before, struct hw_quota now);

#endif
