/* Threads that began or ended while the trace was recorded. What a track does goes on as long as is simulated: a thread that lived for a
 * moment would be there all the time, and a hundred of them, one after the other, all at once. So those of a name that followed one
 * another are one track, and where nobody was there in between it pauses; beside requests also before the first and after the last. Without
 * requests they are all there is, and each does what it does without end. */
#include "workload_tracks.h"

#include <stdlib.h>

#define NONE UINT32_MAX

static void
lengthen_pause(struct hw_workload *w, const struct hw_track *track, uint64_t by_ns)
{
    struct hw_step *step = &w->steps[track->pause - 1];
    uint64_t length_ns = step->length_ns + by_ns;
    step->length_ns = length_ns < HW_STEP_LONGEST_NS ? length_ns : HW_STEP_LONGEST_NS;
    w->requests[track->paused].latency_ns += by_ns;
}

static void
append(struct hw_workload *w, struct hw_track *track, struct hw_track *later)
{
    lengthen_pause(w, track, later->start_ns - track->end_ns);
    track->requests += later->requests;
    track->running_ns += later->running_ns;
    track->end_ns = later->end_ns;
    track->lived_ns = later->end_ns - track->start_ns;
    track->pause = later->pause;
    track->paused = later->paused;
    later->requests = 0;
}

static bool
precedes(const struct hw_track *track, const struct hw_track *later)
{
    return track->process == later->process && track->pause != 0 && track->end_ns <= later->start_ns;
}

static void
spread(struct hw_workload *w, struct hw_track *track)
{
    if (track->pause == 0) return;
    const struct hw_workload_process *process = &w->processes[track->process];
    uint64_t over_ns = process->first_event_ns + process->wall_ns;
    lengthen_pause(w, track, over_ns - track->end_ns + (track->start_ns - process->beside_ns));
    track->lived_ns = over_ns - process->beside_ns;
}

/* `last` and `before` are lists of the tracks that are left, by class. */
static void
join(struct hw_workload *w, uint32_t *goes_into, uint32_t *last, uint32_t *before)
{
    for (uint32_t i = 0; i < w->track_count; i++) {
        struct hw_track *track = &w->tracks[i];
        uint32_t one = last[track->class];
        while (one != NONE && (track->requests == 0 || !precedes(&w->tracks[one], track))) one = before[one];
        if (one != NONE) {
            append(w, &w->tracks[one], track);
            goes_into[i] = one;
        }
        else if (track->requests > 0) {
            before[i] = last[track->class];
            last[track->class] = i;
        }
    }
}

uint32_t *
hw_workload_spread_tracks(struct hw_workload *w)
{
    uint32_t *goes_into = malloc((w->track_count + (size_t)1) * sizeof(*goes_into));
    uint32_t *last = malloc((w->class_count + (size_t)1) * sizeof(*last));
    uint32_t *before = malloc((w->track_count + (size_t)1) * sizeof(*before));
    bool whole = goes_into && last && before;
    for (uint32_t i = 0; whole && i < w->track_count; i++) goes_into[i] = i;
    for (uint32_t i = 0; whole && i < w->class_count; i++) last[i] = NONE;
    if (whole) join(w, goes_into, last, before);
    for (uint32_t i = 0; whole && w->marked > 0 && i < w->track_count; i++) {
        if (w->tracks[i].requests > 0) spread(w, &w->tracks[i]);
    }
    free(last);
    free(before);
    if (whole) return goes_into;
    free(goes_into);
    return NULL;
}
