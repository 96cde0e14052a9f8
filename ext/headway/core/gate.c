#include "gate.h"

#include <stddef.h>

void
hw_gate_push(struct hw_gate *gate, struct hw_thread *thread, uint64_t now)
{
    if (thread->at_gate) return;
    struct hw_gate_queue *queue = &gate->queues[thread->tier];
    thread->at_gate = true;
    thread->gate_tier = thread->tier;
    thread->gate_next = NULL;
    thread->gate_prev = queue->tail;
    if (queue->tail) {
        queue->tail->gate_next = thread;
    }
    else {
        queue->head = thread;
        queue->served_ns = now;
    }
    queue->tail = thread;
    gate->length++;
}

void
hw_gate_push_front(struct hw_gate *gate, struct hw_thread *thread, uint64_t now)
{
    if (thread->at_gate) return;
    struct hw_gate_queue *queue = &gate->queues[thread->tier];
    thread->at_gate = true;
    thread->gate_tier = thread->tier;
    thread->gate_prev = NULL;
    thread->gate_next = queue->head;
    if (queue->head) {
        queue->head->gate_prev = thread;
    }
    else {
        queue->tail = thread;
        queue->served_ns = now;
    }
    queue->head = thread;
    gate->length++;
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

static bool
due_before(const struct hw_thread *thread, const struct hw_thread *other, uint64_t now)
{
    return thread->due_ns && now >= thread->due_ns && (other->due_ns == 0 || thread->due_ns < other->due_ns);
}

struct hw_thread *
hw_gate_pop(struct hw_gate *gate, uint64_t patience_ns, uint64_t now)
{
    uint8_t lowest = hw_gate_tier(gate);
    if (lowest == HW_TIERS) return NULL;
    struct hw_gate_queue *chosen = &gate->queues[lowest];
    for (int tier = lowest + 1; tier < HW_TIERS; tier++) {
        struct hw_gate_queue *queue = &gate->queues[tier];
        bool overdue = queue->head && now >= queue->served_ns + patience_ns;
        if (overdue && queue->served_ns < chosen->served_ns) chosen = queue;
    }
    for (int tier = lowest; tier < HW_TIERS; tier++) {
        struct hw_gate_queue *queue = &gate->queues[tier];
        if (queue->head && due_before(queue->head, chosen->head, now)) chosen = queue;
    }
    chosen->served_ns = now;
    struct hw_thread *thread = chosen->head;
    hw_gate_remove(gate, thread);
    return thread;
}
