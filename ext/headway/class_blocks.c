/* Headway.batch and Headway.interactive: of the blocks that a thread is in, the one entered last gives its class. The blocks of several
 * fibers of a thread end in any order; that of a fiber that is dropped within it never does: it is over when the collector finds what
 * stands for it, which the fiber's stack held.
 *
 * The list is one for all threads: there are few. From the main Ractor with its GVL, or from the collector, which may be another
 * Ractor's that sweeps what is left while ours runs: so it has a lock, taken before the runtime's. What stands for a block of another
 * Ractor's thread, of which there is no record, is in no list. No thread is looked at, which may be gone by then. */
#include "binding.h"

#include <pthread.h>

struct class_block {
    enum hw_class class;
    uintptr_t owner; /* the thread; 0: in no list */
    struct class_block *older, **link;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct class_block *newest;

static void
put_in(struct class_block *block, struct hw_thread *record)
{
    pthread_mutex_lock(&lock);
    block->owner = record->owner;
    block->older = newest;
    block->link = &newest;
    if (newest) newest->link = &block->older;
    newest = block;
    hw_runtime_set_class(&hw_runtime, record, block->class);
    pthread_mutex_unlock(&lock);
}

static void
take_out(struct class_block *block)
{
    if (block->older) block->older->link = block->link;
    *block->link = block->older;
    block->owner = 0;
}

static void
leave(struct class_block *block)
{
    pthread_mutex_lock(&lock);
    uintptr_t owner = block->owner;
    if (owner) {
        take_out(block);
        const struct class_block *around = newest;
        while (around && around->owner != owner) around = around->older;
        struct hw_thread *record = hw_runtime_find(&hw_runtime, owner);
        if (record) hw_runtime_set_class(&hw_runtime, record, around ? around->class : HW_CLASS_MEASURED);
    }
    pthread_mutex_unlock(&lock);
}

static void
dropped(void *block)
{
    leave(block);
    xfree(block);
}

static const rb_data_type_t block_type = { .wrap_struct_name = "Headway::Native/class_block", .function = { .dfree = dropped },
    .flags = RUBY_TYPED_FREE_IMMEDIATELY };

static VALUE
enter_and_yield(VALUE pointer)
{
    struct class_block *block = (struct class_block *)pointer;
    struct hw_thread *record = hw_in_main_ractor() ? hw_record_of(rb_thread_current()) : NULL;
    if (record) put_in(block, record);
    return rb_yield_values(0);
}

static VALUE
over(VALUE pointer)
{
    leave((struct class_block *)pointer);
    return Qnil;
}

/* Native.in_class(class) { } -> what the block returns. In C, as Ruby code may be interrupted between entering and the ensure that leaves. */
static VALUE
in_class(VALUE self, VALUE class)
{
    struct class_block *block;
    rb_need_block();
    VALUE object = TypedData_Make_Struct(0, struct class_block, &block_type, block);
    block->class = (enum hw_class)FIX2INT(class);
    VALUE result = rb_ensure(enter_and_yield, (VALUE)block, over, (VALUE)block);
    RB_GC_GUARD(object);
    return result;
}

/* Another thread may have its address next. */
void
hw_class_blocks_end(const struct hw_thread *record)
{
    pthread_mutex_lock(&lock);
    for (struct class_block *block = newest, *older; block; block = older) {
        older = block->older;
        if (block->owner == record->owner) take_out(block);
    }
    pthread_mutex_unlock(&lock);
}

/* Of threads that aren't here: another one may have the address before what stands for the block is swept. */
void
hw_class_blocks_after_fork_child(void)
{
    pthread_mutex_init(&lock, NULL);
    for (struct class_block *block = newest, *older; block; block = older) {
        older = block->older;
        if (hw_runtime_find(&hw_runtime, block->owner) == NULL) take_out(block);
    }
}

void
hw_class_blocks_init(VALUE native)
{
    rb_define_const(native, "BATCH", INT2FIX(HW_CLASS_BATCH));
    rb_define_const(native, "INTERACTIVE", INT2FIX(HW_CLASS_INTERACTIVE));
    rb_ext_ractor_safe(true); /* where it does nothing but call the block */
    rb_define_singleton_method(native, "in_class", in_class, 1);
    rb_ext_ractor_safe(false);
}
