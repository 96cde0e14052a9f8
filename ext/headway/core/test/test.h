/* The tests' harness: TEST functions, CHECK, and a reproducible source of random numbers. One test file is one program; a failed
 * CHECK ends its test, the others still run, and the exit status tells.
 *
 *   HW_TEST_SEED=n     another sequence of random numbers (printed with every failure)
 *   HW_TEST_EFFORT=n   per cent of the usual number of random rounds, for slow tools such as valgrind
 *   program NAME...    only these tests */
#ifndef HW_TEST_H
#define HW_TEST_H

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if defined(__has_include)
#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#endif
#endif

static jmp_buf test_end;
static const char *test_running;
static void (*test_clean_up)(void); /* after a failure, so that the next test starts as if nothing had been */
static uint64_t test_random_state = 1;

static inline uint64_t
test_seed(void)
{
    const char *text = getenv("HW_TEST_SEED");
    uint64_t seed = text ? strtoull(text, NULL, 10) : 20861;
    return seed ? seed : 1;
}

static inline unsigned
test_effort(unsigned rounds)
{
    const char *text = getenv("HW_TEST_EFFORT");
    unsigned wanted = text ? (unsigned)((uint64_t)rounds * strtoul(text, NULL, 10) / 100) : rounds;
    return wanted ? wanted : 1;
}

/* With slow tools, which look at the code and not at figures, one case of many alike is enough. */
static inline bool
test_in_brief(void)
{
    return test_effort(100) <= 50;
}

#define TEST_LIMIT_S 1500 /* for a program: what hangs would go on for ever, and nobody hear of it */
#define TEST_CHILD_LIMIT_S 300

/* First in a child of a process with other threads: what those had allocated and not yet stored anywhere is lost by the fork, as anybody's
 * is, so valgrind (3.18 on) must not take it for a leak. */
static inline void
test_child_begins(void)
{
    alarm(TEST_CHILD_LIMIT_S);
#ifdef VALGRIND_CLO_CHANGE
    VALGRIND_CLO_CHANGE("--leak-check=no");
#endif
}

/* xorshift64*, by Sebastiano Vigna. */
static inline uint64_t
test_random_of(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(2685821657736338717);
}

/* 0 <= result < bound */
static inline uint64_t
test_random(uint64_t bound)
{
    return (test_random_of(&test_random_state) >> 11) % bound;
}

static inline void
test_print_failure(const char *file, int line, const char *condition, const char *format, va_list arguments)
{
    fprintf(stderr, "%s:%d: not so: %s", file, line, condition);
    if (*format) {
        fprintf(stderr, " -- ");
        vfprintf(stderr, format, arguments);
    }
    fprintf(stderr, " (seed %" PRIu64 ")\n", test_seed());
}

static inline void
test_fail(const char *file, int line, const char *condition, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    test_print_failure(file, line, condition, format, arguments);
    va_end(arguments);
    longjmp(test_end, 1);
}

/* CHECK(condition) or CHECK(condition, format, ...) */
#define CHECK(condition, ...)                                                                                                  \
    do {                                                                                                                       \
        if (!(condition)) test_fail(__FILE__, __LINE__, #condition, "" __VA_ARGS__);                                           \
    } while (0)

#define CHECK_EQUAL(expected, actual)                                                                                          \
    do {                                                                                                                       \
        uint64_t expected_ = (expected), actual_ = (actual);                                                                   \
        if (expected_ != actual_) {                                                                                            \
            test_fail(__FILE__, __LINE__, #expected " == " #actual, "%" PRIu64 " expected, %" PRIu64 " found", expected_,      \
                      actual_);                                                                                                \
        }                                                                                                                      \
    } while (0)

#define TEST(name) static void name(void)

struct test {
    const char *name;
    void (*run)(void);
};

static inline bool
test_wanted(const char *name, int argc, char **argv)
{
    if (argc < 2) return true;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], name) == 0) return true;
    }
    return false;
}

static inline bool
test_passes(void (*run)(void))
{
    if (setjmp(test_end)) return false;
    run();
    return true;
}

/* Valgrind can't make room on the main stack for the frame of a signal: there must be some. */
static inline void
test_grow_stack(void)
{
    volatile char room[256 * 1024];
    for (size_t i = 0; i < sizeof(room); i += 1024) room[i] = 0;
}

static inline int
test_main(const char *program, const struct test *tests, int argc, char **argv)
{
    alarm(TEST_LIMIT_S);
    test_grow_stack();
    int count = 0, failures = 0;
    for (const struct test *test = tests; test->name; test++) {
        if (!test_wanted(test->name, argc, argv)) continue;
        test_random_state = test_seed();
        test_running = test->name;
        count++;
        if (test_passes(test->run)) continue;
        fprintf(stderr, "%s: FAILED %s\n", program, test->name);
        failures++;
        if (test_clean_up) test_clean_up();
    }
    printf("%s: %d tests, %d failed\n", program, count, failures);
    return failures ? 1 : 0;
}

#define TESTS(...)                                                                                                             \
    int main(int argc, char **argv)                                                                                            \
    {                                                                                                                          \
        const struct test tests[] = { __VA_ARGS__, { NULL, NULL } };                                                           \
        const char *slash = strrchr(argv[0], '/');                                                                             \
        return test_main(slash ? slash + 1 : argv[0], tests, argc, argv);                                                      \
    }

#endif
