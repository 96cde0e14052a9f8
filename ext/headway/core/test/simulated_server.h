/* A server in the simulated VM: requests come at random; a reactor, a thread of its own as in Puma, reads what has come and puts it in
 * a line; the threads of a pool serve them, computing and waiting by turns. In the open loop they come whatever the server does; in the
 * closed one each of some connections sends its next request a while after the answer.
 *
 * Which requests come when, and what each computes, is the same whatever the policy. */
#ifndef HW_TEST_SIMULATED_SERVER_H
#define HW_TEST_SIMULATED_SERVER_H

#include "simulated_vm.h"

#define LINE_MOST 65536
#define LIGHT_WAIT_NS MS(4)   /* between two pieces of a light request */
#define THINK_NS US(300)      /* from an answer to the next request */
#define NEXT_NS US(40)        /* from one request to the next, with the GVL free */
#define READ_NS US(20)        /* what the reactor computes, and more for each request */
#define READ_EACH_NS US(30)
#define PARSE_NS US(130)      /* what a request of the closed loop costs besides its work */

struct serving {
    unsigned threads;
    double load;              /* open loop: share of what the GVL has time for */
    unsigned connections;     /* closed loop; 0: open */
    double heavy_share;
    uint64_t heavy_ns;
    unsigned light_pieces;
    uint64_t light_ns;        /* of each piece */
    bool exponential;         /* light pieces, not all alike */
    bool heavy_say_so;        /* with Headway.batch { } */
};

struct request {
    uint64_t came_ns, seed;
};

static struct server {
    struct serving set;
    struct request line[LINE_MOST];
    uint64_t first, behind;   /* of the line: taken so far, put there so far */
    struct worker {
        struct request request;
        unsigned pieces;      /* left */
        bool heavy, idle;
    } workers[MOST];
    struct actor *reactor;
    struct request sent[LINE_MOST], read[LINE_MOST];
    unsigned sent_count, read_count, thinking;
    uint64_t gap_ns, came_seed, kind_seed;
    struct hw_histogram light, heavy;
} server;

/* Marsaglia's xorshift: test_random is drawn from by the scheduler's side, too, by each policy in another order. */
static inline double
uniform(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return ((double)(*seed >> 12) + 0.5) / 4503599627370496.0;
}

static inline uint64_t
exponential(uint64_t *seed, double mean_ns)
{
    return (uint64_t)(mean_ns * -log(uniform(seed))) + 1;
}

static inline struct request
new_request(void)
{
    uniform(&server.kind_seed);
    return (struct request){ world.now, server.kind_seed * UINT64_C(0x9e3779b97f4a7c15) | 1 };
}

static inline struct worker *
worker_of(const struct actor *actor)
{
    return &server.workers[actor - vm.actors];
}

/* -- the pool ----------------------------------------------------------------------------------------------------------- */

static inline void
take_request(struct actor *actor, uint64_t delay_ns)
{
    struct worker *worker = worker_of(actor);
    worker->idle = server.first == server.behind;
    actor->at_ns = worker->idle ? HW_NEVER : world.now + delay_ns;
    if (worker->idle) return;
    worker->request = server.line[server.first++ % LINE_MOST];
    for (int i = 0; i < 3; i++) uniform(&worker->request.seed); /* seeds are alike */
    worker->heavy = uniform(&worker->request.seed) < server.set.heavy_share;
    worker->pieces = worker->heavy ? 1 : server.set.light_pieces;
}

static inline void
line_up(struct request request)
{
    CHECK(server.behind - server.first < LINE_MOST, "the line is too long");
    server.line[server.behind++ % LINE_MOST] = request;
    for (unsigned i = 0; i < vm.count; i++) {
        if (!server.workers[i].idle) continue;
        take_request(&vm.actors[i], WAKE_NS);
        return;
    }
}

static inline void
begins_a_piece(struct actor *actor)
{
    struct worker *worker = worker_of(actor);
    const struct serving *set = &server.set;
    bool varies = set->exponential && !worker->heavy;
    uint64_t length_ns = worker->heavy ? set->heavy_ns : set->light_ns;
    if (set->heavy_say_so) {
        enum hw_class class = worker->heavy ? HW_CLASS_BATCH : HW_CLASS_MEASURED;
        hw_scheduler_set_class(&world.scheduler, actor->thread, class, world.now);
    }
    actor->left_ns = (varies ? exponential(&worker->request.seed, (double)length_ns) : length_ns) + (set->connections ? PARSE_NS : 0);
}

static inline void sends_later(void);

static inline void
ends_a_piece(struct actor *actor)
{
    struct worker *worker = worker_of(actor);
    if (--worker->pieces > 0) {
        actor->at_ns = world.now + LIGHT_WAIT_NS;
        return;
    }
    hw_histogram_record(worker->heavy ? &server.heavy : &server.light, world.now - worker->request.came_ns);
    if (server.set.connections) sends_later();
    take_request(actor, NEXT_NS);
}

/* -- where requests come from ------------------------------------------------------------------------------------------- */

static inline void
comes(void)
{
    CHECK(server.sent_count < LINE_MOST, "too many are to be read");
    server.sent[server.sent_count++] = new_request();
    if (server.reactor->where == SLEEPS && server.reactor->at_ns == HW_NEVER) server.reactor->at_ns = world.now + WAKE_NS;
}

static inline void
comes_at_random(void)
{
    vm.outside_ns = world.now + exponential(&server.came_seed, (double)server.gap_ns);
    comes();
}

/* Exponential times have no memory: the next of all that think may be drawn anew whenever their number changes. */
static inline void
thinks(void)
{
    vm.outside_ns = server.thinking ? world.now + exponential(&server.came_seed, (double)THINK_NS / server.thinking) : HW_NEVER;
}

static inline void
sends_later(void)
{
    server.thinking++;
    thinks();
}

static inline void
sends(void)
{
    server.thinking--;
    comes();
    thinks();
}

static inline void
begins_to_read(struct actor *actor)
{
    server.read_count = server.sent_count;
    memcpy(server.read, server.sent, server.read_count * sizeof(*server.read));
    server.sent_count = 0;
    actor->left_ns = READ_NS + READ_EACH_NS * server.read_count;
}

static inline void
has_read(struct actor *actor)
{
    for (unsigned i = 0; i < server.read_count; i++) line_up(server.read[i]);
    actor->at_ns = server.sent_count ? world.now + SWITCH_NS : HW_NEVER;
}

/* -- all of it ---------------------------------------------------------------------------------------------------------- */

static inline void
start_server(enum hw_policy_kind kind, const struct serving *set)
{
    memset(&server, 0, sizeof(server));
    server.set = *set;
    server.came_seed = UINT64_C(88172645463325252);
    server.kind_seed = UINT64_C(4101842887655102017);
    CHECK(hw_histogram_init(&server.light, 3) && hw_histogram_init(&server.heavy, 3));
    start_vm(kind);
    for (unsigned i = 0; i < set->threads; i++) {
        struct actor *actor = enter_vm(0, 0, 0);
        actor->begins = begins_a_piece;
        actor->ends = ends_a_piece;
        actor->at_ns = HW_NEVER;
        worker_of(actor)->idle = true;
    }
    server.reactor = enter_vm(0, 0, 0);
    server.reactor->begins = begins_to_read;
    server.reactor->ends = has_read;
    server.reactor->at_ns = HW_NEVER;
    if (set->connections == 0) {
        double light_ns = (double)set->light_ns * set->light_pieces;
        server.gap_ns = (uint64_t)((set->heavy_share * (double)set->heavy_ns + (1 - set->heavy_share) * light_ns) / set->load);
        vm.outside = comes_at_random;
        vm.outside_ns = world.now + MS(5);
        return;
    }
    server.thinking = set->connections;
    vm.outside = sends;
    thinks();
}

/* What requests take goes into server.light and server.heavy, which are to be freed. */
static inline void
simulate_server(enum hw_policy_kind kind, const struct serving *set, uint64_t length_ns)
{
    start_server(kind, set);
    simulate(length_ns);
    world_end();
}

#endif
