#include "gate.h"

#include <stddef.h>

static struct hw_gate_queue *
enter(struct hw_gate *gate, struct hw_thread *thread, uint64_t now)
{
    struct hw_gate_queue *queue = &gate->queues[thread->tier];
    if (queue->head == NULL) queue->served_ns = now;
    thread->at_gate = true;
    thread->gate_tier = thread->tier;
    gate->length++;
    return queue;
}

void
hw_gate_push(struct hw_gate *gate, struct hw_thread *thread, uint64_t now)
{
    if (thread->at_gate) return;
    struct hw_gate_queue *queue = enter(gate, thread, now);
    thread->gate_next = NULL;
    thread->gate_prev = queue->tail;
    if (queue->tail) queue->tail->gate_next = thread;
    else queue->head = thread;
    queue->tail = thread;
}

void
hw_gate_push_front(struct hw_gate *gate, struct hw_thread *thread, uint64_t now)
{
    if (thread->at_gate) return;
    struct hw_gate_queue *queue = enter(gate, thread, now);
    thread->gate_prev = NULL;
    thread->gate_next = queue->head;
    if (queue->head) queue->head->gate_prev = thread;
    else queue->tail = thread;
    queue->head = thread;
}

void
hw_gate_remove(struct hw_gate *gate, struct hw_thread *thread)
{
    if (!thread->at_gate) return;
    struct hw_gate_queue *queue = &gate->queues[thread->gate_tier];
    thread->at_gate = false;
    if (thread->gate_prev) thread->gate_prev->gate_next = thread->gate_next;
    else queue->head = thread->gate_next;
    if (thread->gate_next) thread->gate_next->gate_prev = thread->gate_prev;
    else queue->tail = thread->gate_prev;
    thread->gate_next = thread->gate_prev = NULL;
    gate->length--;
}

uint8_t
hw_gate_tier(const struct hw_gate *gate)
{
    uint8_t tier = 0;
    while (tier < HW_TIERS && gate->queues[tier].head == NULL) tier++;
    return tier;
}

/* From when on the queue's first goes before lower tiers. */
static uint64_t
overdue_ns(const struct hw_gate_queue *queue, uint64_t patience_ns)
{
    return queue->head ? hw_earlier_ns(queue->served_ns + patience_ns, queue->head->due_ns) : HW_NEVER;
}

struct hw_thread *
hw_gate_pop(struct hw_gate *gate, uint64_t patience_ns, uint64_t now)
{
    uint8_t lowest = hw_gate_tier(gate);
    if (lowest == HW_TIERS) return NULL;
    struct hw_gate_queue *chosen = &gate->queues[lowest];
    uint64_t first_ns = overdue_ns(chosen, patience_ns);
    for (int tier = lowest + 1; tier < HW_TIERS; tier++) {
        uint64_t at_ns = overdue_ns(&gate->queues[tier], patience_ns);
        if (at_ns > now || at_ns >= first_ns) continue;
        chosen = &gate->queues[tier];
        first_ns = at_ns;
    }
    chosen->served_ns = now;
    struct hw_thread *thread = chosen->head;
    hw_gate_remove(gate, thread);
    return thread;
}
