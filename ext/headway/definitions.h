#ifndef HW_DEFINITIONS_H
#define HW_DEFINITIONS_H

#include "binding.h"

/* Looks up what there is to look up; the rows are for hw_definitions_encode, which makes no objects. */
VALUE hw_definitions_gather(void);
void hw_definitions_encode(struct hw_buffer *buffer, VALUE rows); /* all of it */

/* Mode stream, else nothing: what has become known since the last time; refresh: if that was long enough ago. */
void hw_definitions_write(void);
void hw_definitions_refresh(uint64_t now);

#endif
