/* What the binding answers with: Hashes with Symbols for keys, seconds, and texts. */
#ifndef HW_BINDING_HASH_H
#define HW_BINDING_HASH_H

#include <ruby.h>

void hw_set(VALUE hash, const char *key, VALUE value);
void hw_set_number(VALUE hash, const char *key, uint64_t value);

VALUE hw_seconds(uint64_t ns);
uint64_t hw_nanoseconds(VALUE seconds); /* what is below 0, of a clock that was set back, counts as none; so does what is no number */

/* Names come from programs, are cut to fit, and files may be damaged: nothing vouches for the encoding. */
VALUE hw_text(const char *bytes, size_t length);
VALUE hw_cstr(const char *text);

/* The other way round: what is too long is cut. */
void hw_copy_text(char *to, size_t size, VALUE string);

#endif
