/* The gate's queue against an array. */
#include "gate.h"
#include "test.h"

#define THREADS 12

static struct hw_thread threads[THREADS];
static struct hw_gate gate;
static struct hw_thread *oracle[THREADS];
static unsigned oracle_length;

static void
start_empty(void)
{
    memset(threads, 0, sizeof(threads));
    memset(&gate, 0, sizeof(gate));
    oracle_length = 0;
}

static int
oracle_position(const struct hw_thread *thread)
{
    for (unsigned i = 0; i < oracle_length; i++) {
        if (oracle[i] == thread) return (int)i;
    }
    return -1;
}

static void
oracle_remove(struct hw_thread *thread)
{
    int position = oracle_position(thread);
    if (position < 0) return;
    memmove(oracle + position, oracle + position + 1, (oracle_length - (unsigned)position - 1) * sizeof(*oracle));
    oracle_length--;
}

static void
check_gate(void)
{
    CHECK_EQUAL(oracle_length, gate.length);
    struct hw_thread *thread = gate.head, *before = NULL;
    for (unsigned i = 0; i < oracle_length; i++) {
        CHECK(thread == oracle[i]);
        CHECK(thread->gate_prev == before);
        before = thread;
        thread = thread->gate_next;
    }
    CHECK(thread == NULL && gate.tail == before);
    for (unsigned i = 0; i < THREADS; i++) {
        bool in = oracle_position(&threads[i]) >= 0;
        CHECK(threads[i].at_gate == in);
        if (!in) CHECK(threads[i].gate_next == NULL && threads[i].gate_prev == NULL);
    }
}

TEST(first_come_first_served)
{
    start_empty();
    for (unsigned i = 0; i < THREADS; i++) hw_gate_push(&gate, &threads[i]);
    for (unsigned i = 0; i < THREADS; i++) CHECK(hw_gate_pop(&gate) == &threads[i]);
    CHECK(hw_gate_pop(&gate) == NULL);
    check_gate();
}

TEST(doing_it_twice_is_doing_it_once)
{
    start_empty();
    hw_gate_push(&gate, &threads[0]);
    hw_gate_push(&gate, &threads[1]);
    hw_gate_push(&gate, &threads[0]);
    CHECK_EQUAL(2, gate.length);
    CHECK(gate.head == &threads[0]);
    hw_gate_remove(&gate, &threads[0]);
    hw_gate_remove(&gate, &threads[0]);
    hw_gate_remove(&gate, &threads[5]);
    CHECK(hw_gate_pop(&gate) == &threads[1]);
    check_gate();
}

TEST(any_order_as_an_array)
{
    start_empty();
    for (unsigned round = 0; round < test_effort(100000); round++) {
        struct hw_thread *thread = &threads[test_random(THREADS)];
        switch (test_random(5)) {
          case 0:
          case 1:
            if (oracle_position(thread) < 0) oracle[oracle_length++] = thread;
            hw_gate_push(&gate, thread);
            break;
          case 2:
          case 3:
            oracle_remove(thread);
            hw_gate_remove(&gate, thread);
            break;
          default: {
            struct hw_thread *expected = oracle_length ? oracle[0] : NULL;
            if (expected) oracle_remove(expected);
            CHECK(hw_gate_pop(&gate) == expected);
          }
        }
        check_gate();
    }
}

TESTS({ "fifo", first_come_first_served }, { "twice", doing_it_twice_is_doing_it_once }, { "random", any_order_as_an_array })
