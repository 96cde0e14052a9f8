/* Garbage collections: whoever allocates at the wrong moment does them for everybody, so they count to nobody's burst; and a
 * recording shows them.
 *
 * on_gc runs inside the collector, with the GVL and under the VM's lock: it reads the clock, takes the runtime's lock and pushes an
 * event, no more. A plain event hook, no TracePoint: as the process ends the VM frees objects between the two events of its last
 * collection. */
#include "binding.h"
#include "feed.h"

#include <ruby/debug.h>

static struct hw_recorder *const recorder = &hw_runtime.recorder;
static bool attends;

static void
on_gc(rb_event_flag_t event, VALUE unused_data, VALUE unused_self, ID unused_method, VALUE unused_class)
{
    static uint64_t entered_ns;
    bool active = atomic_load(&hw_runtime.active);
    if (!active && !hw_recording(recorder)) return;
    struct hw_thread *record = hw_record_of(rb_thread_current());
    if (record == NULL) return;

    uint64_t now = hw_now_ns();
    bool starts = event == RUBY_INTERNAL_EVENT_GC_ENTER;
    hw_feed_aside(&hw_runtime, starts ? HW_TRACE_GC_START : HW_TRACE_GC_END, record->number, 0, now);
    if (!starts && active && entered_ns) hw_runtime_collected(&hw_runtime, record, now - entered_ns);
    entered_ns = starts ? now : 0;
}

void
hw_collections_attend(void)
{
    bool wanted = atomic_load(&hw_runtime.active) || hw_record_takes();
    if (wanted == attends) return;
    attends = wanted;
    if (wanted) rb_add_event_hook(on_gc, RUBY_INTERNAL_EVENT_GC_ENTER | RUBY_INTERNAL_EVENT_GC_EXIT, Qnil);
    else rb_remove_event_hook(on_gc);
}
