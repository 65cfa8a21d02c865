#include "cli/command_context.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/threads.h"

#define DRAW_EVERY_NS 100000000u

static void draw(const frag_progress_report *report, uint64_t now)
{
    double seconds = (double)(now - report->start_ns) / 1e9;
    double rate = seconds > 0 ? (double)(report->done - report->skipped) / seconds : 0;
    fprintf(stderr, "\r\x1b[K%s  %s", report->what, FRAG_COUNT(report->done));
    if (report->total > 0)
        fprintf(stderr, " of %s", FRAG_COUNT(report->total));
    fprintf(stderr, " %s", report->unit);
    if (rate > 0)
        fprintf(stderr, ", %.3g a second", rate);
    if (rate > 0 && report->total > report->done)
        fprintf(stderr, ", %.0f s left", (double)(report->total - report->done) / rate);
    fflush(stderr);
}

static void erase(void)
{
    fputs("\r\x1b[K", stderr);
    fflush(stderr);
}

/* At most 10 times a second; what is over at once shows nothing. */
static void show_progress(void *user, const frag_progress_report *report)
{
    frag_cli_status *status = user;
    uint64_t now = 0;
    switch (report->event) {
    case FRAG_PROGRESS_STARTED:
        status->drawn_ns = report->start_ns;
        break;
    case FRAG_PROGRESS_STEP:
        now = frag_clock_ns();
        if (now - status->drawn_ns >= DRAW_EVERY_NS) {
            draw(report, now);
            status->drawn_ns = now;
        }
        break;
    case FRAG_PROGRESS_PAUSED:
    case FRAG_PROGRESS_ENDED:
        erase();
        break;
    }
}

static void show_warning(void *user, const char *sentence)
{
    (void)user;
    frag_print_warning(sentence);
}

static bool is_cancelled(void *user)
{
    (void)user;
    return frag_is_interrupted();
}

uint64_t frag_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t clock_ns(void *user)
{
    (void)user;
    return frag_clock_ns();
}

static const char *environment(void *user, const char *name)
{
    (void)user;
    return getenv(name);
}

frag_context frag_context_make(bool is_quiet, frag_cli_status *status)
{
    return (frag_context){
        .threads = frag_core_count(),
        .is_cancelled = is_cancelled,
        .progress = !is_quiet && frag_is_terminal(STDERR_FILENO) ? show_progress : NULL,
        .warn = is_quiet ? NULL : show_warning,
        .clock_ns = clock_ns,
        .environment = environment,
        .user = status,
    };
}
