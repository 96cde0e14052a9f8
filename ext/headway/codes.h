/* What stacks call the VM's entries of methods: codes.c. */
#ifndef HW_CODES_H
#define HW_CODES_H

#include "binding.h"

struct hw_code {
    uint32_t method, file; /* of hw_strings */
    uint32_t first_line;   /* 0: not known */
};

void hw_codes_init(void);
bool hw_codes_prepare(void); /* with the GVL: false when memory is short */
bool hw_codes_prepared(void);
/* The code is on somebody's stack, the machine's own too, so that it stays where it is. */
struct hw_code hw_code_named(VALUE code);

#endif
