/* Native::IOHooks: a scheduler's io_read, io_pread and io_write, which do what Ruby itself would block the loop with.
 *
 * Regular files. Selectors are of no use for them: they are always ready, and a read waits for the disk all the same. What is in
 * the page cache is read here and now (preadv2 with RWF_NOWAIT); what isn't is read on the scheduler's pool. Writes go to the page
 * cache, and are left to Ruby.
 *
 * Descriptors that don't block are read and written here: while Ruby's own read waits, it counts as a use of the descriptor by the
 * whole thread, and on 3.3 and 3.4 who closes the descriptor then raises in the loop, and waits for the use to end.
 *
 * Datagrams are written by Ruby: of several strings that make one datagram, a hook gets the first alone.
 *
 * Descriptors that block, as those that were inherited may: a read first waits until there is something to read, and looks again before
 * it; a write has them not block for the time of its system call, as other processes may share them.
 *
 * Declining returns Qundef, which must never reach Ruby code: who calls a hook from there has it done here, or by the selector.
 *
 * Their arguments: up to Ruby 4.0 the least to be transferred and the buffer's offset, from 4.1 on the offset and the most. From 4.0 on
 * hooks must be public, or the VM takes them for missing. Both forms are compiled for every Ruby, so that both can be tested on any. */
#include <ruby.h> /* first: it asks the system for all it has */
#include "binding.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <ruby/fiber/scheduler.h>
#include <ruby/io.h>
#include <ruby/io/buffer.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#if defined(HAVE_PREADV2) && defined(RWF_NOWAIT)
#define READ_CACHED(fd, vector, from) preadv2(fd, vector, 1, from, RWF_NOWAIT)
#else
#define READ_CACHED(fd, vector, from) ((void)(fd), (void)(vector), errno = EOPNOTSUPP, (ssize_t)-1)
#endif

#define HERE (-1) /* at the file's own position */

/* Whether the system, or the file's, has no such read. */
static bool
cannot(int error)
{
    return error == EOPNOTSUPP || error == EINVAL || error == ENOSYS;
}

static ID id_io_wait, id_pread_here, id_read_in_selector, id_read_on_pool, id_worker_pool;

static VALUE socket_class; /* once it is there */

/* Most are sockets, which need no system call to be told from files. */
static bool
socket_io(VALUE io)
{
    if (!socket_class && rb_const_defined(rb_cObject, rb_intern("BasicSocket"))) {
        socket_class = rb_const_get(rb_cObject, rb_intern("BasicSocket"));
        rb_gc_register_mark_object(socket_class);
    }
    return socket_class && RTEST(rb_obj_is_kind_of(io, socket_class));
}

static bool
of_type(VALUE io, mode_t type)
{
    struct stat status;
    return fstat(rb_io_descriptor(io), &status) == 0 && (status.st_mode & S_IFMT) == type;
}

static bool
regular(VALUE io)
{
    return !socket_io(io) && of_type(io, S_IFREG);
}

static bool
blocks(VALUE io)
{
    int flags = fcntl(rb_io_descriptor(io), F_GETFL);
    return flags != -1 && !(flags & O_NONBLOCK);
}

/* Without a pool a file is left to Ruby. */
static bool
file_for_us(VALUE self, VALUE io)
{
    return RTEST(rb_ivar_get(self, id_worker_pool)) && regular(io);
}

static bool
again(int error)
{
    return error == EAGAIN || error == EWOULDBLOCK;
}

/* Whether a read or write of it can't block. */
static bool
at_once(VALUE io)
{
    return socket_io(io) || !(blocks(io) || regular(io)); /* a file is free to block, whatever its flags */
}

/* Whether each write of it is a message of its own. */
static bool
datagrams(VALUE io)
{
    int type;
    socklen_t size = sizeof(type);
    return socket_io(io) && getsockopt(rb_io_descriptor(io), SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type != SOCK_STREAM;
}

/* The only reader in Ruby that takes no EAGAIN. */
static bool
called_by_sysread(void)
{
    VALUE frame;
    return hw_called_by_c(&frame) && hw_frame_named(frame, "sysread");
}

static VALUE
wait_for(VALUE self, VALUE io, int events)
{
    return rb_funcall(self, id_io_wait, 3, io, INT2FIX(events), Qnil);
}

/* Where up to @most bytes go. Returns false if the buffer ends before @offset. */
static bool
room_in(VALUE buffer, size_t offset, size_t most, struct iovec *room)
{
    void *base;
    size_t size;
    rb_io_buffer_get_bytes_for_writing(buffer, &base, &size);
    if (offset > size) return false;
    room->iov_base = (char *)base + offset;
    room->iov_len = most < size - offset ? most : size - offset;
    return true;
}

/* What is there, up to @most bytes. -EAGAIN has Ruby wait, unless it was asked not to. */
static VALUE
read_at_once(VALUE self, VALUE io, VALUE buffer, size_t offset, size_t most)
{
    for (;;) {
        struct iovec room;
        if (!room_in(buffer, offset, most, &room)) return INT2FIX(-EINVAL);
        int fd = rb_io_descriptor(io);
        ssize_t got = socket_io(io) ? recv(fd, room.iov_base, room.iov_len, MSG_DONTWAIT) : read(fd, room.iov_base, room.iov_len);
        if (got >= 0) return SSIZET2NUM(got);
        int error = errno; /* looking for the caller may change it */
        if (error == EINTR) continue;
        if (!again(error) || !called_by_sysread()) return INT2NUM(-error);
        wait_for(self, io, RUBY_IO_READABLE);
    }
}

/* What fits in; errno as write(2). */
static ssize_t
write_what_fits(VALUE io, const char *bytes, size_t size)
{
    int fd = rb_io_descriptor(io);
    if (socket_io(io)) return send(fd, bytes, size, MSG_DONTWAIT);

    int flags = fcntl(fd, F_GETFL);
    bool blocking = flags != -1 && !(flags & O_NONBLOCK);
    if (blocking) fcntl(fd, F_SETFL, flags | O_NONBLOCK);
    ssize_t put = write(fd, bytes, size);
    int error = errno;
    if (blocking) fcntl(fd, F_SETFL, flags);
    errno = error;
    return put;
}

/* At least @least bytes, or all, and up to @most, but something. */
static VALUE
write_here(VALUE self, VALUE io, VALUE buffer, size_t offset, size_t least, size_t most)
{
    for (size_t done = 0;;) {
        const void *base;
        size_t size;
        rb_io_buffer_get_bytes_for_reading(buffer, &base, &size);
        if (offset + done > size) return INT2FIX(-EINVAL);
        if (most > size - offset) most = size - offset;
        ssize_t put = write_what_fits(io, (const char *)base + offset + done, most - done);
        if (put >= 0) {
            done += (size_t)put;
            if (done >= least || done >= most) return SIZET2NUM(done);
        } else if (errno != EINTR && !again(errno)) {
            return INT2NUM(-errno);
        } else if (errno != EINTR) {
            wait_for(self, io, RUBY_IO_WRITABLE);
        }
    }
}

static bool
readable(VALUE io)
{
    struct pollfd asked = { .fd = rb_io_descriptor(io), .events = POLLIN };
    return poll(&asked, 1, 0) == 1;
}

/* What is there, once there is something, up to @most bytes, of a descriptor that blocks. Another fiber or process that reads it, too, may
 * take it between the wait and the read: then the read must not block. Where the system knows no such read, or @most is 0, Ruby reads. What
 * isn't a pipe may say that it would block and be ready all the same, as a disk is. */
static VALUE
read_when_there(VALUE self, VALUE io, VALUE buffer, size_t offset, size_t most)
{
    bool by_us = most > 0 && of_type(io, S_IFIFO);
    for (;;) {
        wait_for(self, io, RUBY_IO_READABLE);
        if (by_us) {
            struct iovec room;
            if (!room_in(buffer, offset, most, &room)) return INT2FIX(-EINVAL);
            int fd = rb_io_descriptor(io);
            ssize_t got = READ_CACHED(fd, &room, HERE);
            if (got >= 0) return SSIZET2NUM(got);
            if (again(errno) || errno == EINTR) continue;
            if (!cannot(errno)) return INT2NUM(-errno);
            by_us = false;
        }
        if (readable(io)) return Qundef;
    }
}

/* What is no file of ours; first and second as the selector of this Ruby takes them too. */
static VALUE
leave_to_ruby(VALUE self, VALUE io, VALUE buffer, VALUE first, VALUE second, size_t offset, size_t most)
{
    if (!hw_called_by_c(NULL)) return rb_funcall(self, id_read_in_selector, 4, io, buffer, first, second);
    return blocks(io) && !regular(io) ? read_when_there(self, io, buffer, offset, most) : Qundef;
}

/* Files and datagrams, when it is Ruby that asks. */
static bool
left_to_ruby(VALUE self, VALUE io)
{
    bool datagram = datagrams(io);
    if (!(datagram || regular(io)) || !hw_called_by_c(NULL)) return false;
    if (datagram && blocks(io)) wait_for(self, io, RUBY_IO_WRITABLE);
    return true;
}

/* @least: bytes that must be read unless the file ends; @most: bytes that there is room for, from @offset of the buffer on */
static VALUE
read_file(VALUE self, VALUE io, VALUE buffer, off_t from, size_t offset, size_t least, size_t most)
{
    int fd = rb_io_descriptor(io);
    struct iovec room;
    if (!room_in(buffer, offset, most, &room)) return INT2FIX(-EINVAL);

    ssize_t got = READ_CACHED(fd, &room, from);
    if (got == 0 || (got > 0 && (size_t)got >= least)) return SSIZET2NUM(got);
    if (got < 0 && errno != EAGAIN && !cannot(errno)) return INT2NUM(-errno);

    /* Part of it, or nothing. The rest is up to the pool, which starts over where we began: a position is only moved by success. */
    VALUE cached = got < 0 && errno != EAGAIN ? Qnil : Qfalse; /* nil: who knows */
    size_t done = got > 0 ? (size_t)got : 0;
    VALUE more = rb_funcall(self, id_read_on_pool, 7, io, buffer, from == HERE ? Qnil : OFFT2NUM(from + (off_t)done),
                            SIZET2NUM(offset + done), SIZET2NUM(least > done ? least - done : 0), SIZET2NUM(room.iov_len - done), cached);
    ssize_t count = NUM2SSIZET(more);
    return count < 0 && done == 0 ? more : SSIZET2NUM((ssize_t)done + (count > 0 ? count : 0));
}

/* From there, not from where the file is, which HERE stands for. */
static VALUE
pread_file(VALUE self, VALUE io, VALUE buffer, off_t from, size_t offset, size_t least, size_t most)
{
    return from < 0 ? INT2FIX(-EINVAL) : read_file(self, io, buffer, from, offset, least, most);
}

/* Whether the buffer has less than so many bytes from that offset on: then none may be transferred. */
static bool
beyond(VALUE buffer, VALUE least, VALUE offset)
{
    const void *base;
    size_t size, from = NUM2SIZET(offset);
    rb_io_buffer_get_bytes_for_reading(buffer, &base, &size);
    return from > size || NUM2SIZET(least) > size - from;
}

/* Up to 4.0: (io, buffer, least, offset) */
static VALUE
io_read(VALUE self, VALUE io, VALUE buffer, VALUE least, VALUE offset)
{
    if (beyond(buffer, least, offset)) return INT2FIX(-EINVAL);
    if (file_for_us(self, io)) return read_file(self, io, buffer, HERE, NUM2SIZET(offset), NUM2SIZET(least), SIZE_MAX);
    if (NUM2SIZET(least) == 0 && at_once(io)) return read_at_once(self, io, buffer, NUM2SIZET(offset), SIZE_MAX);
    return leave_to_ruby(self, io, buffer, least, offset, NUM2SIZET(offset), NUM2SIZET(least) == 0 ? SIZE_MAX : 0);
}

/* (io, buffer, least, offset) */
static VALUE
io_write(VALUE self, VALUE io, VALUE buffer, VALUE least, VALUE offset)
{
    if (beyond(buffer, least, offset)) return INT2FIX(-EINVAL);
    if (left_to_ruby(self, io)) return Qundef;
    return write_here(self, io, buffer, NUM2SIZET(offset), NUM2SIZET(least), SIZE_MAX);
}

/* (io, buffer, from, least, offset) */
static VALUE
io_pread(VALUE self, VALUE io, VALUE buffer, VALUE from, VALUE least, VALUE offset)
{
    if (beyond(buffer, least, offset)) return INT2FIX(-EINVAL);
    if (file_for_us(self, io)) return pread_file(self, io, buffer, NUM2OFFT(from), NUM2SIZET(offset), NUM2SIZET(least), SIZE_MAX);
    return hw_called_by_c(NULL) ? Qundef : rb_funcall(self, id_pread_here, 5, io, buffer, from, least, offset);
}

/* From 4.1 on: (io, buffer, offset, most). Of no bytes nothing is done, nor waited for. */
static VALUE
io_read_41(VALUE self, VALUE io, VALUE buffer, VALUE offset, VALUE most)
{
    if (NUM2SIZET(most) == 0) return INT2FIX(0);
    if (file_for_us(self, io)) return read_file(self, io, buffer, HERE, NUM2SIZET(offset), 0, NUM2SIZET(most));
    if (at_once(io)) return read_at_once(self, io, buffer, NUM2SIZET(offset), NUM2SIZET(most));
    return leave_to_ruby(self, io, buffer, offset, most, NUM2SIZET(offset), NUM2SIZET(most));
}

static VALUE
io_write_41(VALUE self, VALUE io, VALUE buffer, VALUE offset, VALUE most)
{
    if (NUM2SIZET(most) == 0) return INT2FIX(0);
    if (left_to_ruby(self, io)) return Qundef;
    return write_here(self, io, buffer, NUM2SIZET(offset), 0, NUM2SIZET(most));
}

/* (io, buffer, from, offset, most) */
static VALUE
io_pread_41(VALUE self, VALUE io, VALUE buffer, VALUE from, VALUE offset, VALUE most)
{
    if (file_for_us(self, io)) return pread_file(self, io, buffer, NUM2OFFT(from), NUM2SIZET(offset), 0, NUM2SIZET(most));
    return hw_called_by_c(NULL) ? Qundef : rb_funcall(self, id_pread_here, 5, io, buffer, from, offset, most);
}

static VALUE
define_hooks(VALUE native, const char *name, VALUE (*read)(VALUE, VALUE, VALUE, VALUE, VALUE),
             VALUE (*pread)(VALUE, VALUE, VALUE, VALUE, VALUE, VALUE), VALUE (*write)(VALUE, VALUE, VALUE, VALUE, VALUE))
{
    VALUE hooks = rb_define_module_under(native, name);
    rb_define_method(hooks, "io_read", read, 4);
    rb_define_method(hooks, "io_pread", pread, 5);
    rb_define_method(hooks, "io_write", write, 4);
    return hooks;
}

void
hw_io_hooks_init(VALUE native)
{
    id_io_wait = rb_intern("io_wait");
    id_pread_here = rb_intern("pread_here");
    id_read_in_selector = rb_intern("read_in_selector");
    id_read_on_pool = rb_intern("read_on_pool");
    id_worker_pool = rb_intern("@worker_pool");
    VALUE hooks = define_hooks(native, "IOHooksTo40", io_read, io_pread, io_write);
    VALUE hooks_41 = define_hooks(native, "IOHooksFrom41", io_read_41, io_pread_41, io_write_41);
#if defined(RUBY_FIBER_SCHEDULER_VERSION) && RUBY_FIBER_SCHEDULER_VERSION >= 4
    hooks = hooks_41;
#endif
    (void)hooks_41;
    rb_define_const(native, "IOHooks", hooks);
}
