#include "gate.h"

#include <stddef.h>

void
hw_gate_push(struct hw_gate *gate, struct hw_thread *thread)
{
    if (thread->at_gate) return;
    thread->at_gate = true;
    thread->gate_next = NULL;
    thread->gate_prev = gate->tail;
    if (gate->tail) gate->tail->gate_next = thread;
    else gate->head = thread;
    gate->tail = thread;
    gate->length++;
}

void
hw_gate_remove(struct hw_gate *gate, struct hw_thread *thread)
{
    if (!thread->at_gate) return;
    thread->at_gate = false;
    if (thread->gate_prev) thread->gate_prev->gate_next = thread->gate_next;
    else gate->head = thread->gate_next;
    if (thread->gate_next) thread->gate_next->gate_prev = thread->gate_prev;
    else gate->tail = thread->gate_prev;
    thread->gate_next = thread->gate_prev = NULL;
    gate->length--;
}

struct hw_thread *
hw_gate_pop(struct hw_gate *gate)
{
    struct hw_thread *thread = gate->head;
    if (thread) hw_gate_remove(gate, thread);
    return thread;
}
