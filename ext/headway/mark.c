/* Headway.mark: spans and instants of the program's own. Costs a look at a flag when nothing records. */
#include "definitions.h"

#include <ruby/ractor.h>

static struct hw_recorder *const recorder = &hw_runtime.recorder;

struct mark {
    uint32_t thread, name;
    uint64_t session;
};

static VALUE
text_of(VALUE name)
{
    return rb_obj_as_string(name);
}

static uint32_t
name_number(VALUE name)
{
    static uint32_t names; /* so that marks leave room for frames */
    if (SYMBOL_P(name)) name = rb_sym2str(name);
    if (!RB_TYPE_P(name, T_STRING)) {
        int state = 0;
        name = rb_protect(text_of, name, &state);
        if (state) {
            rb_set_errinfo(Qnil);
            return HW_STRING_OTHERS;
        }
    }
    if (names > HW_STRINGS_MOST / 4) return hw_strings_find(&hw_strings, RSTRING_PTR(name), (size_t)RSTRING_LEN(name));
    uint32_t before = hw_strings.count;
    uint32_t number = hw_strings_number(&hw_strings, RSTRING_PTR(name), (size_t)RSTRING_LEN(name));
    names += hw_strings.count - before;
    return number;
}

static VALUE
yield_mark(VALUE unused)
{
    return rb_yield_values(0);
}

static VALUE
end_mark(VALUE data)
{
    const struct mark *mark = (const struct mark *)data;
    if (recorder->session == mark->session) hw_record(recorder, HW_TRACE_MARK_END, mark->thread, mark->name, hw_now_ns());
    return Qnil;
}

/* Headway.mark(name) { … } -> what the block returns; Headway.mark(name) -> nil */
static VALUE
mark(VALUE self, VALUE name)
{
    bool block = rb_block_given_p();
    struct hw_thread *record = hw_record_takes() ? hw_record_of(rb_thread_current()) : NULL;
    if (record == NULL) return block ? rb_yield_values(0) : Qnil;

    uint64_t now = hw_now_ns();
    hw_definitions_refresh(now);
    struct mark mark = { record->number, name_number(name), recorder->session };
    hw_record(recorder, block ? HW_TRACE_MARK_BEGIN : HW_TRACE_MARK, mark.thread, mark.name, hw_now_ns());
    return block ? rb_ensure(yield_mark, Qnil, end_mark, (VALUE)&mark) : Qnil;
}

void
hw_mark_init(VALUE headway)
{
    rb_ext_ractor_safe(true); /* other Ractors' threads have no record: there it only yields */
    rb_define_singleton_method(headway, "mark", mark, 1);
    rb_ext_ractor_safe(false);
}
