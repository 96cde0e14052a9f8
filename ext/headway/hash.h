/* Hashes with Symbols for keys: what the binding answers with. */
#ifndef HW_BINDING_HASH_H
#define HW_BINDING_HASH_H

#include <ruby.h>

void hw_set(VALUE hash, const char *key, VALUE value);
void hw_set_number(VALUE hash, const char *key, uint64_t value);

#endif
