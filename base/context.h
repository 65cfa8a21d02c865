/* What a computation may use and ask for outside itself: threads, whether to stop, where progress
 * and warnings go, time and the environment. Whoever starts a computation fills one and hands it
 * down; nothing below keeps such things in globals. The command line makes one from its arguments
 * (cli/command_context.h), the library from its caller's.
 *
 * Every function may be called from any thread, and each may be NULL. A context that is NULL is one
 * of zeros: one thread, never cancelled, silent, without time or environment. */
#ifndef FRAG_BASE_CONTEXT_H
#define FRAG_BASE_CONTEXT_H

#include <stdbool.h>
#include <stdint.h>

typedef enum frag_progress_event {
    FRAG_PROGRESS_STARTED,
    FRAG_PROGRESS_STEP,
    FRAG_PROGRESS_PAUSED, /* results are about to be written; the next step ends the pause */
    FRAG_PROGRESS_ENDED   /* done is less than total after an interruption */
} frag_progress_event;

typedef struct frag_progress_report {
    frag_progress_event event;
    const char *what;  /* "replaying" */
    const char *unit;  /* "runs" */
    uint64_t total;    /* 0: not known */
    uint64_t done;     /* skipped ones included */
    uint64_t skipped;  /* found done already: they say nothing about the speed */
    uint64_t start_ns; /* of the context's clock */
} frag_progress_report;

typedef struct frag_context {
    uint32_t threads; /* 0: one */
    bool (*is_cancelled)(void *user);
    /* Never two calls at a time about one computation. */
    void (*progress)(void *user, const frag_progress_report *report);
    void (*warn)(void *user, const char *sentence);
    uint64_t (*clock_ns)(void *user);                         /* monotonic */
    const char *(*environment)(void *user, const char *name); /* as getenv */
    void *user;                                               /* handed to all of them */
} frag_context;

/* 1 or more. */
uint32_t frag_context_threads(const frag_context *context);
/* Once true, results are of no use any more: end soon, with what is there. */
bool frag_is_cancelled(const frag_context *context);
/* 0 without a clock. */
uint64_t frag_context_clock_ns(const frag_context *context);
/* NULL: not set. */
const char *frag_context_environment(const frag_context *context, const char *name);
void frag_context_warn(const frag_context *context, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Progress of one computation, told to the context; from several threads. Both texts are literal.
 * The functions take NULL for none. */
typedef struct frag_progress frag_progress;
frag_progress *frag_progress_start(const frag_context *context, const char *what, const char *unit,
                                   uint64_t total);
void frag_progress_add(frag_progress *progress, uint64_t done);
/* Found done already. */
void frag_progress_skip(frag_progress *progress, uint64_t done);
/* Results are about to be written. */
void frag_progress_pause(frag_progress *progress);
void frag_progress_end(frag_progress *progress);

#endif
