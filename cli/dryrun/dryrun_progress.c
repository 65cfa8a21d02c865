#include "cli/dryrun/dryrun_progress.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "base/text.h"
#include "cli/command.h"

#define SECOND_NS ((uint64_t)1000 * 1000 * 1000)

enum { ROWS_MIN = 4 };

bool frag_dryrun_progress_begin(frag_dryrun_progress *progress, const char *folder, bool is_wanted)
{
    *progress = (frag_dryrun_progress){.folder = folder, .begin_ns = frag_clock_ns()};
    return is_wanted && frag_is_terminal(STDERR_FILENO);
}

/* ---- what the processes say */

typedef struct process_progress {
    uint64_t steps;
    uint64_t requests;
    uint64_t reserved_bytes;
    uint64_t count;
} process_progress;

static void add_process(process_progress *sum, const char *path)
{
    char line[128] = "";
    FILE *stream = fopen(path, "r");
    if (stream == NULL)
        return;
    bool ok = fgets(line, sizeof line, stream) != NULL;
    fclose(stream);
    char *at = line;
    uint64_t steps = ok ? strtoull(at, &at, 10) : 0;
    sum->requests += strtoull(at, &at, 10);
    uint64_t reserved = strtoull(at, &at, 10);
    sum->steps = steps > sum->steps ? steps : sum->steps;
    sum->reserved_bytes = reserved > sum->reserved_bytes ? reserved : sum->reserved_bytes;
    sum->count += ok;
}

static int is_progress(const struct dirent *entry)
{
    const char *dot = strrchr(entry->d_name, '.');
    return dot != NULL && strcmp(dot, ".progress") == 0;
}

static process_progress read_processes(const char *folder)
{
    process_progress sum = {.count = 0};
    struct dirent **entries = NULL;
    int count = scandir(folder, &entries, is_progress, NULL);
    for (int i = 0; i < count; i++) {
        frag_text path = {0};
        frag_text_add(&path, "%s/%s", folder, entries[i]->d_name);
        add_process(&sum, path.bytes);
        frag_text_destroy(&path);
        frag_free(entries[i]);
    }
    frag_free(entries);
    return sum;
}

static void add_line(frag_text *line, const frag_dryrun_progress *progress)
{
    process_progress sum = read_processes(progress->folder);
    uint64_t seconds = (frag_clock_ns() - progress->begin_ns) / SECOND_NS;
    frag_text_add(line, "dry run  %" PRIu64 " s", seconds);
    if (sum.steps > 0)
        frag_text_add(line, ", step %s", FRAG_COUNT(sum.steps));
    if (sum.count > 0)
        frag_text_add(line, ", %s request%s, %s reserved at the peak", FRAG_COUNT(sum.requests),
                      sum.requests == 1 ? "" : "s", FRAG_BYTES(sum.reserved_bytes));
    if (sum.count > 1)
        frag_text_add(line, ", %" PRIu64 " processes", sum.count);
}

/* ---- the terminal */

/* In one piece, so that nothing of the script's comes between. */
static void put(const frag_text *text)
{
    if (text->length > 0 && write(STDERR_FILENO, text->bytes, text->length) < 0)
        return; /* a terminal that is gone needs no progress */
}

/* Takes the last line out of what scrolls; the cursor may have stood on it. */
static void take_line(frag_dryrun_progress *progress, unsigned rows, frag_text *text)
{
    if (progress->rows == rows)
        return;
    frag_text_add(text,
                  "%s\x1b"
                  "7\x1b[1;%ur\x1b"
                  "8%s",
                  progress->rows == 0 ? "\n" : "", rows - 1, progress->rows == 0 ? "\x1b[1A" : "");
    progress->rows = rows;
}

void frag_dryrun_progress_draw(frag_dryrun_progress *progress)
{
    uint64_t now = frag_clock_ns();
    struct winsize size;
    if (now < progress->begin_ns + SECOND_NS || now < progress->drawn_ns + SECOND_NS / 2 ||
        ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row < ROWS_MIN)
        return;
    frag_text text = {0};
    frag_text line = {0};
    progress->drawn_ns = now;
    take_line(progress, size.ws_row, &text);
    add_line(&line, progress);
    frag_text_add(&text,
                  "\x1b"
                  "7\x1b[%u;1H\x1b[2K%.*s\x1b"
                  "8",
                  progress->rows, size.ws_col > 1 ? (int)size.ws_col - 1 : 1, line.bytes);
    put(&text);
    frag_text_destroy(&line);
    frag_text_destroy(&text);
}

void frag_dryrun_progress_end(frag_dryrun_progress *progress)
{
    frag_text text = {0};
    if (progress->rows == 0)
        return;
    frag_text_add(&text,
                  "\x1b"
                  "7\x1b[r\x1b[%u;1H\x1b[2K\x1b"
                  "8",
                  progress->rows);
    put(&text);
    frag_text_destroy(&text);
    progress->rows = 0;
}
