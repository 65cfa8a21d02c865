/* The caller's context as what lies below takes it, and what is said of the library and errors. */
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/api_call.h"
#include "base/memory.h"
#include "base/system/spill.h"
#include "sim/version.h"

#define THREADS_MAX 4096u

struct fraglab_context {
    frag_scope *scope;
    pthread_mutex_t *lock; /* one function of the caller's at a time */
    fraglab_context_options given;
    frag_context below;
};

const char *fraglab_version(void)
{
    return frag_version();
}

const char *fraglab_commit(void)
{
    return frag_commit();
}

void fraglab_free(void *memory)
{
    frag_free(memory);
}

char *fraglab_error_text(const fraglab_error *error, char *text, size_t bytes)
{
    frag_error found = {.code = (frag_error_code)error->code,
                        .line = error->line,
                        .column = error->column,
                        .offset = error->offset,
                        .has_offset = error->has_offset != 0};
    memcpy(found.where, error->where, sizeof found.where);
    memcpy(found.sentence, error->sentence, sizeof found.sentence);
    frag_error_text(&found, text, bytes);
    return text;
}

static bool is_cancelled(void *user)
{
    const fraglab_context *context = user;
    pthread_mutex_lock(context->lock);
    bool is_over = context->given.is_cancelled(context->given.user) != 0;
    pthread_mutex_unlock(context->lock);
    return is_over;
}

static void tell_progress(void *user, const frag_progress_report *report)
{
    const fraglab_context *context = user;
    if (report->event == FRAG_PROGRESS_PAUSED)
        return;
    pthread_mutex_lock(context->lock);
    context->given.progress(context->given.user, report->what, report->unit, report->done,
                            report->total);
    pthread_mutex_unlock(context->lock);
}

static void warn(void *user, const char *sentence)
{
    const fraglab_context *context = user;
    pthread_mutex_lock(context->lock);
    context->given.warn(context->given.user, sentence);
    pthread_mutex_unlock(context->lock);
}

static const char *look_up(void *user, const char *name)
{
    const fraglab_context *context = user;
    pthread_mutex_lock(context->lock);
    const char *value = context->given.environment(context->given.user, name);
    pthread_mutex_unlock(context->lock);
    return value;
}

static const char *look_up_own(void *user, const char *name)
{
    (void)user;
    return getenv(name);
}

static uint64_t clock_ns(void *user)
{
    struct timespec now;
    (void)user;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void release_lock(void *lock, size_t bytes)
{
    (void)bytes;
    pthread_mutex_destroy(lock);
}

/* Goes with the scope. */
static pthread_mutex_t *make_lock(void)
{
    pthread_mutex_t *lock = frag_alloc(1, sizeof *lock);
    pthread_mutex_init(lock, NULL);
    frag_scope_own(lock, sizeof *lock, release_lock);
    return lock;
}

typedef struct create_call {
    const fraglab_context_options *options;
    fraglab_context **made;
} create_call;

static bool create_work(void *arguments, frag_error *error)
{
    create_call *call = arguments;
    fraglab_context *made = frag_alloc(1, sizeof *made);
    fraglab_context_options *given = &made->given;
    if (!frag_call_read(call->options, given, sizeof *given, "fraglab_context_options", error))
        return false;
    if (given->threads > THREADS_MAX)
        return frag_fail_in(error, FRAG_E_USAGE, "threads",
                            "%" PRIu32 " threads are too many; expected at most %u", given->threads,
                            THREADS_MAX);
    made->lock = make_lock();
    made->below = (frag_context){
        .threads = given->threads,
        .is_cancelled = given->is_cancelled != NULL ? is_cancelled : NULL,
        .progress = given->progress != NULL ? tell_progress : NULL,
        .warn = given->warn != NULL ? warn : NULL,
        .clock_ns = clock_ns,
        .environment = given->environment != NULL ? look_up : look_up_own,
        .user = made,
    };
    made->scope = frag_scope_active();
    *call->made = made;
    return true;
}

int fraglab_context_create(const fraglab_context_options *options, fraglab_context **context,
                           fraglab_error *error)
{
    create_call call = {.options = options, .made = context};
    *context = NULL;
    return frag_call_new(create_work, &call, error);
}

void fraglab_context_destroy(fraglab_context *context)
{
    if (context != NULL)
        frag_scope_destroy(context->scope);
}

typedef struct limit_call {
    uint64_t bytes;
    const char *folder;
} limit_call;

static bool limit_work(void *arguments, frag_error *error)
{
    const limit_call *call = arguments;
    return frag_spill_begin(call->bytes, call->folder, error);
}

int fraglab_limit_memory(uint64_t bytes, const char *folder, fraglab_error *error)
{
    return frag_call_once(limit_work, &(limit_call){bytes, folder}, error);
}

const frag_context *frag_call_context(const fraglab_context *context)
{
    static const frag_context silent = {.clock_ns = clock_ns, .environment = look_up_own};
    return context != NULL ? &context->below : &silent;
}
