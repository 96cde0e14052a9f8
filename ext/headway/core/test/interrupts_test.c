/* Interrupts and wake-ups that come at the wrong moment, on real threads. */
#include "cast.h"

static void *
storm(void *arg)
{
    atomic_bool *over = arg;
    uint64_t state = test_seed();
    while (!atomic_load(over)) {
        struct vm_thread *thread = &vm.threads[1 + test_random_of(&state) % 4];
        vm_interrupt(thread);
        sleep_ns(US(20));
    }
    return NULL;
}

static void
raiser(void *arg)
{
    (void)arg;
    uint64_t state = test_seed();
    while (!atomic_load(&curtain)) {
        vm_raise(&vm.threads[1 + test_random_of(&state) % 4]);
        vm_sleep(US(100));
        atomic_fetch_add(&current->rounds, 1);
    }
}

TEST(interrupts_by_the_thousand_lose_nobody)
{
    atomic_bool over = false;
    vm_headway_start(HW_FAIR, MS(5), HW_SIGNAL);
    for (int i = 0; i < 4; i++) vm_thread_start(hog, NULL);
    for (int i = 0; i < 2; i++) vm_thread_start(napper, NULL);
    vm_thread_start(raiser, NULL);
    unsigned long long raises = atomic_load(&vm.raises);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, storm, &over) == 0);
    vm_sleep(MS(test_effort(400)));
    check_everybody_moves(MS(5000));
    atomic_store(&over, true);
    vm_release();
    pthread_join(thread, NULL);
    vm_acquire();
    CHECK(atomic_load(&vm.raises) > raises);
    end_everybody();
    check_given_back();
}

static bool
somebody_is_parked(void)
{
    bool parked = false;
    pthread_mutex_lock(&runtime.lock);
    for (struct hw_thread *thread = runtime.scheduler.threads; thread; thread = thread->next) parked |= thread->parked;
    pthread_mutex_unlock(&runtime.lock);
    return parked;
}

static uint64_t wakes_dropped, worst_wait_ns;

/* Main makes the hog park, and sleeps; the wake-up that its sleep brings is dropped. */
static void
drop_a_wake_up(void)
{
    vm_sleep(MS(10));
    struct patience parks = { 0, 0 }, moves = { 0, 0 };
    while (!somebody_is_parked() && waited_ns(&parks) < MS(100)) vm_compute(US(100));
    pthread_mutex_lock(&runtime.lock);
    runtime.drop_wakes = 1;
    pthread_mutex_unlock(&runtime.lock);
    unsigned long long rounds = atomic_load(&vm.threads[1].rounds);
    vm_release();
    while (atomic_load(&vm.threads[1].rounds) == rounds && waited_ns(&moves) < MS(5000)) sleep_ns(MS(1));
    if (moves.waited_ns > worst_wait_ns) worst_wait_ns = moves.waited_ns;
    vm_acquire();
    pthread_mutex_lock(&runtime.lock);
    wakes_dropped += runtime.drop_wakes == 0;
    runtime.drop_wakes = 0;
    pthread_mutex_unlock(&runtime.lock);
}

TEST(a_lost_wake_up_is_noticed_and_counted)
{
    wakes_dropped = worst_wait_ns = 0;
    vm_headway_start(HW_FAIR, MS(100), HW_SIGNAL);
    uint64_t spin_ns = runtime.spin_ns;
    runtime.spin_ns = 0; /* who spins needs no wake-up */
    vm_thread_start(hog, NULL);
    vm_sleep(MS(30));
    for (unsigned i = 0; i < 10; i++) drop_a_wake_up();
    uint64_t timeouts = park_timeouts();
    end_everybody();
    vm_headway_stop();
    runtime.spin_ns = spin_ns;
    CHECK(wakes_dropped > 0);
    CHECK(worst_wait_ns < MS(2000), "%" PRIu64 " us", worst_wait_ns / 1000);
    CHECK(timeouts > 0 && timeouts <= wakes_dropped, "%" PRIu64 " of %" PRIu64, timeouts, wakes_dropped);
}

/* Its record, once it sleeps in its park; the runtime's lock is held then. */
static struct hw_thread *
locked_while_asleep(struct vm_thread *other)
{
    struct hw_thread *record = atomic_load(&other->record);
    for (;;) {
        pthread_mutex_lock(&runtime.lock);
        if (record->parked && record->sleeps && !atomic_load(&record->open)) return record;
        pthread_mutex_unlock(&runtime.lock);
        vm_compute(MS(1));
    }
}

/* A hog parks beside main, which is interactive. */
static struct hw_thread *
start_beside_a_sleeper(void)
{
    vm_headway_start(HW_FAIR, MS(100), HW_SIGNAL);
    struct vm_thread *other = vm_thread_start(hog, NULL);
    vm_sleep(MS(30));
    vm_set_class(HW_CLASS_INTERACTIVE);
    return locked_while_asleep(other);
}

static void
end_beside_a_sleeper(void)
{
    vm_sleep(MS(20));
    vm_set_class(HW_CLASS_MEASURED);
    end_everybody();
    check_given_back();
}

/* It was called just as its timed wait ran out, spins while the GVL is kept free for another, and goes on: nothing was lost. */
TEST(who_was_woken_to_spin_counts_as_woken)
{
    struct hw_thread *record = start_beside_a_sleeper();
    sleep_ns(MS(60)); /* longer than a parked thread waits before it looks for itself */
    struct hw_orders orders;
    hw_scheduler_suspended(&runtime.scheduler, atomic_load(&current->record), hw_now_ns(), &orders);
    bool woken = orders.wake == record;
    runtime.scheduler.linger_ns = hw_now_ns() + MS(5);
    pthread_mutex_unlock(&runtime.lock);

    end_beside_a_sleeper();
    CHECK(woken);
}

/* The system switched away who opened its gate, before it let go the lock and called: by then the timed wait was over. */
TEST(who_was_called_after_its_wait_counts_as_woken)
{
    struct hw_thread *record = start_beside_a_sleeper();
    uint64_t opened_ns = hw_now_ns() - MS(30);
    sleep_ns(MS(60));
    uint64_t now = hw_now_ns();
    struct hw_orders orders;
    hw_scheduler_suspended(&runtime.scheduler, atomic_load(&current->record), now, &orders);
    bool woken = orders.wake == record;
    runtime.scheduler.linger_ns = 0;
    record->opened_ns = opened_ns;
    hw_runtime_carry_out(&runtime, &orders, now);
    hw_runtime_finish(&runtime, &orders);

    end_beside_a_sleeper();
    CHECK(woken);
}

RUNTIME_TESTS({ "interrupts", interrupts_by_the_thousand_lose_nobody }, { "lost_wake", a_lost_wake_up_is_noticed_and_counted },
              { "spins", who_was_woken_to_spin_counts_as_woken }, { "called_late", who_was_called_after_its_wait_counts_as_woken })
