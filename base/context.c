#include "base/context.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/memory.h"

uint32_t frag_context_threads(const frag_context *context)
{
    return context != NULL && context->threads > 0 ? context->threads : 1;
}

bool frag_is_cancelled(const frag_context *context)
{
    return context != NULL && context->is_cancelled != NULL && context->is_cancelled(context->user);
}

uint64_t frag_context_clock_ns(const frag_context *context)
{
    return context != NULL && context->clock_ns != NULL ? context->clock_ns(context->user) : 0;
}

const char *frag_context_environment(const frag_context *context, const char *name)
{
    return context != NULL && context->environment != NULL
               ? context->environment(context->user, name)
               : NULL;
}

void frag_context_warn(const frag_context *context, const char *format, ...)
{
    char sentence[1024];
    va_list values;
    if (context == NULL || context->warn == NULL)
        return;
    va_start(values, format);
    vsnprintf(sentence, sizeof sentence, format, values);
    va_end(values);
    context->warn(context->user, sentence);
}

struct frag_progress {
    const frag_context *context;
    frag_progress_report report;
    pthread_mutex_t lock;
};

static void tell(frag_progress *progress, frag_progress_event event, uint64_t done,
                 uint64_t skipped)
{
    if (progress == NULL)
        return;
    pthread_mutex_lock(&progress->lock);
    progress->report.event = event;
    progress->report.done += done;
    progress->report.skipped += skipped;
    progress->context->progress(progress->context->user, &progress->report);
    pthread_mutex_unlock(&progress->lock);
}

frag_progress *frag_progress_start(const frag_context *context, const char *what, const char *unit,
                                   uint64_t total)
{
    if (context == NULL || context->progress == NULL)
        return NULL;
    frag_progress *progress = frag_alloc(1, sizeof *progress);
    progress->context = context;
    progress->report = (frag_progress_report){
        .what = what, .unit = unit, .total = total, .start_ns = frag_context_clock_ns(context)};
    pthread_mutex_init(&progress->lock, NULL);
    tell(progress, FRAG_PROGRESS_STARTED, 0, 0);
    return progress;
}

void frag_progress_add(frag_progress *progress, uint64_t done)
{
    tell(progress, FRAG_PROGRESS_STEP, done, 0);
}

void frag_progress_skip(frag_progress *progress, uint64_t done)
{
    tell(progress, FRAG_PROGRESS_STEP, done, done);
}

void frag_progress_pause(frag_progress *progress)
{
    tell(progress, FRAG_PROGRESS_PAUSED, 0, 0);
}

void frag_progress_end(frag_progress *progress)
{
    if (progress == NULL)
        return;
    tell(progress, FRAG_PROGRESS_ENDED, 0, 0);
    pthread_mutex_destroy(&progress->lock);
    frag_free(progress);
}
