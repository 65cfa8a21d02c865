#include "studies/sweep/sweep_ranks.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "base/threads.h"

/* ---- messages */

typedef enum message_kind {
    HELLO,   /* to 0: threads, digest of the job, host */
    PROBLEM, /* to 0: error */
    UNIT,    /* from 0: unit, digest of its trace */
    ROWS,    /* to 0: unit, count, replayed, is_whole, and behind the message the rows */
    STOP,    /* from 0 */
    BYE,     /* to 0: the answer to STOP, and the last message */
} message_kind;

/* Processes of one build send it to each other as it stands. */
typedef struct message {
    message_kind kind;
    uint32_t threads;
    char digest[33];
    char host[256];
    frag_sweep_unit unit;
    uint64_t count;
    uint64_t replayed;
    bool is_whole;
    frag_error error;
} message;

static void send_message(const frag_ranks *ranks, uint32_t to, const message *what)
{
    ranks->module->send(to, what, sizeof *what);
}

/* Waiting costs no core: the longer nothing came, the longer until the next look. */
static void rest(uint32_t *idle)
{
    struct timespec pause = {.tv_nsec = 20000L << (*idle < 6 ? *idle : 6)};
    nanosleep(&pause, NULL);
    (*idle)++;
}

/* ---- threads that work on what rank 0 hands out itself */

typedef struct own_work {
    frag_sweep_job *job;
    frag_sweep_order *order;
} own_work;

static void work_in_order(void *context, uint64_t index)
{
    own_work *all = context;
    frag_sweep_unit unit;
    (void)index;
    while (frag_sweep_order_take(all->order, true, &unit) == FRAG_SWEEP_TAKEN) {
        frag_sweep_rows rows;
        frag_sweep_unit_run(all->job, &unit, &rows);
        frag_sweep_let_go(all->job, unit.file);
        if (rows.error.code != FRAG_E_NONE)
            frag_sweep_order_fail(all->order, &rows.error);
        frag_sweep_order_give(all->order, unit.number, &rows);
    }
}

static void *work_on_threads(void *context)
{
    own_work *all = context;
    uint32_t threads = frag_context_threads(all->job->context);
    frag_for_each(threads, threads, work_in_order, all);
    return NULL;
}

void frag_sweep_work_alone(frag_sweep_job *job, frag_sweep_order *order)
{
    own_work all = {.job = job, .order = order};
    work_on_threads(&all);
}

/* ---- rank 0 */

typedef struct member {
    bool has_come;
    char host[256];
    char digest[33]; /* of its job; "": it has a problem */
    uint32_t wanted; /* units that it has room for */
} member;

struct frag_sweep_crew {
    const frag_ranks *ranks;
    member *members; /* by rank; that of rank 0 is not used */
    uint32_t come;
    uint32_t gone;
    frag_error error; /* the first that a member reported */
    /* while there is work */
    frag_sweep_job *job;
    frag_sweep_order *order; /* NULL: rows are of no use */
};

frag_sweep_crew *frag_sweep_crew_create(const frag_ranks *ranks)
{
    frag_sweep_crew *crew = frag_alloc(1, sizeof *crew);
    crew->ranks = ranks;
    crew->members = frag_alloc(ranks->facts.count, sizeof *crew->members);
    return crew;
}

static void welcome(frag_sweep_crew *crew, member *who, const message *what)
{
    if (who->has_come)
        return;
    who->has_come = true;
    snprintf(who->host, sizeof who->host, "%s", what->host);
    snprintf(who->digest, sizeof who->digest, "%s", what->digest);
    /* One more than it works on at a time, so that none waits for the next. */
    who->wanted = what->threads + 1;
    crew->come++;
}

static void note_problem(frag_sweep_crew *crew, uint32_t from, const frag_error *problem)
{
    char text[1024];
    if (crew->error.code != FRAG_E_NONE)
        return;
    frag_error_text(problem, text, sizeof text);
    frag_fail(&crew->error, problem->code, "rank %u on %s: %s", from, crew->members[from].host,
              text);
    if (crew->order != NULL)
        frag_sweep_order_fail(crew->order, &crew->error);
}

static void take_rows(frag_sweep_crew *crew, member *from, const message *what, const char *text,
                      size_t length)
{
    frag_sweep_rows rows = {
        .count = what->count, .replayed = what->replayed, .is_whole = what->is_whole};
    from->wanted++;
    if (crew->order == NULL)
        return;
    frag_text_add_bytes(&rows.text, text, length);
    frag_sweep_order_give(crew->order, what->unit.number, &rows);
    frag_progress_add(crew->job->progress, what->count);
}

/* One message, if there is one. */
static bool receive_one(frag_sweep_crew *crew)
{
    uint32_t from = 0;
    size_t length = 0;
    message what;
    if (!crew->ranks->module->poll(&from, &length))
        return false;
    char *bytes = frag_alloc(length, 1);
    crew->ranks->module->receive(from, bytes, length);
    FRAG_ASSERT(length >= sizeof what && from < crew->ranks->facts.count);
    memcpy(&what, bytes, sizeof what);
    member *who = &crew->members[from];
    welcome(crew, who, &what);
    if (what.kind == PROBLEM)
        note_problem(crew, from, &what.error);
    else if (what.kind == ROWS)
        take_rows(crew, who, &what, bytes + sizeof what, length - sizeof what);
    else if (what.kind == BYE)
        crew->gone++;
    frag_free(bytes);
    return true;
}

bool frag_sweep_crew_gather(frag_sweep_crew *crew, const frag_sweep_job *job, frag_error *error)
{
    char digest[33];
    uint32_t idle = 0;
    uint32_t others = crew->ranks->facts.count - 1;
    while (crew->come < others && !frag_is_cancelled(job->context))
        if (receive_one(crew))
            idle = 0;
        else
            rest(&idle);
    frag_sweep_job_digest(job, digest);
    for (uint32_t i = 1; i <= others && crew->come == others; i++)
        if (crew->error.code == FRAG_E_NONE && strcmp(crew->members[i].digest, digest) != 0)
            frag_fail(&crew->error, FRAG_E_INPUT,
                      "rank %u on %s has another experiment, other paths or another build of "
                      "fraglab; all ranks need the same",
                      i, crew->members[i].host);
    if (crew->error.code != FRAG_E_NONE)
        *error = crew->error;
    return crew->error.code == FRAG_E_NONE;
}

/* Something to do for those who have room. false: there is nothing now. */
static bool hand_out(frag_sweep_crew *crew)
{
    bool has_handed = false;
    for (uint32_t i = 1; i < crew->ranks->facts.count; i++) {
        message what = {.kind = UNIT};
        if (crew->members[i].wanted == 0)
            continue;
        if (frag_sweep_order_take(crew->order, false, &what.unit) != FRAG_SWEEP_TAKEN)
            break;
        const frag_recording *of = &crew->job->recordings[what.unit.file].recording;
        snprintf(what.digest, sizeof what.digest, "%s", of->traces[what.unit.trace].digest);
        frag_sweep_let_go(crew->job, what.unit.file);
        send_message(crew->ranks, i, &what);
        crew->members[i].wanted--;
        has_handed = true;
    }
    return has_handed;
}

bool frag_sweep_crew_work(frag_sweep_crew *crew, frag_sweep_job *job, frag_sweep_order *order,
                          frag_error *error)
{
    own_work own = {.job = job, .order = order};
    pthread_t worker;
    uint32_t idle = 0;
    if (pthread_create(&worker, NULL, work_on_threads, &own) != 0)
        return frag_fail(error, FRAG_E_SYSTEM, "the system refuses a thread");
    crew->job = job;
    crew->order = order;
    while (!frag_sweep_order_is_done(order)) {
        bool has_received = receive_one(crew);
        if (hand_out(crew) || has_received)
            idle = 0;
        else
            rest(&idle);
    }
    pthread_join(worker, NULL);
    crew->order = NULL;
    return true;
}

void frag_sweep_crew_dismiss(frag_sweep_crew *crew)
{
    uint32_t idle = 0;
    for (uint32_t i = 1; i < crew->ranks->facts.count; i++) {
        message what = {.kind = STOP};
        send_message(crew->ranks, i, &what);
    }
    while (crew->gone + 1 < crew->ranks->facts.count)
        if (receive_one(crew))
            idle = 0;
        else
            rest(&idle);
    frag_free(crew->members);
    frag_free(crew);
}

/* ---- the other ranks */

/* What came back, on its way to rank 0. */
typedef struct finished {
    message what;
    frag_text text;
    struct finished *next;
} finished;

typedef struct following {
    const frag_ranks *ranks;
    frag_sweep_job *job;
    const frag_context *outer; /* of the job, before rank 0 may end it too */
    atomic_bool is_useless;    /* rank 0 waits for nothing any more */
    uint32_t threads;
    pthread_mutex_t lock;
    pthread_cond_t change;
    message *units; /* a ring of threads + 1 */
    size_t first;
    size_t count;
    bool is_over;
    finished *done; /* the latest first */
    /* The recording of the latest unit stays loaded between units. */
    uint32_t kept;
    bool has_kept;
} following;

static bool take_unit(following *state, message *unit)
{
    pthread_mutex_lock(&state->lock);
    while (state->count == 0 && !state->is_over)
        pthread_cond_wait(&state->change, &state->lock);
    bool is_taken = state->count > 0 && !state->is_over;
    if (is_taken) {
        *unit = state->units[state->first];
        state->first = (state->first + 1) % (state->threads + 1);
        state->count--;
    }
    pthread_mutex_unlock(&state->lock);
    return is_taken;
}

static void put_finished(following *state, finished *one)
{
    pthread_mutex_lock(&state->lock);
    one->next = state->done;
    state->done = one;
    pthread_mutex_unlock(&state->lock);
}

/* As frag_sweep_hold; the recording that was kept before is let go when this is a later one. */
static bool hold(following *state, uint32_t file, frag_error *error)
{
    if (frag_sweep_hold(state->job, file, error) == NULL)
        return false;
    pthread_mutex_lock(&state->lock);
    bool is_later = !state->has_kept || file > state->kept;
    if (is_later && state->has_kept)
        frag_sweep_let_go(state->job, state->kept);
    if (is_later) {
        frag_sweep_hold(state->job, file, error);
        state->kept = file;
        state->has_kept = true;
    }
    pthread_mutex_unlock(&state->lock);
    return true;
}

static void run_unit(following *state, finished *one, const char *digest)
{
    const frag_sweep_unit *unit = &one->what.unit;
    const frag_recording *of = &state->job->recordings[unit->file].recording;
    frag_sweep_rows rows;
    if (unit->trace >= of->trace_count || strcmp(of->traces[unit->trace].digest, digest) != 0) {
        one->what.kind = PROBLEM;
        frag_fail(&one->what.error, FRAG_E_INPUT,
                  "is not the recording that rank 0 has; all ranks need the same");
        frag_error_in(&one->what.error, state->job->experiment.traces[unit->file]);
        return;
    }
    frag_sweep_unit_run(state->job, unit, &rows);
    one->what.kind = ROWS;
    one->what.count = rows.count;
    one->what.replayed = rows.replayed;
    one->what.is_whole = rows.is_whole;
    one->text = rows.text;
    if (rows.text.length > INT_MAX - sizeof one->what) {
        one->what.kind = PROBLEM;
        frag_fail(&one->what.error, FRAG_E_SYSTEM,
                  "the rows of one policy are more than a message can hold; give it fewer "
                  "capacities in one experiment");
    }
    if (rows.error.code != FRAG_E_NONE) {
        one->what.kind = PROBLEM;
        one->what.error = rows.error;
    }
}

static void follow_units(void *context, uint64_t index)
{
    following *state = context;
    message unit;
    (void)index;
    while (take_unit(state, &unit)) {
        finished *one = frag_alloc(1, sizeof *one);
        one->what.unit = unit.unit;
        one->what.kind = PROBLEM;
        if (hold(state, unit.unit.file, &one->what.error)) {
            run_unit(state, one, unit.digest);
            frag_sweep_let_go(state->job, unit.unit.file);
        }
        put_finished(state, one);
    }
}

static void *follow_on_threads(void *context)
{
    following *state = context;
    frag_for_each(state->threads, state->threads, follow_units, state);
    return NULL;
}

/* Rows come in the order of the units as far as one thread works; rank 0 sorts them. */
static bool send_finished(following *state)
{
    pthread_mutex_lock(&state->lock);
    finished *one = state->done;
    state->done = NULL;
    pthread_mutex_unlock(&state->lock);
    bool is_any = one != NULL;
    while (one != NULL) {
        finished *next = one->next;
        frag_text bytes = {0};
        frag_text_add_bytes(&bytes, (const char *)&one->what, sizeof one->what);
        if (one->what.kind == ROWS)
            frag_text_add_bytes(&bytes, one->text.bytes, one->text.length);
        state->ranks->module->send(0, bytes.bytes, bytes.length);
        frag_text_destroy(&bytes);
        frag_text_destroy(&one->text);
        frag_free(one);
        one = next;
    }
    return is_any;
}

/* One message, if there is one. */
static bool listen_once(following *state)
{
    uint32_t from = 0;
    size_t length = 0;
    message what;
    if (!state->ranks->module->poll(&from, &length))
        return false;
    FRAG_ASSERT(from == 0 && length == sizeof what);
    state->ranks->module->receive(from, &what, length);
    pthread_mutex_lock(&state->lock);
    if (what.kind == UNIT) {
        FRAG_ASSERT(state->count <= state->threads);
        state->units[(state->first + state->count++) % (state->threads + 1)] = what;
    } else {
        state->is_over = true;
    }
    pthread_cond_broadcast(&state->change);
    pthread_mutex_unlock(&state->lock);
    return true;
}

static bool is_ended(void *user)
{
    following *state = user;
    return atomic_load(&state->is_useless) || frag_is_cancelled(state->outer);
}

static const char *environment(void *user, const char *name)
{
    following *state = user;
    return frag_context_environment(state->outer, name);
}

/* Runs that rank 0 does not wait for end at once. */
static void end_work(following *state, pthread_t worker)
{
    atomic_store(&state->is_useless, true);
    pthread_join(worker, NULL);
    while (state->done != NULL) {
        finished *one = state->done;
        state->done = one->next;
        frag_text_destroy(&one->text);
        frag_free(one);
    }
    if (state->has_kept)
        frag_sweep_let_go(state->job, state->kept);
}

void frag_sweep_follow(const frag_ranks *ranks, frag_sweep_job *job, const frag_error *problem)
{
    uint32_t threads = frag_context_threads(job->context);
    following state = {.ranks = ranks, .job = job, .outer = job->context, .threads = threads};
    frag_context context = {.is_cancelled = is_ended, .environment = environment, .user = &state};
    message hello = {.kind = HELLO, .threads = threads};
    message bye = {.kind = BYE};
    pthread_t worker;
    uint32_t idle = 0;
    state.units = frag_alloc(threads + 1, sizeof *state.units);
    atomic_init(&state.is_useless, false);
    job->context = &context;
    pthread_mutex_init(&state.lock, NULL);
    pthread_cond_init(&state.change, NULL);
    snprintf(hello.host, sizeof hello.host, "%s", ranks->facts.host);
    bool has_worker =
        problem == NULL && pthread_create(&worker, NULL, follow_on_threads, &state) == 0;
    if (has_worker) {
        frag_sweep_job_digest(job, hello.digest);
    } else {
        hello.kind = PROBLEM;
        frag_fail(&hello.error, FRAG_E_SYSTEM, "the system refuses a thread");
        if (problem != NULL)
            hello.error = *problem;
    }
    send_message(ranks, 0, &hello);
    while (!state.is_over) {
        bool is_busy = listen_once(&state);
        if (send_finished(&state) || is_busy)
            idle = 0;
        else
            rest(&idle);
    }
    if (has_worker)
        end_work(&state, worker);
    job->context = state.outer;
    send_message(ranks, 0, &bye);
    pthread_cond_destroy(&state.change);
    pthread_mutex_destroy(&state.lock);
    frag_free(state.units);
}
