/* Headway::Native::WorkSums: what all works of a class took together, and how long each waited for the GVL, by the buckets of a
 * monitoring system. Every request ends here, in a server that has none of this in its caches: it is one call that makes no object.
 * All with the GVL, which nobody gives up in here, so that it needs no other lock. */
#include "binding.h"
#include "hash.h"

struct work_sums {
    unsigned long forks; /* hw_forks in its process */
    uint64_t count, time_ns[HW_STATE_COUNT];
    long bounds;
    uint64_t bounds_ns[HW_BOUNDS_MOST], counts[HW_BOUNDS_MOST]; /* each bucket by itself */
};

static const rb_data_type_t sums_type = {
    .wrap_struct_name = "Headway::Native::WorkSums",
    .function = { .dfree = RUBY_TYPED_DEFAULT_FREE },
    .flags = RUBY_TYPED_FREE_IMMEDIATELY | RUBY_TYPED_WB_PROTECTED,
};

static struct work_sums *
sums_of(VALUE self)
{
    return rb_check_typeddata(self, &sums_type);
}

static VALUE
allocate(VALUE class)
{
    struct work_sums *sums;
    return TypedData_Make_Struct(class, struct work_sums, &sums_type, sums);
}

/* WorkSums.new(ascending bounds, ns) */
static VALUE
initialize(VALUE self, VALUE bounds)
{
    struct work_sums *sums = sums_of(self);
    sums->forks = hw_forks;
    sums->bounds = hw_read_bounds(bounds, sums->bounds_ns);
    return self;
}

static void
count(struct work_sums *sums, const uint64_t *time_ns)
{
    for (int state = 0; state < HW_STATE_COUNT; state++) sums->time_ns[state] += time_ns[state];
    sums->count++;
    long bucket = 0; /* most waits are short */
    while (bucket < sums->bounds && time_ns[HW_READY] > sums->bounds_ns[bucket]) bucket++;
    if (bucket < sums->bounds) sums->counts[bucket]++;
}

/* add(Work, sums of what works stood in a queue, where that is known) -> self; nil in a forked child: these are its parent's */
static VALUE
add(VALUE self, VALUE work, VALUE queues)
{
    if (sums_of(self)->forks != hw_forks) return Qnil;
    uint64_t time_ns[HW_STATE_COUNT], queued_ns[HW_STATE_COUNT] = { 0 };
    hw_work_times(work, time_ns);
    count(sums_of(self), time_ns);
    queued_ns[HW_READY] = hw_work_queued_ns(work);
    if (queued_ns[HW_READY] != UINT64_MAX) count(sums_of(queues), queued_ns);
    return self;
}

/* add_seconds(running, ready, suspended) -> self */
static VALUE
add_seconds(VALUE self, VALUE running, VALUE ready, VALUE suspended)
{
    uint64_t time_ns[HW_STATE_COUNT] = { 0 };
    time_ns[HW_RUNNING] = hw_nanoseconds(running);
    time_ns[HW_READY] = hw_nanoseconds(ready);
    time_ns[HW_SUSPENDED] = hw_nanoseconds(suspended);
    count(sums_of(self), time_ns);
    return self;
}

/* -> { wait: [[works that waited up to each bound], sum_s, count], running:, ready:, suspended: seconds }. Of a copy: making objects may
 * let others count. */
static VALUE
to_h(VALUE self)
{
    struct work_sums sums = *sums_of(self);
    for (long bound = 1; bound < sums.bounds; bound++) sums.counts[bound] += sums.counts[bound - 1];
    VALUE hash = rb_hash_new();
    hw_set(hash, "wait", hw_distribution(sums.counts, sums.bounds, sums.time_ns[HW_READY], sums.count));
#define EACH(name, label) hw_set(hash, label, hw_seconds(sums.time_ns[HW_##name]));
    HW_STATES(EACH)
#undef EACH
    return hash;
}

void
hw_work_sums_init(VALUE native)
{
    VALUE class = rb_define_class_under(native, "WorkSums", rb_cObject);
    rb_define_alloc_func(class, allocate);
    rb_define_method(class, "initialize", initialize, 1);
    rb_define_method(class, "add", add, 2);
    rb_define_method(class, "add_seconds", add_seconds, 3);
    rb_define_method(class, "to_h", to_h, 0);
}
