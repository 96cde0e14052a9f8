/* Condition variables on the monotonic clock. wait_until says whether it was woken before the time. */
#ifndef HW_COND_H
#define HW_COND_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

void hw_cond_init(pthread_cond_t *cond);
bool hw_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t until_ns);

#endif
