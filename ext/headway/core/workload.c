#include "workload.h"

#include "room.h"
#include "workload_tracks.h"

#include <stdlib.h>
#include <string.h>

void
hw_workload_init(struct hw_workload *workload)
{
    memset(workload, 0, sizeof(*workload));
}

void
hw_workload_free(struct hw_workload *w)
{
    for (uint32_t i = 0; i < w->class_count; i++) hw_durations_free(&w->classes[i].latency);
    hw_durations_free(&w->latency);
    hw_durations_free(&w->handover);
    free(w->steps);
    free(w->requests);
    free(w->tracks);
    free(w->classes);
    free(w->processes);
    hw_workload_init(w);
}

/* -- building ------------------------------------------------------------------------------------------------------------ */

static uint32_t
add_class(struct hw_workload *w, const char *name, size_t length, bool of_threads)
{
    if (!hw_room(&w->classes, w->class_count, &w->class_capacity, UINT32_MAX, sizeof(*w->classes))) return UINT32_MAX;
    struct hw_request_class *class = &w->classes[w->class_count];
    memset(class, 0, sizeof(*class));
    memcpy(class->name, name, length);
    class->name_length = length;
    class->of_threads = of_threads;
    return w->class_count++;
}

static uint32_t
find_class(struct hw_workload *w, const char *name, size_t length, bool of_threads)
{
    if (length > HW_CLASS_NAME_LONGEST) length = HW_CLASS_NAME_LONGEST;
    uint32_t alike = 0, last = 0;
    for (uint32_t i = 0; i < w->class_count; i++) {
        const struct hw_request_class *class = &w->classes[i];
        if (class->of_threads != of_threads) continue;
        if (class->name_length == length && memcmp(class->name, name, length) == 0) return i;
        alike++;
        last = i;
    }
    if (alike == HW_CLASSES_MOST) return last;
    if (alike == HW_CLASSES_MOST - 1) return add_class(w, "(others)", 8, of_threads);
    return add_class(w, name, length, of_threads);
}

uint32_t
hw_workload_class(struct hw_workload *w, const char *name, size_t length)
{
    return find_class(w, name, length, false);
}

uint32_t
hw_workload_thread_class(struct hw_workload *w, const char *name, size_t length)
{
    return find_class(w, name, length, true);
}

uint32_t
hw_workload_request(struct hw_workload *w, uint32_t class)
{
    if (!hw_room(&w->requests, w->request_count, &w->request_capacity, UINT32_MAX, sizeof(*w->requests))) return UINT32_MAX;
    w->requests[w->request_count] = (struct hw_request){ .first_step = w->step_count, .class = class, .track = UINT32_MAX };
    return w->request_count++;
}


bool
hw_workload_step(struct hw_workload *w, enum hw_step_kind kind, uint64_t length_ns, uint32_t load)
{
    struct hw_request *request = &w->requests[w->request_count - 1];
    struct hw_step *last = request->steps ? &w->steps[w->step_count - 1] : NULL;
    if (last && last->kind == HW_STEP_GVL && kind == HW_STEP_GVL) {
        uint64_t both_ns = last->length_ns + length_ns;
        last->length_ns = both_ns > HW_STEP_LONGEST_NS ? HW_STEP_LONGEST_NS : both_ns;
        return true;
    }
    if (length_ns > HW_STEP_LONGEST_NS) length_ns = HW_STEP_LONGEST_NS;
    if (!hw_room(&w->steps, w->step_count, &w->step_capacity, UINT32_MAX, sizeof(*w->steps))) return false;
    w->steps[w->step_count++] = (struct hw_step){ .kind = kind, .load = load > HW_LOADS_MOST ? HW_LOADS_MOST : load,
                                                  .length_ns = length_ns };
    request->steps++;
    return true;
}

/* Reservoir sampling: every one has the same chance to be kept. */
bool
hw_workload_handover(struct hw_workload *w, uint64_t length_ns)
{
    uint64_t place = w->handover.count;
    if (place >= HW_HANDOVERS_KEPT) place = (place * UINT64_C(0x9e3779b97f4a7c15) >> 20) % (place + 1);
    if (place < HW_HANDOVERS_KEPT) w->handovers_ns[place] = length_ns;
    return hw_durations_add(&w->handover, length_ns, 3);
}

/* -- putting in order ---------------------------------------------------------------------------------------------------- */

/* A thread that runs less than this part of its time changes nothing beside requests. */
#define IDLE_PART 1000

static void
forget_idle_tracks(struct hw_workload *w)
{
    for (uint32_t i = 0; i < w->track_count; i++) {
        struct hw_track *track = &w->tracks[i];
        if (track->running_ns > track->lived_ns / IDLE_PART) continue;
        w->forgotten_ns += track->running_ns;
        track->requests = 0;
    }
}

/* Without requests, a process that computes less than this part of what the busiest does only waits, as who forked the others. */
#define WAITING_PART 100

static void
sum_up_processes(struct hw_workload *w)
{
    for (uint32_t i = 0; i < w->request_count; i++) {
        const struct hw_request *request = &w->requests[i];
        for (uint32_t k = 0; k < request->steps; k++) {
            const struct hw_step *step = &w->steps[request->first_step + k];
            if (step->kind != HW_STEP_DELAY) w->processes[w->tracks[request->track].process].computed_ns += step->length_ns;
        }
    }
}

static void
forget_waiting_processes(struct hw_workload *w)
{
    for (uint32_t i = 0; i < w->track_count; i++) {
        struct hw_track *track = &w->tracks[i];
        if (w->processes[track->process].computed_ns >= w->processes[w->typical_process].computed_ns / WAITING_PART) continue;
        w->forgotten_ns += track->running_ns;
        track->requests = 0;
    }
}

static bool
order_requests(struct hw_workload *w, uint32_t count, const uint32_t *goes_into)
{
    struct hw_request *ordered = malloc((size_t)(count ? count : 1) * sizeof(*ordered));
    uint32_t *next = malloc((size_t)(w->track_count + 1) * sizeof(*next)), marked = 0;
    bool whole = ordered && next;
    for (uint32_t i = 0; whole && i < w->track_count; i++) next[i] = w->tracks[i].first_request;
    for (uint32_t i = 0; whole && i < w->request_count; i++) {
        struct hw_request *request = &w->requests[i];
        if (request->track == UINT32_MAX) {
            ordered[marked++] = *request;
            continue;
        }
        request->track = goes_into[request->track];
        if (w->tracks[request->track].requests) ordered[next[request->track]++] = *request;
    }
    free(next);
    if (!whole) {
        free(ordered);
        return false;
    }
    free(w->requests);
    w->requests = ordered;
    w->request_count = w->request_capacity = count;
    return true;
}

static bool
sum_up(struct hw_workload *w)
{
    bool whole = true;
    for (uint32_t i = 0; i < w->request_count; i++) {
        const struct hw_request *request = &w->requests[i];
        struct hw_request_class *class = &w->classes[request->class];
        class->count++;
        class->wait_ns += request->wait_ns;
        class->after_ns += request->after_ns;
        whole = hw_durations_add(&class->latency, request->latency_ns, 3) && whole;
        if (i < w->marked || w->marked == 0) whole = hw_durations_add(&w->latency, request->latency_ns, 3) && whole;
        for (uint32_t k = 0; k < request->steps; k++) {
            const struct hw_step *step = &w->steps[request->first_step + k];
            class->time_ns[step->kind] += step->length_ns;
        }
    }
    return whole;
}

bool
hw_workload_finish(struct hw_workload *w)
{
    w->marked = 0;
    for (uint32_t i = 0; i < w->request_count; i++) w->marked += w->requests[i].track == UINT32_MAX;
    if (w->marked == 0) sum_up_processes(w);
    for (uint32_t i = 0; i < w->process_count; i++) {
        const struct hw_workload_process *process = &w->processes[i], *typical = &w->processes[w->typical_process];
        bool more = w->marked > 0 ? process->requests > typical->requests : process->computed_ns > typical->computed_ns;
        if (more) w->typical_process = i;
    }
    uint32_t *goes_into = hw_workload_spread_tracks(w);
    if (goes_into == NULL) return false;
    if (w->marked > 0) forget_idle_tracks(w);
    else forget_waiting_processes(w);
    uint32_t place = w->marked;
    for (uint32_t i = 0; i < w->track_count; i++) {
        w->tracks[i].first_request = place;
        place += w->tracks[i].requests;
    }
    bool whole = order_requests(w, place, goes_into) && sum_up(w);
    free(goes_into);
    return whole;
}

/* -- delays and load ----------------------------------------------------------------------------------------------------- */

#define PLACES 32
#define DELAYS_LEAST 100
#define CROWD_LEAST 1.5
#define CERTAINTY 3 /* standard errors: what differs less may do so by chance */

struct delays {
    double total_ns[2 * HW_CLASSES_MOST][PLACES]; /* classes of threads stay empty */
    uint64_t count[2 * HW_CLASSES_MOST][PLACES];
    double relative[HW_LOADS_MOST + 1], squares[HW_LOADS_MOST + 1];
    uint64_t at_load[HW_LOADS_MOST + 1];
};

static void
count_delays(const struct hw_workload *w, struct delays *delays, bool relative)
{
    for (uint32_t i = 0; i < w->marked; i++) {
        const struct hw_request *request = &w->requests[i];
        unsigned place = 0;
        for (uint32_t k = 0; k < request->steps && place < PLACES; k++) {
            const struct hw_step *step = &w->steps[request->first_step + k];
            if (step->kind != HW_STEP_DELAY || (k > 0 && step[-1].kind == HW_STEP_CPU)) continue; /* what is left of computing: for want of a core? */
            double mean_ns = delays->total_ns[request->class][place] / (double)delays->count[request->class][place];
            if (!relative) {
                delays->total_ns[request->class][place] += (double)step->length_ns;
                delays->count[request->class][place]++;
            }
            else if (mean_ns > 0) {
                double relative_length = (double)step->length_ns / mean_ns;
                delays->relative[step->load] += relative_length;
                delays->squares[step->load] += relative_length * relative_length;
                delays->at_load[step->load]++;
            }
            place++;
        }
    }
}

static bool
compare_halves(const struct delays *delays, double *ratio, double *crowd_ratio)
{
    uint64_t all = 0, count[2] = { 0 };
    double sum[2] = { 0 }, squares[2] = { 0 }, load[2] = { 0 };
    for (int i = 0; i <= HW_LOADS_MOST; i++) all += delays->at_load[i];
    for (int i = 0; i <= HW_LOADS_MOST; i++) {
        int half = count[0] >= all / 2;
        count[half] += delays->at_load[i];
        sum[half] += delays->relative[i];
        squares[half] += delays->squares[i];
        load[half] += (double)delays->at_load[i] * i;
    }
    if (count[0] < DELAYS_LEAST || count[1] < DELAYS_LEAST) return false;
    double mean[2], squared_error = 0;
    for (int half = 0; half < 2; half++) {
        mean[half] = sum[half] / (double)count[half];
        squared_error += (squares[half] / (double)count[half] - mean[half] * mean[half]) / (double)count[half];
    }
    bool by_chance = (mean[1] - mean[0]) * (mean[1] - mean[0]) < CERTAINTY * CERTAINTY * squared_error;
    *ratio = by_chance ? 1 : mean[1] / mean[0];
    *crowd_ratio = load[1] / (double)count[1] / (load[0] / (double)count[0]);
    return *crowd_ratio >= CROWD_LEAST;
}

bool
hw_workload_delays_by_load(const struct hw_workload *w, double *ratio, double *crowd_ratio)
{
    struct delays *delays = calloc(1, sizeof(*delays));
    *ratio = *crowd_ratio = 1;
    if (!delays) return false;
    count_delays(w, delays, false);
    count_delays(w, delays, true);
    bool tells = compare_halves(delays, ratio, crowd_ratio);
    free(delays);
    return tells;
}
