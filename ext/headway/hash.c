#include "hash.h"

void
hw_set(VALUE hash, const char *key, VALUE value)
{
    rb_hash_aset(hash, ID2SYM(rb_intern(key)), value);
}

void
hw_set_number(VALUE hash, const char *key, uint64_t value)
{
    hw_set(hash, key, ULL2NUM(value));
}
