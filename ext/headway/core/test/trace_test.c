/* The file format: what is written is read again. */
#include "event_stream.h"
#include "trace_bytes.h"
#include "crc32.h"
#include "reading.h"

static bool
text_is(struct hw_trace_text text, const char *expected)
{
    return text.length == strlen(expected) && memcmp(text.bytes ? text.bytes : "", expected, text.length) == 0;
}

TEST(what_is_written_is_read)
{
    struct hw_buffer buffer = small_trace();
    struct hw_analysis analysis;
    struct hw_trace_damage damage;
    CHECK(analyse(&analysis, false, buffer.bytes, buffer.length, &damage), "%s", damage.what);
    const struct hw_analysed_process *process = &analysis.processes[0];
    CHECK(!process->damage.what[0], "%s", process->damage.what);
    CHECK(memcmp(&process->header, &trace_header, sizeof(trace_header)) == 0);
    CHECK_EQUAL(15, process->events);
    CHECK_EQUAL(5, process->dropped);
    CHECK_EQUAL(40, process->quota.periods);
    CHECK_EQUAL(30, process->quota.exhausted);
    CHECK_EQUAL(2, process->folded);
    CHECK_EQUAL(1000000, process->start_ns);
    CHECK_EQUAL(1080000, process->end_ns);
    CHECK_EQUAL(1, process->gc_count);
    CHECK_EQUAL(2000, process->gc_ns);

    CHECK(text_is(hw_tables_string(&process->tables, 3), "request"));
    CHECK(text_is(hw_tables_string(&process->tables, 99), ""));
    CHECK(text_is(hw_tables_thread(&process->tables, 2)->name, "worker"));
    CHECK(text_is(hw_tables_thread(&process->tables, 2)->site, "pool.rb:12"));
    CHECK(hw_tables_thread(&process->tables, 3) == NULL);
    CHECK_EQUAL(2, hw_tables_stack(&process->tables, 1)->count);
    CHECK_EQUAL(2, hw_tables_stack(&process->tables, 1)->frames[1]);
    CHECK_EQUAL(30, hw_tables_frame(&process->tables, 2)->line);
    hw_analysis_free(&analysis);
    free(buffer.bytes);
}

TEST(a_repeated_thread_counts_as_written_last)
{
    struct hw_buffer buffer = { 0 };
    struct hw_analysis analysis;
    struct hw_trace_damage damage;
    CHECK(hw_write_header(&buffer, &trace_header));
    CHECK(hw_write_thread(&buffer, 7, "before", 6, "a.rb:1", 6));
    CHECK(hw_write_thread(&buffer, 7, "after", 5, "a.rb:1", 6));
    CHECK(analyse(&analysis, false, buffer.bytes, buffer.length, &damage));
    CHECK(text_is(hw_tables_thread(&analysis.processes[0].tables, 7)->name, "after"));
    hw_analysis_free(&analysis);
    free(buffer.bytes);
}

TEST(too_much_is_cut_or_left_out)
{
    static char long_text[70000];
    static uint32_t frames[2000];
    memset(long_text, 'x', sizeof(long_text));
    struct hw_buffer buffer = { 0 };
    struct hw_analysis analysis;
    struct hw_trace_damage damage;
    CHECK(hw_write_header(&buffer, &trace_header));
    CHECK(hw_write_string(&buffer, 1, long_text, sizeof(long_text)));
    CHECK(hw_write_string(&buffer, HW_TRACE_ID_HIGHEST, "last", 4));
    CHECK(hw_write_string(&buffer, HW_TRACE_ID_HIGHEST + 1, "beyond", 6));
    CHECK(hw_write_thread(&buffer, 1, long_text, sizeof(long_text), long_text, sizeof(long_text)));
    CHECK(hw_write_stack(&buffer, 1, frames, 2000));
    CHECK(hw_write_end(&buffer));
    CHECK(analyse(&analysis, false, buffer.bytes, buffer.length, &damage));
    const struct hw_tables *tables = &analysis.processes[0].tables;
    CHECK(!analysis.processes[0].damage.what[0]);
    CHECK_EQUAL(HW_TRACE_STRING_LONGEST, hw_tables_string(tables, 1).length);
    CHECK(text_is(hw_tables_string(tables, HW_TRACE_ID_HIGHEST), "last"));
    CHECK_EQUAL(HW_TRACE_NAME_LONGEST, hw_tables_thread(tables, 1)->name.length);
    CHECK_EQUAL(HW_TRACE_STACK_DEEPEST, hw_tables_stack(tables, 1)->count);
    hw_analysis_free(&analysis);
    free(buffer.bytes);
}

/* -- events -------------------------------------------------------------------------------------------------------------- */

static struct hw_trace_event
random_event(uint64_t time_ns)
{
    struct hw_trace_event event = { .time_ns = time_ns, .kind = (uint8_t)(1 + test_random(255)) };
    event.thread = (uint32_t)test_random(UINT64_C(1) << test_random(33));
    if (test_random(2)) event.value = (uint32_t)test_random(UINT64_C(1) << test_random(33));
    if (test_random(4) == 0) event.detail = (uint8_t)test_random(256);
    return event;
}

static int
by_time(const void *a, const void *b)
{
    uint64_t left = ((const struct hw_trace_event *)a)->time_ns, right = ((const struct hw_trace_event *)b)->time_ns;
    return left < right ? -1 : left > right;
}

static size_t
read_events(const struct hw_buffer *buffer, struct hw_trace_event *events)
{
    struct hw_trace_reader reader;
    struct hw_trace_block_read block;
    struct hw_event_stream stream = { 0 };
    const char *why;
    size_t count = 0;
    CHECK(hw_trace_open(&reader, trace_file(buffer->bytes, buffer->length), UINT64_MAX), "%s", reader.damage.what);
    while (hw_trace_next(&reader, &block)) {
        CHECK(hw_stream_add(&stream, &block, &why), "%s", why);
        memcpy(events + count, stream.events, stream.settled * sizeof(*events));
        count += stream.settled;
    }
    hw_stream_finish(&stream);
    memcpy(events + count, stream.events, stream.settled * sizeof(*events));
    count += stream.settled;
    CHECK(!reader.damage.what[0], "%s", reader.damage.what);
    hw_stream_free(&stream);
    hw_trace_close(&reader);
    return count;
}

/* Written in up to `late_ns` disorder, in blocks of random sizes; all times differ, so that there is one order. */
static void
events_come_back(size_t count, uint64_t late_ns)
{
    struct hw_trace_event *events = calloc(count, sizeof(*events)), *found = calloc(count, sizeof(*found));
    struct hw_buffer buffer = { 0 };
    uint64_t time_ns = 5000000000;
    for (size_t i = 0; i < count; i++) {
        time_ns += 1 + test_random(UINT64_C(1) << test_random(24));
        events[i] = random_event(time_ns);
    }
    for (size_t i = 1; i < count && late_ns; i++) {
        bool near = events[i].time_ns - events[i - 1].time_ns < late_ns;
        if (!near || test_random(3) || (i > 1 && events[i - 2].time_ns > events[i - 1].time_ns)) continue;
        struct hw_trace_event event = events[i];
        events[i] = events[i - 1];
        events[i - 1] = event;
    }
    CHECK(hw_write_header(&buffer, &trace_header));
    for (size_t at = 0; at < count;) {
        size_t now = 1 + test_random(count / 3);
        if (now > count - at) now = count - at;
        write_events(&buffer, events + at, now);
        at += now;
    }
    CHECK(hw_write_end(&buffer));
    CHECK_EQUAL(count, read_events(&buffer, found));
    qsort(events, count, sizeof(*events), by_time);
    for (size_t i = 0; i < count; i++) {
        CHECK_EQUAL(events[i].time_ns, found[i].time_ns);
        CHECK_EQUAL(events[i].thread, found[i].thread);
        CHECK_EQUAL(events[i].value, found[i].value);
        CHECK_EQUAL(events[i].kind, found[i].kind);
        CHECK_EQUAL(events[i].detail, found[i].detail);
    }
    free(events);
    free(found);
    free(buffer.bytes);
}

TEST(events_come_back_as_they_were)
{
    for (unsigned round = 0; round < test_effort(40); round++) events_come_back(4 + test_random(3000), 0);
}

TEST(events_out_of_order_come_back_in_order)
{
    for (unsigned round = 0; round < test_effort(40); round++) events_come_back(4 + test_random(3000), HW_STREAM_WINDOW_NS);
}

TEST(more_events_than_a_block_takes_make_more_blocks)
{
    events_come_back(HW_TRACE_EVENTS_MOST + 5, 0);
}

TEST(usual_events_take_five_bytes)
{
    struct hw_buffer buffer = { 0 };
    struct hw_trace_event events[4096];
    uint64_t time_ns = UINT64_C(1) << 50;
    for (int i = 0; i < 4096; i++) {
        time_ns += test_random(100000);
        events[i] = EVENT(time_ns, 1 + (uint32_t)test_random(20), READY);
    }
    write_events(&buffer, events, 4096);
    CHECK(buffer.length <= 5 * 4096, "%zu bytes", buffer.length);
    free(buffer.bytes);
}

TEST(crc_is_that_of_zlib)
{
    CHECK_EQUAL(0xcbf43926, hw_crc32(0, "123456789", 9));
    CHECK_EQUAL(0xcbf43926, hw_crc32(hw_crc32(0, "1234", 4), "56789", 5));
}

TESTS({ "what_is_written_is_read", what_is_written_is_read },
      { "a_repeated_thread_counts_as_written_last", a_repeated_thread_counts_as_written_last },
      { "too_much_is_cut_or_left_out", too_much_is_cut_or_left_out },
      { "events_come_back_as_they_were", events_come_back_as_they_were },
      { "events_out_of_order_come_back_in_order", events_out_of_order_come_back_in_order },
      { "more_events_than_a_block_takes_make_more_blocks", more_events_than_a_block_takes_make_more_blocks },
      { "usual_events_take_five_bytes", usual_events_take_five_bytes }, { "crc_is_that_of_zlib", crc_is_that_of_zlib })
