/* What the rest of the binding knows of offload. */
#ifndef HW_OFFLOAD_H
#define HW_OFFLOAD_H

#include <ruby.h>

void hw_offload_init(VALUE native);    /* offload.c */
void hw_operation_init(VALUE native);  /* operation.c */

#endif
