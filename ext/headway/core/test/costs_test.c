/* Which operations are handed over, by what they turned out to cost. */
#include "costs.h"
#include "test.h"

#include <limits.h>

#define HAND_OVER_NS 60000
#define MOST 100
#define LONG_NS (HAND_OVER_NS * HW_COSTS_LONG_HAND_OVERS)

static struct hw_costs costs;
static uint64_t now;
static int turns;

static enum hw_choice
choose_after(uint64_t key, bool breathed)
{
    struct hw_place *place = hw_costs_place(&costs, key);
    return hw_costs_choose(&costs, place, hw_costs_wants_time(place) ? now : 0, breathed);
}

static enum hw_choice
choose(uint64_t key)
{
    enum hw_choice choice = choose_after(key, false);
    if (choice != HW_CHOICE_BREATHE) return choice;
    turns++;
    hw_costs_turned(&costs);
    return choose_after(key, true);
}

/* One operation of so many nanoseconds. */
static enum hw_choice
operation(uint64_t key, uint64_t ns)
{
    enum hw_choice choice = choose(key);
    now += ns;
    if (choice == HW_CHOICE_MEASURE) hw_costs_ran_inline(&costs, key, ns, ns);
    if (choice == HW_CHOICE_HAND_OVER) hw_costs_ran_on_worker(&costs, key, ns + 5000, ns);
    return choice;
}

static void
begin(void)
{
    hw_costs_init(&costs, HW_COSTS_ADAPTIVE, HAND_OVER_NS, MOST, 1);
    costs.elsewhere = 1;
    now = 1;
    turns = 0;
}

/* While no other operation is under way. */
static void
begin_alone(void)
{
    begin();
    costs.elsewhere = 0;
}

TEST(what_is_long_follows_the_hand_over_within_bounds)
{
    hw_costs_init(&costs, HW_COSTS_ADAPTIVE, HAND_OVER_NS, MOST, 1);
    CHECK_EQUAL(LONG_NS, costs.long_ns);
    hw_costs_init(&costs, HW_COSTS_ADAPTIVE, 10, MOST, 1);
    CHECK_EQUAL(HW_COSTS_LONG_MIN_NS, costs.long_ns);
    hw_costs_init(&costs, HW_COSTS_ADAPTIVE, 1000000, MOST, 1);
    CHECK_EQUAL(HW_COSTS_LONG_MAX_NS, costs.long_ns);
}

TEST(an_unknown_place_is_handed_over_once_when_it_is_short)
{
    begin();
    CHECK_EQUAL(HW_CHOICE_HAND_OVER, operation(1, 1000));
    CHECK_EQUAL(HW_CHOICE_MEASURE, operation(1, 1000));
    for (int i = 1; i < HW_COSTS_MEASURE_EVERY; i++) CHECK_EQUAL(HW_CHOICE_INLINE, operation(1, 1000));
    CHECK_EQUAL(HW_CHOICE_MEASURE, operation(1, 1000));
}

TEST(a_long_place_stays_handed_over)
{
    begin();
    for (int i = 0; i < 1000; i++) CHECK_EQUAL(HW_CHOICE_HAND_OVER, operation(1, LONG_NS));
}

/* Until what it takes is known it is handed over; then it runs inline, with turns of the loop in between. */
TEST(a_long_place_runs_inline_when_it_is_alone_and_fits)
{
    begin_alone();
    for (int i = 0; i < HW_COSTS_RECENT; i++) CHECK_EQUAL(HW_CHOICE_HAND_OVER, operation(1, LONG_NS));
    for (int i = 0; i < 1000; i++) CHECK_EQUAL(HW_CHOICE_MEASURE, operation(1, LONG_NS));
    CHECK(turns >= 999 / (HW_COSTS_SHARE_NS / LONG_NS));
    costs.elsewhere = 1;
    for (int i = 0; i < 100; i++) CHECK_EQUAL(HW_CHOICE_HAND_OVER, operation(1, LONG_NS));
}

TEST(a_place_that_does_not_fit_is_handed_over_alone_too)
{
    begin_alone();
    for (int i = 0; i < 100; i++) CHECK_EQUAL(HW_CHOICE_HAND_OVER, operation(1, HW_COSTS_LIGHT_NS + 1));
    begin_alone(); /* it may wait for something meanwhile */
    for (int i = 0; i < 100; i++) {
        CHECK_EQUAL(HW_CHOICE_HAND_OVER, choose(1));
        hw_costs_ran_on_worker(&costs, 1, HW_COSTS_SHARE_NS + 1, HW_COSTS_SHARE_NS / 10);
    }
}

/* The only one in a turn of the loop. */
TEST(a_light_operation_may_take_longer_than_the_share)
{
    begin_alone();
    for (int i = 0; i < HW_COSTS_RECENT; i++) operation(1, HW_COSTS_LIGHT_NS);
    int turned = turns;
    for (int i = 0; i < 100; i++) CHECK_EQUAL(HW_CHOICE_MEASURE, operation(1, HW_COSTS_LIGHT_NS));
    CHECK(turns - turned >= 99, "%d", turns - turned);
}

/* Neither long nor short: it stays what it became, and alone it isn't timed each time. */
TEST(a_place_between_long_and_short_costs_few_clocks_alone)
{
    begin_alone();
    for (int i = 0; i < HW_COSTS_RECENT; i++) operation(1, LONG_NS * 2 / 3);
    int timed = 0, ran = 1000 * HW_COSTS_RECENT;
    for (int i = 0; i < ran; i++) timed += operation(1, LONG_NS * 2 / 3) == HW_CHOICE_MEASURE;
    CHECK_EQUAL(1000, timed);
    CHECK(turns >= ran * 2 / 3 * LONG_NS / HW_COSTS_SHARE_NS / 2, "%d", turns);
    costs.elsewhere = 1;
    CHECK_EQUAL(HW_CHOICE_HAND_OVER, operation(1, LONG_NS * 2 / 3));
}

TEST(a_place_that_outgrows_its_share_inline_is_handed_over_from_then_on)
{
    begin_alone();
    for (int i = 0; i < 10; i++) operation(1, LONG_NS);
    CHECK_EQUAL(HW_CHOICE_MEASURE, operation(1, 2 * HW_COSTS_LIGHT_NS));
    for (int i = 0; i < HW_COSTS_RECENT; i++) CHECK_EQUAL(HW_CHOICE_HAND_OVER, operation(1, LONG_NS));
    CHECK_EQUAL(HW_CHOICE_MEASURE, operation(1, LONG_NS));
}

TEST(a_place_that_becomes_short_while_it_is_alone_costs_no_clock_for_long)
{
    begin_alone();
    for (int i = 0; i < 10; i++) operation(1, LONG_NS);
    for (int i = 0; i < HW_COSTS_RECENT; i++) CHECK_EQUAL(HW_CHOICE_MEASURE, operation(1, 1000));
    operation(1, 1000);
    CHECK_EQUAL(HW_CHOICE_INLINE, operation(1, 1000));
}

#define LIGHT_NS (HW_COSTS_SHARE_NS * 4 / 5)

static void
begin_light(void)
{
    begin();
    for (int i = 0; i < HW_COSTS_RECENT; i++) operation(1, LIGHT_NS);
    CHECK(hw_costs_light(hw_costs_place(&costs, 1)));
}

static enum hw_choice
choose_beside(uint32_t elsewhere, uint32_t handed_over, uint32_t done)
{
    costs.elsewhere = elsewhere;
    costs.handed_over = handed_over;
    costs.done = done;
    hw_costs_turned(&costs);
    return choose(1);
}

TEST(a_light_operation_runs_inline_when_the_workers_have_enough)
{
    begin_light();
    CHECK_EQUAL(HW_CHOICE_HAND_OVER, choose_beside(1, 0, 0)); /* its fiber lets the loop turn */
    CHECK_EQUAL(HW_CHOICE_MEASURE, choose_beside(1, 1, 0));   /* else the loop had nothing */
    CHECK_EQUAL(HW_CHOICE_HAND_OVER, choose_beside(2, 1, 0)); /* in line */
    CHECK_EQUAL(HW_CHOICE_MEASURE, choose_beside(2, 2, 0));
    CHECK_EQUAL(HW_CHOICE_HAND_OVER, choose_beside(2, 2, 1)); /* the worker goes on with the one in line */
    CHECK_EQUAL(HW_CHOICE_HAND_OVER, choose_beside(2, 2, 2));
    CHECK_EQUAL(HW_CHOICE_MEASURE, choose_beside(20, 20, 0));
    costs.crew = 3;
    CHECK_EQUAL(HW_CHOICE_HAND_OVER, choose_beside(2, 2, 0));
    CHECK_EQUAL(HW_CHOICE_MEASURE, choose_beside(3, 3, 0));
    CHECK_EQUAL(HW_CHOICE_HAND_OVER, choose_beside(9, 5, 0));
    CHECK_EQUAL(HW_CHOICE_MEASURE, choose_beside(9, 6, 0));
}

TEST(the_loop_helps_with_nothing_that_blocks_or_takes_long)
{
    begin();
    for (int i = 0; i < HW_COSTS_RECENT; i++) hw_costs_ran_on_worker(&costs, hw_costs_place(&costs, 1)->key, LIGHT_NS, LIGHT_NS / 10);
    CHECK_EQUAL(HW_CHOICE_HAND_OVER, choose_beside(5, 5, 0));
    begin();
    for (int i = 0; i < HW_COSTS_RECENT; i++) operation(1, HW_COSTS_LIGHT_NS + 1);
    CHECK_EQUAL(HW_CHOICE_HAND_OVER, choose_beside(5, 5, 0));
}

TEST(busy_processors_do_not_make_a_light_operation_long)
{
    begin_light();
    for (int i = 0; i < 100; i++) hw_costs_ran_on_worker(&costs, 1, i % 2 ? 50 * LIGHT_NS : LIGHT_NS, LIGHT_NS);
    CHECK_EQUAL(HW_CHOICE_MEASURE, choose_beside(2, 2, 0));
}

TEST(all_that_help_in_one_turn_of_the_loop_share_it)
{
    begin_light();
    uint32_t before = costs.turns;
    CHECK_EQUAL(HW_CHOICE_MEASURE, choose_beside(4, 4, 0));
    hw_costs_ran_inline(&costs, 1, HW_COSTS_SHARE_NS, LIGHT_NS);
    CHECK_EQUAL(HW_CHOICE_BREATHE, choose_after(1, false));
    uint32_t left = costs.turns;
    CHECK_EQUAL(HW_CHOICE_BREATHE, choose_after(1, false));
    hw_costs_back_since(&costs, left);
    CHECK_EQUAL(HW_CHOICE_MEASURE, choose_after(1, true));
    hw_costs_ran_inline(&costs, 1, HW_COSTS_SHARE_NS, LIGHT_NS);
    hw_costs_back_since(&costs, left);
    CHECK_EQUAL(HW_CHOICE_HAND_OVER, choose_after(1, true));
    CHECK(costs.turns == before + 2);
}

TEST(not_too_many_are_elsewhere_at_once)
{
    begin();
    costs.elsewhere = MOST - 1;
    CHECK_EQUAL(HW_CHOICE_HAND_OVER, operation(1, LONG_NS));
    costs.elsewhere = MOST;
    CHECK_EQUAL(HW_CHOICE_MEASURE, operation(1, LONG_NS));
}

TEST(not_too_many_let_the_loop_turn_at_once)
{
    begin();
    operation(1, 1500);
    costs.elsewhere = HW_COSTS_BREATHING;
    for (int i = 0; i < 10000; i++) operation(1, 1500);
    CHECK_EQUAL(0, turns);
}

TEST(a_stream_of_short_ones_lets_the_loop_turn)
{
    begin();
    uint64_t since_turn = 0, longest = 0;
    for (int i = 0; i < 100000; i++) {
        int before = turns;
        operation(1, 1500);
        since_turn = turns == before ? since_turn + 1500 : 1500;
        if (since_turn > longest) longest = since_turn;
    }
    CHECK(longest <= 2 * HW_COSTS_SHARE_NS);
    CHECK(turns > 50 && turns < 400); /* some microseconds each: 1 % at most */
    CHECK_EQUAL(1, costs.chosen[HW_CHOICE_HAND_OVER]);
}

TEST(streams_of_several_fibers_share_the_turns)
{
    enum { FIBERS = 12 };
    long ran[FIBERS] = { 0 }, most = 0, least = LONG_MAX;
    uint32_t left[FIBERS] = { 0 };
    begin_alone();
    operation(1, 5000);
    for (int turn = 0; turn < 300; turn++) {
        for (int fiber = 0; fiber < FIBERS; fiber++) {
            bool breathed = turn > 0;
            if (breathed) {
                costs.elsewhere--;
                hw_costs_back_since(&costs, left[fiber]);
            }
            enum hw_choice choice;
            for (; (choice = choose_after(1, breathed)) != HW_CHOICE_BREATHE; breathed = false, ran[fiber]++) {
                now += 5000;
                if (choice == HW_CHOICE_MEASURE) hw_costs_ran_inline(&costs, 1, 5000, 5000);
            }
            left[fiber] = costs.turns;
            costs.elsewhere++;
        }
    }
    for (int fiber = 0; fiber < FIBERS; fiber++) {
        if (ran[fiber] > most) most = ran[fiber];
        if (ran[fiber] < least) least = ran[fiber];
    }
    CHECK(most < 2 * least, "%ld and %ld", least, most);
    CHECK(most < 300 * 2 * HW_COSTS_SHARE_NS / 5000 / FIBERS, "%ld", most);
}

TEST(a_loop_that_tells_its_turns_is_not_made_to_turn)
{
    begin();
    operation(1, 1500);
    for (int i = 0; i < 100000; i++) {
        CHECK(operation(1, 1500) != HW_CHOICE_HAND_OVER);
        if (i % 50 == 0) hw_costs_turned(&costs);
    }
    CHECK_EQUAL(0, turns);
}

TEST(a_place_that_becomes_long_is_found_out_within_a_few_operations)
{
    begin();
    for (int i = 0; i < 200; i++) operation(1, 1000);
    int inline_ones = 0;
    while (operation(1, LONG_NS) != HW_CHOICE_HAND_OVER) inline_ones++;
    CHECK(inline_ones <= 5);
}

TEST(one_short_operation_does_not_bring_a_long_place_back)
{
    begin();
    for (int i = 0; i < 200; i++) operation(1, 1000);
    for (int i = 0; i < 10; i++) operation(1, LONG_NS);
    for (int i = 1; i < HW_COSTS_RECENT; i++) CHECK_EQUAL(HW_CHOICE_HAND_OVER, operation(1, 1000));
    CHECK_EQUAL(HW_CHOICE_HAND_OVER, operation(1, LONG_NS));
    for (int i = 0; i < HW_COSTS_RECENT; i++) CHECK_EQUAL(HW_CHOICE_HAND_OVER, operation(1, 1000));
    CHECK(operation(1, 1000) != HW_CHOICE_HAND_OVER);
}

TEST(a_wait_for_the_gvl_does_not_make_a_place_long)
{
    begin();
    for (int i = 0; i < 3; i++) {
        CHECK_EQUAL(HW_CHOICE_HAND_OVER, choose(1));
        hw_costs_ran_on_worker(&costs, 1, 100000000, 1000);
    }
    CHECK_EQUAL(HW_CHOICE_HAND_OVER, choose(1));
    hw_costs_ran_on_worker(&costs, 1, 20000, 1000);
    CHECK(choose(1) != HW_CHOICE_HAND_OVER);
    hw_costs_ran_on_worker(&costs, 1, 100000000, 1000); /* one of before that ends late */
    CHECK(choose(1) != HW_CHOICE_HAND_OVER);
}

TEST(a_place_that_blocks_without_computing_is_handed_over)
{
    begin();
    for (int i = 0; i < 100; i++) {
        CHECK_EQUAL(HW_CHOICE_HAND_OVER, choose(1));
        hw_costs_ran_on_worker(&costs, 1, 5 * LONG_NS, 1000);
    }
}

TEST(places_that_collide_do_no_harm)
{
    begin();
    for (unsigned i = 0; i < test_effort(200000); i++) {
        uint64_t key = 1 + test_random(4 * HW_COSTS_PLACES);
        operation(key, key % 7 == 0 ? 2 * LONG_NS : 1000);
    }
    hw_costs_ran_inline(&costs, UINT64_MAX, UINT64_MAX, UINT64_MAX);
    hw_costs_ran_on_worker(&costs, UINT64_MAX, UINT64_MAX, UINT64_MAX);
}

TEST(what_is_set_is_not_weighed)
{
    hw_costs_init(&costs, HW_COSTS_ALWAYS, HAND_OVER_NS, MOST, 1);
    for (int i = 0; i < 100; i++) CHECK_EQUAL(HW_CHOICE_HAND_OVER, operation(1, 1000));
    hw_costs_init(&costs, HW_COSTS_NEVER, HAND_OVER_NS, MOST, 1);
    for (int i = 0; i < 100; i++) CHECK_EQUAL(HW_CHOICE_INLINE, operation(1, 10 * LONG_NS));
    CHECK_EQUAL(100, costs.chosen[HW_CHOICE_INLINE]);
}

TESTS({ "what_is_set_is_not_weighed", what_is_set_is_not_weighed },
      { "what_is_long_follows_the_hand_over_within_bounds", what_is_long_follows_the_hand_over_within_bounds },
      { "an_unknown_place_is_handed_over_once_when_it_is_short", an_unknown_place_is_handed_over_once_when_it_is_short },
      { "a_long_place_stays_handed_over", a_long_place_stays_handed_over },
      { "a_long_place_runs_inline_when_it_is_alone_and_fits", a_long_place_runs_inline_when_it_is_alone_and_fits },
      { "a_place_that_does_not_fit_is_handed_over_alone_too", a_place_that_does_not_fit_is_handed_over_alone_too },
      { "a_light_operation_may_take_longer_than_the_share", a_light_operation_may_take_longer_than_the_share },
      { "a_place_between_long_and_short_costs_few_clocks_alone", a_place_between_long_and_short_costs_few_clocks_alone },
      { "a_place_that_outgrows_its_share_inline_is_handed_over_from_then_on", a_place_that_outgrows_its_share_inline_is_handed_over_from_then_on },
      { "a_place_that_becomes_short_while_it_is_alone_costs_no_clock_for_long", a_place_that_becomes_short_while_it_is_alone_costs_no_clock_for_long },
      { "a_light_operation_runs_inline_when_the_workers_have_enough", a_light_operation_runs_inline_when_the_workers_have_enough },
      { "the_loop_helps_with_nothing_that_blocks_or_takes_long", the_loop_helps_with_nothing_that_blocks_or_takes_long },
      { "busy_processors_do_not_make_a_light_operation_long", busy_processors_do_not_make_a_light_operation_long },
      { "all_that_help_in_one_turn_of_the_loop_share_it", all_that_help_in_one_turn_of_the_loop_share_it },
      { "not_too_many_are_elsewhere_at_once", not_too_many_are_elsewhere_at_once },
      { "not_too_many_let_the_loop_turn_at_once", not_too_many_let_the_loop_turn_at_once },
      { "a_stream_of_short_ones_lets_the_loop_turn", a_stream_of_short_ones_lets_the_loop_turn },
      { "streams_of_several_fibers_share_the_turns", streams_of_several_fibers_share_the_turns },
      { "a_loop_that_tells_its_turns_is_not_made_to_turn", a_loop_that_tells_its_turns_is_not_made_to_turn },
      { "a_place_that_becomes_long_is_found_out_within_a_few_operations", a_place_that_becomes_long_is_found_out_within_a_few_operations },
      { "one_short_operation_does_not_bring_a_long_place_back", one_short_operation_does_not_bring_a_long_place_back },
      { "a_wait_for_the_gvl_does_not_make_a_place_long", a_wait_for_the_gvl_does_not_make_a_place_long },
      { "a_place_that_blocks_without_computing_is_handed_over", a_place_that_blocks_without_computing_is_handed_over },
      { "places_that_collide_do_no_harm", places_that_collide_do_no_harm })
