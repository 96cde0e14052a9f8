/* Arrays that grow. */
#ifndef HW_ROOM_H
#define HW_ROOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Room for one more of an array's entries, of which there may be so many; array points to the pointer to them. False: there are as
 * many, or there is no memory. */
bool hw_room(void *array, uint32_t count, uint32_t *capacity, uint32_t most, size_t size);

#endif
