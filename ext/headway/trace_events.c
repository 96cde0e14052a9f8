/* Headway::Native::Traces::File: the events of one trace file in the order of their times, a batch at a time; its stacks. */
#include "trace.h"

#include "event_stream.h"
#include "trace_format.h"

#include <ruby/thread.h>
#include <stdatomic.h>

#define BATCH 4096

struct file {
    struct hw_trace_reader reader;
    struct hw_event_stream stream;
    struct hw_tables tables;
    size_t given;  /* of the stream's settled events */
    bool begun;    /* initialized, be it closed again */
    bool finished; /* nothing settles any more */
};

static VALUE kind_names; /* Symbols by number */

static void
free_file(void *data)
{
    struct file *file = data;
    hw_trace_close(&file->reader);
    hw_stream_free(&file->stream);
    hw_tables_free(&file->tables);
    xfree(file);
}

static const rb_data_type_t file_type = { .wrap_struct_name = "Headway::Native::Traces::File",
                                          .function = { .dfree = free_file }, .flags = RUBY_TYPED_FREE_IMMEDIATELY };

static VALUE
allocate(VALUE class)
{
    struct file *file;
    VALUE self = TypedData_Make_Struct(class, struct file, &file_type, file);
    file->reader.fd = -1;
    file->finished = true;
    return self;
}

static struct file *
file_of(VALUE self)
{
    return rb_check_typeddata(self, &file_type);
}

static void
open_or_raise(struct file *file, VALUE path, VALUE size)
{
    if (hw_trace_open(&file->reader, StringValueCStr(path), NUM2ULL(size))) return;
    rb_raise(rb_eIOError, "%s", file->reader.damage.what);
}

/* Names may come after what refers to them, so they are read in a pass of their own: without the GVL, a file may be big. */
struct names {
    struct file *file;
    atomic_bool interrupted;
    bool all;
};

static void *
read_names(void *data)
{
    struct names *names = data;
    struct hw_trace_block_read block;
    const char *why;
    while (!atomic_load(&names->interrupted)) {
        names->all = !hw_trace_next(&names->file->reader, &block) ||
            (block.type != HW_TRACE_BLOCK_EVENTS && !hw_tables_add(&names->file->tables, &block, &why));
        if (names->all) break;
    }
    return NULL;
}

static void
interrupt_names(void *data)
{
    struct names *names = data;
    atomic_store(&names->interrupted, true);
}

/* File.new(path, bytes that count) */
static VALUE
initialize(VALUE self, VALUE path, VALUE size)
{
    struct file *file = file_of(self);
    struct names names = { .file = file };
    if (file->begun) rb_raise(rb_eTypeError, "already initialized");
    path = rb_get_path(path);
    file->begun = true;
    open_or_raise(file, path, size);
    while (!names.all) {
        rb_thread_call_without_gvl(read_names, &names, interrupt_names, &names);
        rb_thread_check_ints(); /* raises, or it goes on where it was */
        atomic_store(&names.interrupted, false);
    }
    hw_trace_close(&file->reader);
    open_or_raise(file, path, size);
    file->finished = false;
    return self;
}

static VALUE
event_array(const struct file *file, const struct hw_trace_event *event)
{
    bool mark = event->kind >= HW_TRACE_MARK_BEGIN && event->kind <= HW_TRACE_MARK;
    VALUE value = mark ? hw_trace_text(hw_tables_string(&file->tables, event->value)) : UINT2NUM(event->value);
    VALUE kind = rb_ary_entry(kind_names, event->kind);
    return rb_ary_new_from_args(4, ULL2NUM(event->time_ns), UINT2NUM(event->thread), kind, value);
}

/* Settles at least one more event. False: there is none. */
static bool
settle_more(struct file *file)
{
    struct hw_trace_block_read block;
    const char *why;
    while (!file->finished) {
        file->given = 0;
        if (!hw_trace_next(&file->reader, &block)) {
            hw_stream_finish(&file->stream);
            hw_trace_close(&file->reader); /* and not when it is collected: there may be more files than descriptors */
            file->finished = true;
        } else if (block.type != HW_TRACE_BLOCK_EVENTS) {
            continue;
        } else if (!hw_stream_add(&file->stream, &block, &why)) {
            hw_trace_condemn(&file->reader, &block, why);
        }
        if (file->stream.settled) return true;
    }
    return false;
}

/* next_events -> [[time in ns, thread's number, kind, value], ...], nil at the end. */
static VALUE
next_events(VALUE self)
{
    struct file *file = file_of(self);
    if (file->given >= file->stream.settled && !settle_more(file)) return Qnil;
    VALUE events = rb_ary_new();
    for (int i = 0; i < BATCH && file->given < file->stream.settled; file->given++) {
        const struct hw_trace_event *event = &file->stream.events[file->given];
        if (event->kind == 0 || event->kind > HW_TRACE_KNOWN) continue;
        rb_ary_push(events, event_array(file, event));
        i++;
    }
    return events;
}

/* close -> self. Nothing more is read; what has been, stacks too, can still be asked for. */
static VALUE
close_file(VALUE self)
{
    struct file *file = file_of(self);
    hw_trace_close(&file->reader);
    file->finished = true;
    return self;
}

/* stack(id) -> [[method, file, line], ...], leaf first */
static VALUE
stack(VALUE self, VALUE id)
{
    struct file *file = file_of(self);
    const struct hw_trace_stack *found = hw_tables_stack(&file->tables, NUM2UINT(id));
    VALUE frames = rb_ary_new();
    for (uint32_t i = 0; found && i < found->count; i++) rb_ary_push(frames, hw_trace_frame(&file->tables, found->frames[i]));
    return frames;
}

void
hw_trace_file_init(VALUE traces)
{
    VALUE class = rb_define_class_under(traces, "File", rb_cObject);
    kind_names = rb_ary_new();
    rb_gc_register_mark_object(kind_names);
#define EACH(name, number, label) rb_ary_store(kind_names, number, ID2SYM(rb_intern(label)));
    HW_TRACE_KINDS(EACH)
#undef EACH
    rb_define_alloc_func(class, allocate);
    rb_define_method(class, "initialize", initialize, 2);
    rb_define_method(class, "next_events", next_events, 0);
    rb_define_method(class, "close", close_file, 0);
    rb_define_method(class, "stack", stack, 1);
}
