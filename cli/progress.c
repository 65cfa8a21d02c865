/* The progress line on stderr of commands that take long. */
#include "cli/command.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/memory.h"

#define DRAW_EVERY_NS 100000000u

struct frag_progress {
    bool is_shown;
    const char *what;
    const char *unit;
    uint64_t total; /* 0: not known */
    uint64_t done;
    uint64_t skipped; /* of done */
    uint64_t start_ns;
    uint64_t drawn_ns;
    pthread_mutex_t lock;
};

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void draw(frag_progress *progress, uint64_t now)
{
    double seconds = (double)(now - progress->start_ns) / 1e9;
    double rate = seconds > 0 ? (double)(progress->done - progress->skipped) / seconds : 0;
    fprintf(stderr, "\r\x1b[K%s  %s", progress->what, FRAG_COUNT(progress->done));
    if (progress->total > 0)
        fprintf(stderr, " of %s", FRAG_COUNT(progress->total));
    fprintf(stderr, " %s", progress->unit);
    if (rate > 0)
        fprintf(stderr, ", %.3g a second", rate);
    if (rate > 0 && progress->total > progress->done)
        fprintf(stderr, ", %.0f s left", (double)(progress->total - progress->done) / rate);
    fflush(stderr);
    progress->drawn_ns = now;
}

frag_progress *frag_progress_start(const frag_arguments *arguments, const char *what,
                                   const char *unit, uint64_t total)
{
    frag_progress *progress = frag_alloc(1, sizeof *progress);
    progress->is_shown = !frag_arguments_is_quiet(arguments) && frag_is_terminal(STDERR_FILENO);
    progress->what = what;
    progress->unit = unit;
    progress->total = total;
    progress->start_ns = now_ns();
    /* What is over at once shows nothing. */
    progress->drawn_ns = progress->start_ns;
    pthread_mutex_init(&progress->lock, NULL);
    return progress;
}

static void add(frag_progress *progress, uint64_t done, uint64_t skipped)
{
    if (progress == NULL || !progress->is_shown)
        return;
    pthread_mutex_lock(&progress->lock);
    progress->done += done;
    progress->skipped += skipped;
    uint64_t now = now_ns();
    if (now - progress->drawn_ns >= DRAW_EVERY_NS)
        draw(progress, now);
    pthread_mutex_unlock(&progress->lock);
}

void frag_progress_add(frag_progress *progress, uint64_t done)
{
    add(progress, done, 0);
}

void frag_progress_skip(frag_progress *progress, uint64_t done)
{
    add(progress, done, done);
}

void frag_progress_hide(frag_progress *progress)
{
    if (!progress->is_shown)
        return;
    pthread_mutex_lock(&progress->lock);
    fputs("\r\x1b[K", stderr);
    fflush(stderr);
    pthread_mutex_unlock(&progress->lock);
}

void frag_progress_end(frag_progress *progress)
{
    if (progress == NULL)
        return;
    frag_progress_hide(progress);
    pthread_mutex_destroy(&progress->lock);
    frag_free(progress);
}
