#include "studies/sweep/sweep_order.h"

#include <string.h>

#include "base/threads.h"
#include "base/memory.h"
#include "sim/version.h"

/* Rows that wait for one before them take memory. */
#define HELD_BYTES_MAX ((uint64_t)1 << 30)

typedef struct place {
    bool is_back;
    frag_sweep_rows rows;
} place;

struct frag_sweep_order {
    frag_sweep_job *job;
    frag_sweep_file *file;
    frag_lock *lock; /* told when there is room */
    /* handing out */
    frag_sweep_unit next; /* its number is the count of those handed out */
    bool is_held;         /* the recording of next is */
    bool is_over;
    frag_error error;
    /* writing */
    place *places; /* of unit number i: i % window */
    size_t window;
    uint64_t written;    /* units before this number are */
    uint64_t back;       /* units that were given back */
    uint64_t held_bytes; /* of rows that are back and not written */
    bool is_broken;      /* nothing more may be written */
    frag_sweep_totals totals;
};

static void stop(frag_sweep_order *order, const frag_error *error)
{
    if (order->error.code == FRAG_E_NONE)
        order->error = *error;
    order->is_over = order->is_broken = true;
    frag_lock_tell(order->lock);
}

/* How many of the unit's rows are in the file; false: the file is of another experiment. */
static bool look_up(frag_sweep_order *order, frag_sweep_unit *unit, frag_error *error)
{
    const frag_experiment *experiment = &order->job->experiment;
    const frag_recording *recording = &order->job->recordings[unit->file].recording;
    const frag_trace *trace = &recording->traces[unit->trace];
    frag_text name = {0};
    bool ok = true;
    bool has = true;
    unit->first_capacity = 0;
    while (ok && has && unit->first_capacity < experiment->capacity_count) {
        frag_sweep_row_name(&name, frag_commit(), recording->name, trace->digest, trace->device,
                            experiment->policies[unit->policy].text,
                            experiment->capacities[unit->first_capacity]);
        ok = frag_sweep_file_has(order->file, name.bytes, &has, error);
        unit->first_capacity += ok && has ? 1 : 0;
    }
    frag_progress_skip(order->job->progress, unit->first_capacity);
    frag_text_destroy(&name);
    return ok;
}

static void next_file(frag_sweep_order *order)
{
    frag_sweep_let_go(order->job, order->next.file);
    order->is_held = false;
    order->next.file++;
    order->next.trace = 0;
    order->next.policy = 0;
}

/* The next unit that is not there whole. false: there is none, or an error. */
static bool find_unit(frag_sweep_order *order, frag_sweep_unit *unit, frag_error *error)
{
    const frag_experiment *experiment = &order->job->experiment;
    frag_sweep_unit *next = &order->next;
    while (next->file < experiment->trace_count) {
        const frag_sweep_recording *of = &order->job->recordings[next->file];
        if (!order->is_held && frag_sweep_hold(order->job, next->file, error) == NULL)
            return false;
        order->is_held = true;
        if (next->trace == of->recording.trace_count) {
            next_file(order);
            continue;
        }
        if (next->policy == experiment->policy_count) {
            next->policy = 0;
            next->trace++;
            continue;
        }
        *unit = *next;
        next->policy++;
        if (!look_up(order, unit, error))
            return false;
        if (unit->first_capacity < experiment->capacity_count)
            return true;
    }
    return false;
}

static void hand_out(frag_sweep_order *order, frag_sweep_unit *unit)
{
    frag_error error = {0};
    if (!find_unit(order, unit, &error)) {
        order->is_over = true;
        if (error.code != FRAG_E_NONE)
            stop(order, &error);
        frag_lock_tell(order->lock);
        return;
    }
    order->next.number++;
    /* Held by the order, so it is there. */
    frag_sweep_hold(order->job, unit->file, &error);
}

frag_sweep_order *frag_sweep_order_create(frag_sweep_job *job, frag_sweep_file *file, size_t window)
{
    frag_sweep_order *order = frag_alloc(1, sizeof *order);
    order->job = job;
    order->file = file;
    order->window = window;
    order->places = frag_alloc(window, sizeof *order->places);
    order->lock = frag_lock_create();
    return order;
}

/* While units are under way, one of them is the next to be written. */
static bool is_full(const frag_sweep_order *order)
{
    uint64_t ahead = order->next.number - order->written;
    return ahead >= order->window || (ahead > 0 && order->held_bytes > HELD_BYTES_MAX);
}

frag_sweep_take frag_sweep_order_take(frag_sweep_order *order, bool may_wait, frag_sweep_unit *unit)
{
    frag_sweep_take taken = FRAG_SWEEP_LATER;
    frag_lock_take(order->lock);
    while (may_wait && !order->is_over && is_full(order))
        frag_lock_wait(order->lock);
    if (frag_is_cancelled(order->job->context))
        order->is_over = true;
    if (!order->is_over && !is_full(order)) {
        hand_out(order, unit);
        taken = FRAG_SWEEP_TAKEN;
    }
    if (order->is_over)
        taken = FRAG_SWEEP_OVER;
    frag_lock_give(order->lock);
    return taken;
}

static void write_rows(frag_sweep_order *order, frag_sweep_rows *rows)
{
    frag_error error = {0};
    if (order->file->stream == stdout)
        frag_progress_pause(order->job->progress);
    if (!frag_sweep_file_write(order->file, rows->text.bytes, rows->text.length, &error))
        stop(order, &error);
    order->totals.rows += rows->count;
    order->totals.replayed += rows->replayed;
    order->is_broken = order->is_broken || !rows->is_whole;
}

void frag_sweep_order_give(frag_sweep_order *order, uint64_t number, frag_sweep_rows *rows)
{
    frag_lock_take(order->lock);
    place *at = &order->places[number % order->window];
    FRAG_ASSERT(number >= order->written && number < order->next.number && !at->is_back);
    *at = (place){.is_back = true, .rows = *rows};
    order->back++;
    order->held_bytes += rows->text.length;
    while ((at = &order->places[order->written % order->window])->is_back) {
        if (!order->is_broken)
            write_rows(order, &at->rows);
        order->held_bytes -= at->rows.text.length;
        frag_text_destroy(&at->rows.text);
        at->is_back = false;
        order->written++;
    }
    frag_lock_tell(order->lock);
    frag_lock_give(order->lock);
}

void frag_sweep_order_fail(frag_sweep_order *order, const frag_error *error)
{
    frag_lock_take(order->lock);
    stop(order, error);
    frag_lock_give(order->lock);
}

bool frag_sweep_order_is_done(frag_sweep_order *order)
{
    frag_lock_take(order->lock);
    bool is_done = order->is_over && (order->is_broken || frag_is_cancelled(order->job->context) ||
                                      order->back == order->next.number);
    frag_lock_give(order->lock);
    return is_done;
}

bool frag_sweep_order_finish(frag_sweep_order *order, frag_sweep_totals *totals, frag_error *error)
{
    bool ok = order->error.code == FRAG_E_NONE;
    if (!ok)
        *error = order->error;
    else if (!frag_is_cancelled(order->job->context))
        ok = frag_sweep_file_finish(order->file, error);
    if (order->is_held)
        frag_sweep_let_go(order->job, order->next.file);
    for (size_t i = 0; i < order->window; i++)
        frag_text_destroy(&order->places[i].rows.text);
    *totals = order->totals;
    frag_lock_destroy(order->lock);
    frag_free(order->places);
    frag_free(order);
    return ok;
}
