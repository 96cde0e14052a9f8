/* How often a CPU quota was used up: read from a file like the kernel's, and brought into a recording of either mode. */
#include "analysis.h"
#include "clock.h"
#include "recorder.h"
#include "test.h"

#include <unistd.h>

static struct hw_recorder recorder;
static struct hw_analysis analysis;
static char directory[] = "/tmp/headway-quota-XXXXXX";
static char stat_path[64], trace_path[64];

static void
clean_up(void)
{
    unlink(stat_path);
    unlink(trace_path);
    rmdir(directory);
}

static void
prepare(void)
{
    if (stat_path[0]) return;
    hw_recorder_init(&recorder);
    CHECK(mkdtemp(directory));
    snprintf(stat_path, sizeof(stat_path), "%s/cpu.stat", directory);
    snprintf(trace_path, sizeof(trace_path), "%s/trace.headway", directory);
    test_clean_up = clean_up;
}

static void
kernel_says(const char *text)
{
    prepare();
    FILE *file = fopen(stat_path, "w");
    CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

static void
check_quota(uint64_t periods, uint64_t exhausted, struct hw_quota quota)
{
    CHECK_EQUAL(periods, quota.periods);
    CHECK_EQUAL(exhausted, quota.exhausted);
}

TEST(both_versions_of_control_groups_are_read)
{
    kernel_says("nr_periods 90\nnr_throttled 9\nthrottled_time 533435427\nnr_bursts 0\nburst_time 0\n");
    check_quota(90, 9, hw_quota_read(stat_path));
    kernel_says("usage_usec 123\nuser_usec 100\nsystem_usec 23\nnr_periods 1234567890123\nnr_throttled 7\nthrottled_usec 1\n");
    check_quota(1234567890123, 7, hw_quota_read(stat_path));
}

TEST(what_nobody_tells_is_none)
{
    kernel_says("usage_usec 123\nuser_usec 100\n");
    check_quota(0, 0, hw_quota_read(stat_path));
    kernel_says("");
    check_quota(0, 0, hw_quota_read(stat_path));
    kernel_says("nr_periods none\nnr_throttled -");
    check_quota(0, 0, hw_quota_read(stat_path));
    check_quota(0, 0, hw_quota_read(directory));
    check_quota(0, 0, hw_quota_read("/nowhere/cpu.stat"));
    check_quota(0, 0, hw_quota_read(""));
}

TEST(only_what_was_added_counts)
{
    struct hw_quota before = { 100, 40 };
    check_quota(10, 2, hw_quota_since(before, (struct hw_quota){ 110, 42 }));
    check_quota(7, 3, hw_quota_since(before, (struct hw_quota){ 7, 3 })); /* of a group made anew */
}

static void
start(bool flight)
{
    struct hw_recording set = { .flight = flight, .slots = 64 };
    snprintf(set.path, sizeof(set.path), "%s", trace_path);
    snprintf(set.quota_path, sizeof(set.quota_path), "%s", stat_path);
    CHECK(hw_recorder_start(&recorder, &set) == 0);
    hw_recorder_go(&recorder);
    hw_record(&recorder, HW_TRACE_READY, 1, 0, hw_now_ns());
}

static void
stop(void)
{
    atomic_store(&recorder.recording, false);
    CHECK(hw_recorder_claim_end(&recorder) && hw_recorder_stop(&recorder, NULL) == 0);
}

static struct hw_quota
recorded(void)
{
    struct hw_trace_damage damage = { 0 };
    hw_analysis_init(&analysis, false);
    CHECK(hw_analysis_add(&analysis, trace_path, UINT64_MAX, &damage));
    struct hw_quota quota = analysis.processes[0].quota;
    hw_analysis_free(&analysis);
    return quota;
}

TEST(a_stream_tells_in_the_end)
{
    kernel_says("nr_periods 100\nnr_throttled 40\n");
    start(false);
    kernel_says("nr_periods 140\nnr_throttled 70\n");
    stop();
    check_quota(40, 30, recorded());
}

TEST(one_that_has_no_end_tells_as_well)
{
    kernel_says("nr_periods 100\nnr_throttled 40\n");
    start(false);
    kernel_says("nr_periods 120\nnr_throttled 50\n");
    uint64_t until_ns = hw_now_ns() + 60 * HW_NS_PER_S;
    while (recorded().exhausted == 0 && hw_now_ns() < until_ns) usleep(10000);
    check_quota(20, 10, recorded());
    stop();
}

TEST(a_dump_tells)
{
    struct hw_buffer definitions = { NULL, 0, 0 };
    struct hw_dump dump = { .path = trace_path, .definitions = &definitions, .now = hw_now_ns() };
    kernel_says("nr_periods 100\nnr_throttled 40\n");
    start(true);
    kernel_says("nr_periods 101\nnr_throttled 41\n");
    hw_ring_walk_start(&recorder.ring, &dump.walk);
    CHECK(hw_recorder_announce_dump(&recorder) && hw_recorder_dump(&recorder, &dump) == 0);
    check_quota(1, 1, recorded());
    stop();
}

TEST(without_a_quota_there_is_nothing_to_tell)
{
    kernel_says("usage_usec 123\n");
    start(false);
    stop();
    check_quota(0, 0, recorded());
    clean_up();
}

TESTS({ "both_versions_of_control_groups_are_read", both_versions_of_control_groups_are_read },
      { "what_nobody_tells_is_none", what_nobody_tells_is_none }, { "only_what_was_added_counts", only_what_was_added_counts },
      { "a_stream_tells_in_the_end", a_stream_tells_in_the_end }, { "one_that_has_no_end_tells_as_well", one_that_has_no_end_tells_as_well },
      { "a_dump_tells", a_dump_tells }, { "without_a_quota_there_is_nothing_to_tell", without_a_quota_there_is_nothing_to_tell })
