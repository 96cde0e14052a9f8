/* Lanes read back: who held the GVL in a wait, against the slow way; and Perfetto's packets, taken apart again. */
#include "../encode_perfetto.h"
#include "test.h"

#define THREADS 5
#define UNITS 400

static struct hw_lane lanes[THREADS];
static uint8_t states[THREADS][UNITS];
static struct hw_holds holds;

/* In each unit one thread runs, or none. */
static void
make_lanes(void)
{
    unsigned runs = 0, left = 0;
    for (unsigned unit = 0; unit < UNITS; unit++, left--) {
        if (left == 0) {
            left = 1 + (unsigned)test_random(20);
            runs = (unsigned)test_random(THREADS + 1);
        }
        for (unsigned i = 0; i < THREADS; i++) {
            uint8_t before = unit ? states[i][unit - 1] : HW_LANE_SUSPENDED;
            if (before == HW_LANE_RUNNING || test_random(8) == 0) before = (uint8_t)(1 + test_random(3));
            states[i][unit] = i == runs ? HW_LANE_RUNNING : before;
        }
    }
    for (unsigned i = 0; i < THREADS; i++) {
        for (unsigned unit = 0, from = 0; unit < UNITS; unit++) {
            if (unit + 1 < UNITS && states[i][unit + 1] == states[i][unit]) continue;
            CHECK(hw_lane_add(&lanes[i], states[i][unit], from * HW_LANE_UNIT_NS, (unit + 1) * HW_LANE_UNIT_NS));
            from = unit + 1;
        }
        CHECK(hw_holds_add(&holds, i, lanes[i].bytes, lanes[i].length, 0));
    }
    CHECK(hw_holds_ready(&holds));
}

static void
free_lanes(void)
{
    for (unsigned i = 0; i < THREADS; i++) hw_lane_free(&lanes[i]);
    hw_holds_free(&holds);
}

static uint32_t
runs_at(uint64_t unit)
{
    for (uint32_t i = 0; i < THREADS; i++) {
        if (states[i][unit] == HW_LANE_RUNNING) return i;
    }
    return THREADS;
}

TEST(shares_are_those_of_the_slow_way)
{
    for (unsigned round = 0; round < test_effort(200); round++) {
        make_lanes();
        for (unsigned i = 0; i < 20; i++) {
            uint64_t from = test_random(UNITS - 1), to = from + 1 + test_random(UNITS - from), slow[THREADS + 1] = { 0 };
            if (to > UNITS) to = UNITS;
            for (uint64_t unit = from; unit < to; unit++) slow[runs_at(unit)]++;
            size_t count = hw_holds_during(&holds, from, to);
            uint64_t sum = 0;
            for (size_t at = 0; at < count; at++) {
                struct hw_share share = holds.shares[at];
                CHECK_EQUAL(slow[share.owner == HW_NOBODY_HOLDS ? THREADS : share.owner], share.units);
                CHECK(at == 0 || share.units <= holds.shares[at - 1].units);
                sum += share.units;
            }
            CHECK_EQUAL(to - from, sum);
        }
        free_lanes();
    }
}

static uint64_t
varint(const uint8_t **at)
{
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
        uint8_t byte = *(*at)++;
        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) return value;
    }
}

static struct hw_piece
piece(const char *text)
{
    return (struct hw_piece){ (const uint8_t *)text, strlen(text) };
}

/* One packet of the lane's thread; returns its rest. */
static struct hw_piece
packet(const uint8_t **at, uint64_t unit)
{
    CHECK_EQUAL(0x0a, *(*at)++);
    uint64_t length = varint(at);
    const uint8_t *end = *at + length;
    CHECK_EQUAL(0x40, *(*at)++);
    CHECK_EQUAL(unit * HW_LANE_UNIT_NS, varint(at));
    struct hw_piece rest = { *at, (size_t)(end - *at) };
    *at = end;
    return rest;
}

static bool
same(struct hw_piece piece, const char *text)
{
    return piece.length == strlen(text) && memcmp(piece.bytes, text, piece.length) == 0;
}

static void
check_wait_end(struct hw_piece rest, uint64_t from, uint64_t to)
{
    const uint8_t *at = rest.bytes, *end = at + rest.length;
    CHECK(memcmp(at, "before", 6) == 0);
    at += 6;
    uint64_t event = varint(&at);
    CHECK_EQUAL((uint64_t)(end - at), event);
    CHECK(memcmp(at, "head", 4) == 0);
    at += 4;
    CHECK_EQUAL(0x22, *at++);
    uint64_t inner = varint(&at);
    CHECK_EQUAL((uint64_t)(end - at), inner);
    CHECK_EQUAL('T', *at++);
    double sum = 0;
    while (at < end) {
        double ms;
        uint64_t bits = 0;
        CHECK(*at >= '0' && *at <= '0' + THREADS, "an entry");
        for (int byte = 8; byte > 0; byte--) bits = bits << 8 | at[byte];
        memcpy(&ms, &bits, sizeof(ms));
        sum += ms;
        at += 9;
    }
    CHECK(at == end);
    CHECK(sum * 10000 > (double)(to - from) - 0.5 && sum * 10000 < (double)(to - from) + 0.5);
}

TEST(packets_say_what_the_lanes_say)
{
    uint32_t ends[THREADS + 1] = { 1, 2, 3, 4, 5, 6 };
    struct hw_perfetto pieces = { { piece("running"), piece("ready"), piece("suspended") }, piece("end"), piece("before"), piece("head"),
                                  piece("T"), piece("012345"), (const uint8_t *)ends, THREADS };
    const char *const names[] = { "running", "ready", "suspended" };
    for (unsigned round = 0; round < test_effort(50); round++) {
        make_lanes();
        for (unsigned i = 0; i < THREADS; i++) {
            struct hw_lane_walk walk = hw_lane_walk(lanes[i].bytes, lanes[i].length, 0), again = walk;
            bool more = true;
            while (more) {
                struct hw_buffer buffer = { NULL, 0, 0 };
                CHECK(hw_encode_perfetto(&buffer, &pieces, &walk, &holds, 1 + test_random(300), &more));
                const uint8_t *at = buffer.bytes;
                while (at < buffer.bytes + buffer.length) {
                    do CHECK(hw_lane_next(&again)); while (again.state == HW_LANE_ABSENT);
                    CHECK(same(packet(&at, again.from), names[again.state]));
                    struct hw_piece rest = packet(&at, again.to);
                    if (again.state == HW_LANE_READY) check_wait_end(rest, again.from, again.to);
                    else CHECK(same(rest, "end"));
                }
                CHECK(at == buffer.bytes + buffer.length);
                free(buffer.bytes);
            }
            while (hw_lane_next(&again)) CHECK_EQUAL(HW_LANE_ABSENT, again.state);
        }
        free_lanes();
    }
}

TEST(nonsense_ends_a_lane)
{
    for (unsigned round = 0; round < test_effort(2000); round++) {
        uint8_t *bytes = malloc(20);
        size_t length = test_random(21);
        for (size_t i = 0; i < length; i++) bytes[i] = (uint8_t)(test_random(4) ? test_random(256) : 255);
        struct hw_lane_walk walk = hw_lane_walk(bytes, length, test_random(1000));
        unsigned segments = 0;
        while (hw_lane_next(&walk)) segments++;
        CHECK(segments <= length);
        free(bytes);
    }
}

TESTS({ "shares", shares_are_those_of_the_slow_way }, { "packets", packets_say_what_the_lanes_say }, { "nonsense", nonsense_ends_a_lane })
