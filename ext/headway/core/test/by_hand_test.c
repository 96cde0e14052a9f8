/* Classes set by hand, on real threads. */
#include "cast.h"

static void
hog_by_hand(void *arg)
{
    vm_set_class(HW_CLASS_BATCH);
    hog(arg);
}

TEST(who_is_batch_by_hand_survives_stops_and_starts)
{
    vm_headway_start(HW_FAIR, MS(2), HW_SIGNAL);
    for (int i = 0; i < 4; i++) vm_thread_start(hog_by_hand, NULL);
    for (unsigned i = 0; i < test_effort(30); i++) {
        vm_sleep(MS(8));
        vm_headway_stop();
        vm_headway_start(HW_FAIR, MS(2), HW_SIGNAL);
    }
    check_everybody_moves(MS(2000));
    end_everybody();
    check_given_back();
}

/* Who left its block while Headway was stopped computes by nobody's word then. */
TEST(what_was_said_before_a_stop_is_void_with_its_block)
{
    vm_headway_start(HW_FAIR, MS(2), HW_SIGNAL);
    vm_set_class(HW_CLASS_BATCH);
    CHECK(atomic_load(&current->record)->says_batch);
    vm_headway_stop();
    vm_set_class(HW_CLASS_MEASURED);
    vm_headway_start(HW_FAIR, MS(2), HW_SIGNAL);
    CHECK(!atomic_load(&current->record)->says_batch);
    vm_headway_stop();
    vm_set_class(HW_CLASS_BATCH);
    vm_headway_start(HW_FAIR, MS(2), HW_SIGNAL);
    CHECK(atomic_load(&current->record)->says_batch);
    vm_set_class(HW_CLASS_MEASURED);
    vm_headway_stop();
}

static struct vm_thread *
parked_thread(void)
{
    for (int i = 1; i < VM_THREADS; i++) {
        struct hw_thread *record = vm.threads[i].used ? atomic_load(&vm.threads[i].record) : NULL;
        pthread_mutex_lock(&runtime.lock);
        bool parked = record && record->parked;
        pthread_mutex_unlock(&runtime.lock);
        if (parked) return &vm.threads[i];
    }
    return NULL;
}

/* A start that follows a stop before those who are parked had time to look: to the scheduler they are suspended now. */
TEST(a_parked_thread_is_not_forgotten_by_a_start)
{
    vm_headway_start(HW_FAIR, MS(20), HW_SIGNAL);
    for (int i = 0; i < 3; i++) vm_thread_start(hog_by_hand, NULL);
    vm_sleep(MS(50));
    for (unsigned i = 0; i < 10; i++) {
        vm_sleep(MS(15));
        struct vm_thread *thread = parked_thread();
        if (thread) hw_runtime_revive(&runtime, atomic_load(&thread->record), HW_SUSPENDED);
    }
    check_everybody_moves(MS(2000));
    end_everybody();
    vm_headway_stop();
}

static void
by_hand_in_pieces(void *arg)
{
    (void)arg;
    while (!atomic_load(&curtain)) {
        vm_sleep(US(300));
        vm_set_class(HW_CLASS_BATCH);
        vm_compute(MS(3));
        vm_set_class(HW_CLASS_MEASURED);
        atomic_fetch_add(&current->rounds, 1);
    }
}

/* As when the collector finds that the block a thread is in was dropped: whoever it is waits at the gate for nothing then. */
TEST(a_parked_thread_that_is_batch_no_more_is_let_go)
{
    vm_headway_start(HW_FAIR, MS(20), HW_SIGNAL);
    for (int i = 0; i < 4; i++) vm_thread_start(by_hand_in_pieces, NULL);
    for (unsigned freed = 0; freed < test_effort(50);) {
        vm_sleep(MS(1));
        struct vm_thread *thread = parked_thread();
        if (thread == NULL) continue;
        hw_runtime_set_class(&runtime, atomic_load(&thread->record), HW_CLASS_MEASURED);
        freed++;
    }
    end_everybody();
    check_given_back();
}

static atomic_bool loose;

static void
interactive_for_a_while(void *arg)
{
    vm_sleep(US(100));
    vm_set_class(HW_CLASS_INTERACTIVE);
    vm_compute(MS(50));
    vm_set_class(HW_CLASS_MEASURED);
    atomic_store(&loose, true);
    hog(arg);
}

TEST(who_was_interactive_by_hand_gives_way_as_soon_as_it_is_not)
{
    atomic_store(&vm.slice_ns, MS(4000)); /* what it would wait for otherwise */
    vm_headway_start(HW_FAIR, MS(100), HW_SIGNAL);
    atomic_store(&loose, false);
    struct vm_thread *other = vm_thread_start(interactive_for_a_while, NULL);
    do {
        vm_sleep(MS(5)); /* ... and waits for the other, once that one has begun */
    } while (!atomic_load(&loose));
    unsigned long long rounds = atomic_load(&other->rounds); /* which are 200 us at the least */
    atomic_store(&vm.slice_ns, MS(20));
    end_everybody();
    check_given_back();
    CHECK(rounds < MS(1000) / US(200), "%llu rounds", rounds);
}

RUNTIME_TESTS({ "by_hand", who_is_batch_by_hand_survives_stops_and_starts },
              { "stopped", what_was_said_before_a_stop_is_void_with_its_block },
              { "parked_start", a_parked_thread_is_not_forgotten_by_a_start },
              { "parked_class", a_parked_thread_that_is_batch_no_more_is_let_go },
              { "loose", who_was_interactive_by_hand_gives_way_as_soon_as_it_is_not })
