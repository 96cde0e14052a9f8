/* What the rest of the binding knows of offload. */
#ifndef HW_OFFLOAD_H
#define HW_OFFLOAD_H

#include <ruby.h>
#include <stdbool.h>

void hw_offload_init(VALUE native);    /* offload.c */
void hw_operation_init(VALUE native);  /* operation.c */

/* caller.c */
bool hw_called_by_c(VALUE *caller); /* Whether C called the method in C that asks. The caller's frame goes to caller, if not NULL. */
bool hw_frame_named(VALUE frame, const char *name);
bool hw_frame_in(VALUE frame, const char *file);

#endif
