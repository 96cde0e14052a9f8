/* The map against a table of every number there is, in a small world. */
#include "number_map.h"
#include "test.h"

#define NUMBERS 20000

/* Numbers that count up, numbers far apart, and numbers that differ in their high bits only. */
static uint32_t
spread(uint32_t number, int how)
{
    if (how == 0) return number;
    if (how == 1) return number * UINT32_C(104729);
    return (number << 12) | (number >> 20);
}

static void
agrees(int how)
{
    static uint64_t expected[NUMBERS];
    struct hw_number_map map = { 0 };
    uint32_t count = 0;
    memset(expected, 0, sizeof(expected));
    for (unsigned round = 0; round < test_effort(60000); round++) {
        uint32_t number = (uint32_t)test_random(NUMBERS);
        uint64_t *found = hw_number_map_find(&map, spread(number, how));
        CHECK(found ? *found == expected[number] : expected[number] == 0);
        if (test_random(2)) continue;
        uint64_t *put = hw_number_map_put(&map, spread(number, how));
        CHECK(put && *put == expected[number] && (!found || put == found));
        if (!found) count++;
        *put = expected[number] = round + 1;
    }
    CHECK_EQUAL(count, map.count);
    CHECK(map.slots >= 2 * map.count);
    hw_number_map_free(&map);
}

TEST(numbers_in_a_row) { agrees(0); }
TEST(numbers_far_apart) { agrees(1); }
TEST(numbers_alike_in_their_low_bits) { agrees(2); }

TEST(an_empty_map_has_nothing)
{
    struct hw_number_map map = { 0 };
    CHECK(hw_number_map_find(&map, 0) == NULL);
    hw_number_map_free(&map);
}

TESTS({ "numbers_in_a_row", numbers_in_a_row }, { "numbers_far_apart", numbers_far_apart },
      { "numbers_alike_in_their_low_bits", numbers_alike_in_their_low_bits },
      { "an_empty_map_has_nothing", an_empty_map_has_nothing })
