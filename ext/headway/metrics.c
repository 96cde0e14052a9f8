/* Headway::Native.metrics: what the process's account says, in the buckets of a monitoring system. */
#include "binding.h"
#include "hash.h"

struct cumulative {
    uint64_t count, sum_ns, counts[HW_BOUNDS_MOST];
};

long
hw_read_bounds(VALUE array, uint64_t *bounds_ns)
{
    Check_Type(array, T_ARRAY);
    long bounds = RARRAY_LEN(array);
    if (bounds > HW_BOUNDS_MOST) rb_raise(rb_eArgError, "%ld bounds: at most %d", bounds, HW_BOUNDS_MOST);
    for (long i = 0; i < bounds; i++) bounds_ns[i] = NUM2ULL(rb_ary_entry(array, i));
    return bounds;
}

VALUE
hw_distribution(const uint64_t *counts, long bounds, uint64_t sum_ns, uint64_t count)
{
    VALUE array = rb_ary_new_capa(bounds);
    for (long i = 0; i < bounds; i++) rb_ary_push(array, ULL2NUM(counts[i]));
    return rb_ary_new_from_args(3, array, hw_seconds(sum_ns), ULL2NUM(count));
}

static struct cumulative
copy_histogram(const struct hw_histogram *histogram, uint64_t sum_ns, const uint64_t *bounds_ns, long bounds)
{
    struct cumulative copy = { .count = histogram->count, .sum_ns = sum_ns };
    hw_histogram_cumulative(histogram, bounds_ns, (size_t)bounds, copy.counts);
    return copy;
}

/* Native.metrics(ascending bounds, ns) -> { wait: [[values up to each bound], sum, count], hold: the same, preemptions:,
 * threads: { state => count } }. What has not ended yet is not in it, so that everything but threads only ever grows. Numbers are
 * copied out under the runtime's lock, objects made after. */
static VALUE
metrics(VALUE self, VALUE bounds_array)
{
    uint64_t bounds_ns[HW_BOUNDS_MOST];
    long bounds = hw_read_bounds(bounds_array, bounds_ns);

    struct hw_scheduler *scheduler = &hw_runtime.scheduler;
    unsigned states[HW_STATE_COUNT] = { 0 };
    pthread_mutex_lock(&hw_runtime.lock);
    const struct hw_account *account = &scheduler->account;
    struct cumulative wait = copy_histogram(&account->wait, account->time_ns[HW_READY], bounds_ns, bounds);
    struct cumulative hold = copy_histogram(&account->hold, account->time_ns[HW_RUNNING], bounds_ns, bounds);
    uint64_t preempted = account->preempted;
    for (struct hw_thread *thread = scheduler->threads; thread; thread = thread->next) states[thread->state]++;
    pthread_mutex_unlock(&hw_runtime.lock);

    VALUE hash = rb_hash_new(), threads = rb_hash_new();
    hw_set(hash, "wait", hw_distribution(wait.counts, bounds, wait.sum_ns, wait.count));
    hw_set(hash, "hold", hw_distribution(hold.counts, bounds, hold.sum_ns, hold.count));
    hw_set_number(hash, "preemptions", preempted);
#define EACH(name, label) hw_set(threads, label, UINT2NUM(states[HW_##name]));
    HW_STATES(EACH)
#undef EACH
    hw_set(hash, "threads", threads);
    return hash;
}

void
hw_metrics_init(VALUE native)
{
    rb_define_singleton_method(native, "metrics", metrics, 1);
}
