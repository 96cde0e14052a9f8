/* The threads in the statistics: a row for each living one, and for those that ended under one name. Each is copied out under the
 * runtime's lock by itself. */
#include "control.h"
#include "names.h"

#include <stdlib.h>

struct listed {
    const struct hw_thread *thread;
    uint32_t number;
};

struct row {
    struct hw_naming naming;
    struct hw_figures figures;
    enum hw_state state;
    bool batch;
    uint64_t quantum_ns;
};

/* False: the thread has ended since the list was made; its record may be another's by now. */
static bool
copy_row(struct hw_runtime *rt, const struct listed *listed, struct row *row)
{
    const struct hw_thread *thread = listed->thread;
    pthread_mutex_lock(&rt->lock);
    bool lives = thread->link && thread->number == listed->number;
    if (lives) {
        uint64_t now = hw_now_ns();
        struct hw_account account = hw_account_at(thread, now);
        bool batch = hw_scheduler_is_batch(&rt->scheduler, thread, now);
        *row = (struct row){ hw_naming_of(thread), hw_figures_of(&account), thread->state, batch, thread->quantum_ns };
    }
    pthread_mutex_unlock(&rt->lock);
    return lives;
}

static void
begin_row(struct hw_text *answer)
{
    if (answer->length && answer->bytes[answer->length - 1] == '}') hw_text_add(answer, ",");
    hw_text_add(answer, "{\"number\":");
}

static void
add_living(struct hw_control *control, struct hw_text *answer, const struct listed *listed)
{
    struct row row;
    char name[sizeof(row.naming.told)];
    if (!copy_row(control->runtime, listed, &row)) return;
    hw_teller_name(&control->teller, &row.naming, name, sizeof(name));
    begin_row(answer);
    hw_text_number(answer, listed->number);
    hw_text_key(answer, "name");
    hw_text_cstring(answer, name);
    hw_text_add(answer, ",\"alive\":true,\"count\":1,\"state\":");
    hw_text_cstring(answer, hw_state_labels[row.state]);
    hw_text_add(answer, row.batch ? ",\"batch\":true,\"quantum_ms\":" : ",\"batch\":false,\"quantum_ms\":");
    if (row.quantum_ns) hw_text_fraction(answer, row.quantum_ns, 6);
    else hw_text_add(answer, "null");
    hw_answer_figures(answer, &row.figures);
    hw_text_add(answer, "}");
}

static void
add_ended(struct hw_runtime *rt, struct hw_text *answer, const struct hw_ended *ended)
{
    pthread_mutex_lock(&rt->lock);
    struct hw_figures figures = hw_figures_of(&ended->account);
    uint64_t threads = ended->threads;
    pthread_mutex_unlock(&rt->lock);
    if (threads == 0) return;
    begin_row(answer);
    hw_text_add(answer, "null,\"name\":");
    hw_text_cstring(answer, ended->name);
    hw_text_add(answer, ",\"alive\":false,\"count\":");
    hw_text_number(answer, threads);
    hw_text_add(answer, ",\"state\":null,\"batch\":null,\"quantum_ms\":null");
    hw_answer_figures(answer, &figures);
    hw_text_add(answer, "}");
}

unsigned
hw_answer_threads(struct hw_control *control, struct hw_text *answer)
{
    struct hw_runtime *rt = control->runtime;
    struct listed *list = malloc(HW_CONTROL_ROWS * sizeof(*list));
    unsigned rows = 0;
    pthread_mutex_lock(&rt->lock);
    const struct hw_ended *ended = rt->ended;
    unsigned most = list ? HW_CONTROL_ROWS : 0, left_out = rt->scheduler.living > most ? rt->scheduler.living - most : 0;
    unsigned skip = left_out;
    for (struct hw_thread *thread = rt->scheduler.threads; thread && rows < most; thread = thread->next) { /* the youngest first */
        if (skip > 0) skip--;
        else list[rows++] = (struct listed){ thread, thread->number };
    }
    pthread_mutex_unlock(&rt->lock);

    hw_text_add(answer, ",\"threads\":[");
    for (unsigned i = rows; i > 0; i--) add_living(control, answer, &list[i - 1]); /* the oldest first, as in Thread.list */
    free(list);
    while (ended) {
        add_ended(rt, answer, ended);
        pthread_mutex_lock(&rt->lock);
        ended = ended->next;
        pthread_mutex_unlock(&rt->lock);
    }
    hw_text_add(answer, "]");
    return left_out;
}
