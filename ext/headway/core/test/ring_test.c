/* The ring: one thread's view first, then producers, one at a time, against a consumer. */
#include "ring.h"
#include "test.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

static struct hw_ring ring;

static void
clean_up(void)
{
    hw_ring_free(&ring);
}

static void
start(uint64_t slots, bool flight)
{
    test_clean_up = clean_up;
    CHECK(hw_ring_init(&ring, slots, flight));
}

static void
end(void)
{
    hw_ring_free(&ring);
    test_clean_up = NULL;
}

/* Every field follows from the two numbers, so a mixture of two events shows. */
static struct hw_trace_event
event_of(uint32_t thread, uint32_t number)
{
    return (struct hw_trace_event){ .time_ns = (uint64_t)number << 32 | thread, .thread = thread, .value = number,
                                    .kind = (uint8_t)(number % 13 + 1), .detail = (uint8_t)(number * 7 + thread) };
}

static bool
whole(const struct hw_trace_event *event)
{
    struct hw_trace_event wanted = event_of(event->thread, event->value);
    return wanted.time_ns == event->time_ns && wanted.kind == event->kind && wanted.detail == event->detail;
}

static bool
push(uint32_t thread, uint32_t number)
{
    struct hw_trace_event event = event_of(thread, number);
    return hw_ring_push(&ring, &event);
}

TEST(slots_are_24_bytes_and_rounded_up)
{
    CHECK_EQUAL(24, sizeof(struct hw_slot));
    start(1000, true);
    CHECK_EQUAL(1024, hw_ring_slots(&ring));
    end();
    CHECK(!hw_ring_init(&ring, 0, true));
    CHECK(!hw_ring_init(&ring, HW_RING_MAX_SLOTS + 1, false));
    start(1, false);
    CHECK_EQUAL(1, hw_ring_slots(&ring));
    CHECK(push(1, 1) && !push(1, 2));
    end();
}

TEST(a_stream_gives_each_event_once_in_order)
{
    struct hw_trace_event taken[7];
    start(8, false);
    uint32_t pushed = 0, seen = 0;
    for (unsigned round = 0; round < test_effort(2000); round++) {
        for (uint64_t count = test_random(9); count > 0; count--) {
            if (pushed - seen == 8) CHECK(!push(3, pushed));
            else CHECK(push(3, pushed++));
        }
        size_t count = hw_ring_take(&ring, taken, (size_t)test_random(8));
        for (size_t i = 0; i < count; i++) {
            CHECK(whole(&taken[i]));
            CHECK_EQUAL(seen++, taken[i].value);
        }
    }
    CHECK_EQUAL(pushed, hw_ring_claimed(&ring));
    end();
}

TEST(a_full_stream_drops_and_counts)
{
    start(4, false);
    for (uint32_t number = 0; number < 10; number++) CHECK((number < 4) == push(1, number));
    CHECK_EQUAL(6, hw_ring_dropped(&ring));
    struct hw_trace_event taken[8];
    CHECK_EQUAL(4, hw_ring_take(&ring, taken, 8));
    CHECK_EQUAL(0, hw_ring_take(&ring, taken, 8));
    CHECK(push(1, 99));
    CHECK_EQUAL(1, hw_ring_take(&ring, taken, 8));
    CHECK_EQUAL(99, taken[0].value);
    end();
}

TEST(a_flight_keeps_the_newest)
{
    struct hw_ring_walk walk;
    struct hw_trace_event read[32];
    start(16, true);
    for (uint32_t pushed = 0; pushed < 100; pushed++) {
        hw_ring_walk_start(&ring, &walk);
        size_t count = hw_ring_walk_next(&ring, &walk, read, 32);
        CHECK_EQUAL(pushed < 16 ? pushed : 16, count);
        CHECK_EQUAL(0, walk.missed);
        for (size_t i = 0; i < count; i++) CHECK_EQUAL(pushed - count + i, read[i].value);
        CHECK(push(2, pushed));
    }
    CHECK_EQUAL(0, hw_ring_dropped(&ring));
    end();
}

TEST(a_walk_leaves_out_what_was_overwritten_meanwhile)
{
    struct hw_ring_walk walk;
    struct hw_trace_event read[8];
    start(8, true);
    for (uint32_t number = 0; number < 8; number++) push(1, number);
    hw_ring_walk_start(&ring, &walk);
    for (uint32_t number = 8; number < 11; number++) push(1, number);
    CHECK_EQUAL(5, hw_ring_walk_next(&ring, &walk, read, 8));
    CHECK_EQUAL(3, read[0].value);
    CHECK_EQUAL(3, walk.missed);
    CHECK_EQUAL(3, walk.older);
    end();
}

TEST(a_walk_tells_gaps_from_what_was_overwritten_before_its_first)
{
    struct hw_ring_walk walk;
    struct hw_trace_event read[8];
    start(8, true);
    for (uint32_t number = 0; number < 8; number++) push(1, number);
    hw_ring_walk_start(&ring, &walk);
    push(1, 8);
    CHECK_EQUAL(2, hw_ring_walk_next(&ring, &walk, read, 2));
    CHECK_EQUAL(1, read[0].value);
    for (uint32_t number = 9; number < 13; number++) push(1, number);
    CHECK_EQUAL(3, hw_ring_walk_next(&ring, &walk, read, 8));
    CHECK_EQUAL(5, read[0].value);
    CHECK_EQUAL(3, walk.missed);
    CHECK_EQUAL(1, walk.older);
    end();
}

TEST(a_child_forgets)
{
    struct hw_ring_walk walk;
    struct hw_trace_event read[8];
    for (int flight = 0; flight < 2; flight++) {
        start(4, flight);
        for (uint32_t number = 0; number < 7; number++) push(1, number);
        hw_ring_forget(&ring);
        CHECK_EQUAL(0, hw_ring_dropped(&ring));
        hw_ring_walk_start(&ring, &walk);
        CHECK_EQUAL(0, hw_ring_walk_next(&ring, &walk, read, 8));
        for (uint32_t number = 10; number < 13; number++) CHECK(push(1, number));
        hw_ring_walk_start(&ring, &walk);
        size_t count = flight ? hw_ring_walk_next(&ring, &walk, read, 8) : hw_ring_take(&ring, read, 8);
        CHECK_EQUAL(3, count);
        CHECK_EQUAL(10, read[0].value);
        end();
    }
}

/* -- several threads ---------------------------------------------------------------------------------------------------- */

#define PRODUCERS 4

static struct producer {
    pthread_t thread;
    uint32_t number, count;
    uint64_t refused;
} producers[PRODUCERS];
static atomic_uint producing;
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

static void *
produce(void *arg)
{
    struct producer *producer = arg;
    for (uint32_t number = 0; number < producer->count; number++) {
        pthread_mutex_lock(&turn);
        if (!push(producer->number, number)) producer->refused++;
        pthread_mutex_unlock(&turn);
        if (number % 64 == 0) sched_yield();
    }
    atomic_fetch_sub(&producing, 1);
    return NULL;
}

static void
start_producers(uint32_t count)
{
    atomic_store(&producing, PRODUCERS);
    for (uint32_t i = 0; i < PRODUCERS; i++) {
        producers[i] = (struct producer){ .number = i + 1, .count = count };
        CHECK(pthread_create(&producers[i].thread, NULL, produce, &producers[i]) == 0);
    }
}

static uint64_t
join_producers(void)
{
    uint64_t refused = 0;
    for (int i = 0; i < PRODUCERS; i++) {
        pthread_join(producers[i].thread, NULL);
        refused += producers[i].refused;
    }
    return refused;
}

TEST(producers_against_a_stream)
{
    uint32_t count = test_effort(50000);
    struct hw_trace_event taken[100];
    uint32_t next[PRODUCERS + 1] = { 0 };
    uint64_t total = 0;
    bool torn = false, disordered = false;
    start(512, false);
    start_producers(count);
    for (;;) {
        bool last = atomic_load(&producing) == 0;
        size_t some = hw_ring_take(&ring, taken, 100);
        for (size_t i = 0; i < some; i++) {
            if (!whole(&taken[i]) || taken[i].thread > PRODUCERS) torn = true;
            else if (taken[i].value < next[taken[i].thread]) disordered = true;
            else next[taken[i].thread] = taken[i].value + 1;
        }
        total += some;
        if (some == 0 && last) break;
        if (some == 0) sched_yield();
    }
    uint64_t refused = join_producers();
    CHECK(!torn && !disordered);
    CHECK_EQUAL(refused, hw_ring_dropped(&ring));
    CHECK_EQUAL((uint64_t)PRODUCERS * count, total + refused);
    end();
}

TEST(producers_against_snapshots)
{
    struct hw_trace_event read[64];
    uint64_t seen = 0;
    bool torn = false, disordered = false, last;
    start(64, true); /* small: laps are frequent */
    start_producers(test_effort(50000));
    do {
        last = atomic_load(&producing) == 0; /* then all that is left is there to be seen */
        struct hw_ring_walk walk;
        uint32_t next[PRODUCERS + 1] = { 0 };
        hw_ring_walk_start(&ring, &walk);
        for (size_t count; (count = hw_ring_walk_next(&ring, &walk, read, 64)) > 0; seen += count) {
            for (size_t i = 0; i < count; i++) {
                if (!whole(&read[i]) || read[i].thread > PRODUCERS) torn = true;
                else if (read[i].value < next[read[i].thread]) disordered = true;
                else next[read[i].thread] = read[i].value + 1;
            }
        }
    } while (!last);
    uint64_t refused = join_producers();
    CHECK(!torn && !disordered);
    CHECK(seen > 0);
    CHECK_EQUAL(refused, hw_ring_dropped(&ring));
    end();
}

TESTS({ "slots_are_24_bytes_and_rounded_up", slots_are_24_bytes_and_rounded_up },
      { "a_stream_gives_each_event_once_in_order", a_stream_gives_each_event_once_in_order },
      { "a_full_stream_drops_and_counts", a_full_stream_drops_and_counts },
      { "a_flight_keeps_the_newest", a_flight_keeps_the_newest },
      { "a_walk_leaves_out_what_was_overwritten_meanwhile", a_walk_leaves_out_what_was_overwritten_meanwhile },
      { "a_walk_tells_gaps_from_what_was_overwritten_before_its_first", a_walk_tells_gaps_from_what_was_overwritten_before_its_first },
      { "a_child_forgets", a_child_forgets },
      { "producers_against_a_stream", producers_against_a_stream },
      { "producers_against_snapshots", producers_against_snapshots })
