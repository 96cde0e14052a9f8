/* Native.poll_set: one descriptor that stands for several, so that a fiber can wait for any of them in its loop's selector.
 *
 * An epoll instance is itself readable when something in it is ready. Its entries are edge-triggered: what poll_drain has taken
 * out is reported again only when it changes, so a descriptor that epoll finds ready and select(2) doesn't (a hang-up where only
 * urgent data was asked for) makes nobody spin. */
#include "binding.h"

#ifdef HAVE_SYS_EPOLL_H
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <ruby/io.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

static void
add(int set, VALUE descriptor, VALUE wanted)
{
    int events = NUM2INT(wanted);
    struct epoll_event event = { .events = EPOLLET };
    if (events & RUBY_IO_READABLE) event.events |= EPOLLIN;
    if (events & RUBY_IO_WRITABLE) event.events |= EPOLLOUT;
    if (events & RUBY_IO_PRIORITY) event.events |= EPOLLPRI;
    if (epoll_ctl(set, EPOLL_CTL_ADD, NUM2INT(descriptor), &event) == 0) return;
    if (errno == EPERM) return; /* a regular file, always ready for reading and writing: asked for the third, which it never has */

    int error = errno;
    close(set);
    rb_syserr_fail(error, "epoll_ctl");
}

/* Native.poll_set({descriptor => events}) -> descriptor */
static VALUE
poll_set(VALUE self, VALUE wanted)
{
    VALUE pairs = rb_funcall(wanted, rb_intern("to_a"), 0);
    int set = epoll_create1(EPOLL_CLOEXEC);
    if (set == -1) rb_sys_fail("epoll_create1");
    rb_update_max_fd(set);
    for (long i = 0; i < RARRAY_LEN(pairs); i++) {
        VALUE pair = rb_ary_entry(pairs, i);
        add(set, rb_ary_entry(pair, 0), rb_ary_entry(pair, 1));
    }
    return INT2NUM(set);
}

/* Native.poll_descriptor_to_write(io): of an IO with two descriptors, as IO.popen makes with "r+", IO#fileno is the one to read from. */
static VALUE
poll_descriptor_to_write(VALUE self, VALUE io)
{
    return INT2NUM(rb_io_descriptor(rb_io_get_write_io(io)));
}

/* Native.poll_file(io, events) -> the events that are there, or nil: for what epoll may refuse to wait for, as it does for files and
 * for some devices, /dev/null among them. All of those are always ready. */
static VALUE
poll_file(VALUE self, VALUE io, VALUE events)
{
    struct stat status;
    struct pollfd asked = { .fd = rb_io_descriptor(io) };
    if (fstat(asked.fd, &status) != 0) return Qnil;
    if (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode) || S_ISBLK(status.st_mode)) return events;
    if (!S_ISCHR(status.st_mode)) return Qnil;

    int wanted = NUM2INT(events), there = 0;
    if (wanted & RUBY_IO_READABLE) asked.events |= POLLIN;
    if (wanted & RUBY_IO_WRITABLE) asked.events |= POLLOUT;
    if (wanted & RUBY_IO_PRIORITY) asked.events |= POLLPRI;
    if (poll(&asked, 1, 0) != 1) return Qnil;
    if (asked.revents & POLLIN) there |= RUBY_IO_READABLE;
    if (asked.revents & POLLOUT) there |= RUBY_IO_WRITABLE;
    if (asked.revents & POLLPRI) there |= RUBY_IO_PRIORITY;
    return there ? INT2NUM(there) : Qnil;
}

/* Native.poll_ready?({descriptor => events}): whether IO.select finds one of them ready. IO.select itself, asked not to wait, says that
 * nothing is whenever an interrupt (the end of a slice will do) comes before its system call, which it leaves out then. */
static VALUE
poll_ready(VALUE self, VALUE wanted)
{
    VALUE pairs = rb_funcall(wanted, rb_intern("to_a"), 0);
    for (long i = 0; i < RARRAY_LEN(pairs); i++) {
        VALUE pair = rb_ary_entry(pairs, i);
        int events = NUM2INT(rb_ary_entry(pair, 1));
        struct pollfd asked = { .fd = NUM2INT(rb_ary_entry(pair, 0)), .events = POLLIN | POLLOUT | POLLPRI };
        if (poll(&asked, 1, 0) != 1) continue;
        if (events & RUBY_IO_READABLE && asked.revents & (POLLIN | POLLHUP | POLLERR)) return Qtrue;
        if (events & RUBY_IO_WRITABLE && asked.revents & (POLLOUT | POLLERR)) return Qtrue;
        if (events & RUBY_IO_PRIORITY && asked.revents & POLLPRI) return Qtrue;
    }
    return Qfalse;
}

/* Native.poll_write_only?(io): such as a pipe's end to write to, which never has anything to read. */
static VALUE
poll_write_only(VALUE self, VALUE io)
{
    int flags = fcntl(rb_io_descriptor(io), F_GETFL);
    return flags != -1 && (flags & O_ACCMODE) == O_WRONLY ? Qtrue : Qfalse;
}

/* Takes out what is ready. */
static VALUE
poll_drain(VALUE self, VALUE set)
{
    struct epoll_event events[64];
    while (epoll_wait(NUM2INT(set), events, 64, 0) == 64) continue;
    return Qnil;
}
#endif

void
hw_poll_set_init(VALUE native)
{
#ifdef HAVE_SYS_EPOLL_H
    rb_define_singleton_method(native, "poll_set", poll_set, 1);
    rb_define_singleton_method(native, "poll_descriptor_to_write", poll_descriptor_to_write, 1);
    rb_define_singleton_method(native, "poll_ready?", poll_ready, 1);
    rb_define_singleton_method(native, "poll_write_only?", poll_write_only, 1);
    rb_define_singleton_method(native, "poll_drain", poll_drain, 1);
    rb_define_singleton_method(native, "poll_file", poll_file, 2);
#endif
}
