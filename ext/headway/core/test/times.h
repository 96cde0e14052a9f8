/* Durations in nanoseconds, to the nearest: a product may be a hair too short. */
#ifndef HW_TEST_TIMES_H
#define HW_TEST_TIMES_H

#define MS(ms) ((uint64_t)((ms) * 1e6 + 0.5))
#define US(us) ((uint64_t)((us) * 1e3 + 0.5))

#endif
