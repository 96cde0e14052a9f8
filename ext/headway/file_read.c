/* Native::FileReads: a scheduler's io_read and io_pread, which keep reads of regular files from blocking the loop.
 *
 * Selectors are of no use for regular files: they are always ready, and a read waits for the disk all the same. What is in the
 * page cache is read here and now (preadv2 with RWF_NOWAIT); what isn't is read on the scheduler's pool. Everything that is no
 * regular file is declined, as if there were no hook: Ruby reads it itself and waits in io_wait.
 *
 * Declining returns Qundef, which must never reach Ruby code. So the methods are private: the VM calls them all the same. */
#include <ruby.h> /* first: it asks the system for all it has */
#include "binding.h"

#include <errno.h>
#include <ruby/fiber/scheduler.h>
#include <ruby/io.h>
#include <ruby/io/buffer.h>
#include <sys/stat.h>
#include <sys/uio.h>

#if defined(HAVE_PREADV2) && defined(RWF_NOWAIT)
#define READ_CACHED(fd, vector, from) preadv2(fd, vector, 1, from, RWF_NOWAIT)
#else
#define READ_CACHED(fd, vector, from) ((void)(vector), errno = EOPNOTSUPP, (ssize_t)-1)
#endif

#define HERE (-1) /* at the file's own position */

static ID id_read_on_pool;

/* @least: bytes that must be read unless the file ends; @most: bytes that there is room for, from @offset of the buffer on */
static VALUE
read_file(VALUE self, VALUE io, VALUE buffer, off_t from, size_t offset, size_t least, size_t most)
{
    struct stat status;
    int fd = rb_io_descriptor(io);
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) return Qundef;

    void *base;
    size_t size;
    rb_io_buffer_get_bytes_for_writing(buffer, &base, &size);
    if (offset > size) return INT2FIX(-EINVAL);
    if (most > size - offset) most = size - offset;

    struct iovec vector = { .iov_base = (char *)base + offset, .iov_len = most };
    ssize_t got = READ_CACHED(fd, &vector, from);
    if (got == 0 || (got > 0 && (size_t)got >= least)) return SSIZET2NUM(got);
    if (got < 0 && errno != EAGAIN && errno != EOPNOTSUPP && errno != EINVAL && errno != ENOSYS) return INT2NUM(-errno);

    /* Part of it, or nothing. The rest is up to the pool, which starts over where we began: a position is only moved by success. */
    VALUE cached = got < 0 && errno != EAGAIN ? Qnil : Qfalse; /* nil: who knows */
    size_t done = got > 0 ? (size_t)got : 0;
    VALUE more = rb_funcall(self, id_read_on_pool, 6, io, buffer, from == HERE ? Qnil : OFFT2NUM(from + (off_t)done),
                            SIZET2NUM(offset + done), SIZET2NUM(least > done ? least - done : 0), cached);
    ssize_t count = NUM2SSIZET(more);
    return count < 0 && done == 0 ? more : SSIZET2NUM((ssize_t)done + (count > 0 ? count : 0));
}

#if defined(RUBY_FIBER_SCHEDULER_VERSION) && RUBY_FIBER_SCHEDULER_VERSION >= 4
/* (io, buffer, offset, most) */
static VALUE
io_read(VALUE self, VALUE io, VALUE buffer, VALUE offset, VALUE most)
{
    return read_file(self, io, buffer, HERE, NUM2SIZET(offset), 0, NUM2SIZET(most));
}

/* (io, buffer, from, offset, most) */
static VALUE
io_pread(VALUE self, VALUE io, VALUE buffer, VALUE from, VALUE offset, VALUE most)
{
    return read_file(self, io, buffer, NUM2OFFT(from), NUM2SIZET(offset), 0, NUM2SIZET(most));
}
#else
/* (io, buffer, least, offset) */
static VALUE
io_read(VALUE self, VALUE io, VALUE buffer, VALUE least, VALUE offset)
{
    return read_file(self, io, buffer, HERE, NUM2SIZET(offset), NUM2SIZET(least), SIZE_MAX);
}

/* (io, buffer, from, least, offset) */
static VALUE
io_pread(VALUE self, VALUE io, VALUE buffer, VALUE from, VALUE least, VALUE offset)
{
    return read_file(self, io, buffer, NUM2OFFT(from), NUM2SIZET(offset), NUM2SIZET(least), SIZE_MAX);
}
#endif

void
hw_file_read_init(VALUE native)
{
    id_read_on_pool = rb_intern("read_on_pool");
    VALUE reads = rb_define_module_under(native, "FileReads");
    rb_define_private_method(reads, "io_read", io_read, 4);
    rb_define_private_method(reads, "io_pread", io_pread, 5);
}
