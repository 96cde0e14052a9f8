/* Native::AddressHook: a scheduler's address_resolve, for what is an address already.
 *
 * Ruby asks for it, too, where it can't tell itself: with the name of an interface (fe80::1%eth0), which what a hook answers can't have,
 * or of a service, which it doesn't look up in that answer. The system needs to ask nobody for either, so they are declined by Qundef.
 * As in io_hooks.c it must never reach Ruby code, which gets what the method above says. */
#include "binding.h"

#include <arpa/inet.h>
#include <string.h>

/* With or without an interface. */
static bool
address(VALUE host)
{
    VALUE string = rb_check_string_type(host);
    if (NIL_P(string)) return false;
    const char *bytes = RSTRING_PTR(string), *interface = memchr(bytes, '%', (size_t)RSTRING_LEN(string));
    size_t length = interface ? (size_t)(interface - bytes) : (size_t)RSTRING_LEN(string);
    char number[INET6_ADDRSTRLEN];
    if (length >= sizeof(number)) return false;
    memcpy(number, bytes, length);
    number[length] = '\0';
    struct in6_addr ignored;
    RB_GC_GUARD(string);
    return inet_pton(AF_INET, number, &ignored) == 1 || inet_pton(AF_INET6, number, &ignored) == 1;
}

static VALUE
address_resolve(VALUE self, VALUE host)
{
    return address(host) && hw_called_by_c(NULL) ? Qundef : rb_call_super(1, &host);
}

void
hw_address_hook_init(VALUE native)
{
    rb_define_method(rb_define_module_under(native, "AddressHook"), "address_resolve", address_resolve, 1);
}
