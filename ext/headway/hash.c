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
hw_seconds(uint64_t ns)
{
    return DBL2NUM((double)ns / 1e9);
}

uint64_t
hw_nanoseconds(VALUE seconds)
{
    double ns = NUM2DBL(seconds) * 1e9;
    return ns > 0 ? (uint64_t)(ns < 1e18 ? ns + 0.5 : 1e18) : 0;
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

void
hw_copy_text(char *to, size_t size, VALUE string)
{
    StringValue(string);
    size_t length = (size_t)RSTRING_LEN(string) < size ? (size_t)RSTRING_LEN(string) : size - 1;
    memcpy(to, RSTRING_PTR(string), length);
    to[length] = '\0';
}
