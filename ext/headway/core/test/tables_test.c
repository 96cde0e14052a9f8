/* Strings and stacks: each is kept once, and there is an end to it. */
#include "stacks.h"
#include "strings.h"
#include "test.h"

static struct hw_strings strings;
static struct hw_stacks stacks;

static void
clean_up(void)
{
    hw_strings_free(&strings);
    hw_stacks_free(&stacks);
}

static void
start(void)
{
    test_clean_up = clean_up;
    CHECK(hw_strings_init(&strings) && hw_stacks_init(&stacks));
}

static uint32_t
number_of(const char *text)
{
    return hw_strings_number(&strings, text, strlen(text));
}

TEST(a_string_is_kept_once)
{
    size_t length;
    start();
    uint32_t first = number_of("first"), second = number_of("second"), empty = number_of("");
    CHECK(first != second && empty != first && first != HW_STRING_OTHERS);
    CHECK_EQUAL(first, number_of("first"));
    CHECK_EQUAL(second, hw_strings_find(&strings, "second", 6));
    CHECK_EQUAL(HW_STRING_OTHERS, hw_strings_find(&strings, "third", 5));
    CHECK(memcmp(hw_strings_get(&strings, second, &length), "second", 6) == 0 && length == 6);
    hw_strings_get(&strings, 99, &length);
    CHECK_EQUAL(0, length);
    clean_up();
}

TEST(strings_have_an_end)
{
    char text[2 * HW_STRING_LONGEST];
    start();
    memset(text, 'x', sizeof(text));
    CHECK_EQUAL(hw_strings_number(&strings, text, sizeof(text)), hw_strings_number(&strings, text, HW_STRING_LONGEST));
    uint32_t kept = strings.count;
    for (uint32_t i = 0; i < 2 * HW_STRINGS_MOST; i++) {
        size_t length = (size_t)snprintf(text, sizeof(text), "string %u", i);
        uint32_t number = hw_strings_number(&strings, text, length);
        CHECK_EQUAL(++kept <= HW_STRINGS_MOST ? kept : HW_STRING_OTHERS, number);
    }
    clean_up();
    CHECK_EQUAL(HW_STRING_OTHERS, number_of("no table"));
}

TEST(a_stack_is_kept_once_and_gathers_weight)
{
    const struct hw_blamed_frame frames[] = { { 2, 1, 1 }, { 3, 1, 2 }, { 4, 1, 3 } };
    const struct hw_blamed_frame elsewhere[] = { { 2, 1, 1 }, { 3, 1, 2 }, { 4, 1, 4 } };
    start();
    uint32_t one = hw_stacks_add(&stacks, frames, 3, 10), two = hw_stacks_add(&stacks, elsewhere, 3, 5);
    CHECK(one != two && one > HW_STACK_FOLDED);
    CHECK_EQUAL(one, hw_stacks_add(&stacks, frames, 3, 7));
    CHECK(hw_stacks_add(&stacks, frames, 2, 1) != one);
    CHECK_EQUAL(17, stacks.stacks[one - 1].weight_ns);
    CHECK_EQUAL(2, stacks.stacks[one - 1].samples);
    CHECK_EQUAL(5, stacks.frame_count); /* three, one on another line, the folded one */
    CHECK_EQUAL(one, hw_stacks_add(&stacks, frames, 3, 0)); /* its number is wanted, nobody waited for it */
    CHECK_EQUAL(2, stacks.stacks[one - 1].samples);
    CHECK_EQUAL(0, hw_stacks_add(&stacks, frames, 0, 1));
    hw_stacks_reset(&stacks);
    CHECK_EQUAL(0, stacks.stacks[one - 1].weight_ns);
    clean_up();
    CHECK_EQUAL(0, hw_stacks_add(&stacks, frames, 3, 1));
}

/* Whatever comes, no weight is lost. */
TEST(stacks_have_an_end)
{
    start();
    uint64_t added = 0, kept = 0;
    for (unsigned i = 0; i < 3 * HW_STACKS_MOST; i++) {
        struct hw_blamed_frame frames[HW_STACK_DEEPEST + 10];
        unsigned depth = 1 + (unsigned)test_random(HW_STACK_DEEPEST + 9);
        for (unsigned frame = 0; frame < depth; frame++) {
            frames[frame] = (struct hw_blamed_frame){ (uint32_t)test_random(5000), (uint32_t)test_random(100), (uint32_t)test_random(3) };
        }
        uint64_t weight_ns = 1 + test_random(1000); /* 0 blames nobody */
        uint32_t number = hw_stacks_add(&stacks, frames, depth, weight_ns);
        CHECK(number > 0 && number <= stacks.stack_count);
        added += weight_ns;
    }
    CHECK(stacks.folded > 0 && stacks.frame_count <= HW_FRAMES_MOST && stacks.stack_count <= HW_STACKS_MOST);
    CHECK_EQUAL(stacks.folded, stacks.stacks[HW_STACK_FOLDED - 1].samples);
    for (uint32_t i = 0; i < stacks.stack_count; i++) kept += stacks.stacks[i].weight_ns;
    CHECK_EQUAL(added, kept);
    clean_up();
}

/* Each is deep, and new in its leaves: of what was cut short there is room for all the same. */
TEST(a_tight_table_has_room_for_short_stacks)
{
    struct hw_blamed_frame frames[HW_STACK_DEEPEST] = { 0 };
    uint32_t first = 0;
    start();
    for (unsigned frame = 0; frame < HW_STACK_DEEPEST; frame++) frames[frame].method = frame + 1;
    for (unsigned i = 0; !hw_stacks_tight(&stacks); i++) {
        CHECK(i < HW_STACKS_MOST);
        frames[0].line = i + 1;
        uint32_t number = hw_stacks_add(&stacks, frames, HW_STACK_DEEPEST, 1);
        if (i == 0) first = number;
    }
    CHECK_EQUAL(0, stacks.folded);
    uint32_t stack_count = stacks.stack_count, frame_count = stacks.frame_count;
    frames[0].line = 1;
    CHECK_EQUAL(first, hw_stacks_add_known(&stacks, frames, HW_STACK_DEEPEST, 5));
    CHECK_EQUAL(6, stacks.stacks[first - 1].weight_ns);
    frames[0].line = 1 << 20; /* the frame is new */
    CHECK_EQUAL(0, hw_stacks_add_known(&stacks, frames, HW_STACK_DEEPEST, 5));
    frames[0].line = 1; /* the stack is */
    CHECK_EQUAL(0, hw_stacks_add_known(&stacks, frames, 2, 5));
    CHECK_EQUAL(stack_count, stacks.stack_count);
    CHECK_EQUAL(frame_count, stacks.frame_count);
    for (unsigned i = 0; i < 1000; i++) {
        frames[0].method = 100 + i;
        CHECK(hw_stacks_add(&stacks, frames, 5, 1) > HW_STACK_FOLDED);
    }
    CHECK_EQUAL(0, stacks.folded);
    clean_up();
    CHECK_EQUAL(0, hw_stacks_add_known(&stacks, frames, 5, 1));
}

/* However many there are, and none of them is folded. */
TEST(stacks_without_weight_leave_room_for_those_to_blame)
{
    struct hw_blamed_frame frames[] = { { 1, 1, 1 }, { 2, 1, 1 } };
    start();
    uint32_t known = hw_stacks_add(&stacks, frames, 2, 0);
    for (uint32_t i = 2; i < 2 * HW_FRAMES_MOST; i++) {
        frames[0].line = i;
        CHECK(hw_stacks_add(&stacks, frames, 2, 0) != HW_STACK_FOLDED);
    }
    CHECK_EQUAL(0, hw_stacks_add(&stacks, frames, 2, 0));
    CHECK(hw_stacks_add(&stacks, frames, 2, 5) > HW_STACK_FOLDED);
    frames[0].line = 1;
    CHECK_EQUAL(known, hw_stacks_add(&stacks, frames, 2, 0));
    CHECK_EQUAL(0, stacks.folded);
    clean_up();
}

TESTS({ "a_string_is_kept_once", a_string_is_kept_once }, { "strings_have_an_end", strings_have_an_end },
      { "a_stack_is_kept_once_and_gathers_weight", a_stack_is_kept_once_and_gathers_weight },
      { "stacks_have_an_end", stacks_have_an_end },
      { "a_tight_table_has_room_for_short_stacks", a_tight_table_has_room_for_short_stacks },
      { "stacks_without_weight_leave_room_for_those_to_blame", stacks_without_weight_leave_room_for_those_to_blame })
