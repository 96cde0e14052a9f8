/* What a thread is called, found out without asking Ruby: by the name its native thread bears, which Ruby keeps up to date but
 * which Linux cuts to 15 bytes, and by the full one that Ruby told when it last was asked. */
#ifndef HW_NAMES_H
#define HW_NAMES_H

#include "thread.h"

#include <stddef.h>

/* Of the current thread; 0 where names can't be found by it. */
int hw_native_id(void);

/* What is copied of a thread under the runtime's lock, so that the rest can be done without. */
struct hw_naming {
    uint32_t number;
    int native_id;
    bool main;
    char told[sizeof(((struct hw_thread *)0)->name)];
};

struct hw_naming hw_naming_of(const struct hw_thread *thread); /* lock held */
/* Locks not held: reads a file. False: nobody knows, and it is called by its number. */
bool hw_name_of(const struct hw_naming *naming, char *name, size_t capacity);

#endif
