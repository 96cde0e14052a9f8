#include "hash.h"

#include <string.h>

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

VALUE
hw_text(const char *bytes, size_t length)
{
    VALUE string = rb_utf8_str_new(bytes, (long)length);
    VALUE scrubbed = rb_str_scrub(string, Qnil);
    return NIL_P(scrubbed) ? string : scrubbed;
}

VALUE
hw_cstr(const char *text)
{
    return hw_text(text, strlen(text));
}
