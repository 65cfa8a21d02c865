/* The report of what a program asked for that the software CUDA cannot know: JSON lines, appended
 * to a file at exit and whenever the log is flushed. Every line is one kind and place with its
 * count since the last writing; whoever reads the file adds the counts up. */
#define _GNU_SOURCE
#include "gpu_replay/software/soft_state.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/memory.h"
#include "gpu_replay/software/soft_processes.h"

#define TEXT_MAX 1024
#define BLOCK_BYTES 512u

typedef enum kind {
    UNKNOWN,
    UNCERTAIN,
    VALUE,
    NOTE,
} kind;

typedef struct entry {
    kind kind;
    uint64_t key; /* of everything below but answered and count */
    char *first;  /* library, function, place, or kind of a note */
    char *second; /* function, what, or sentence; NULL: none */
    char *caller; /* NULL: none */
    const void *address;
    uint64_t low, high, answered;
    uint64_t count;
    bool was_written;
} entry;

static struct {
    entry *entries;
    size_t count;
    size_t capacity;
    bool is_off;
} report;

/* FNV-1a, 64 bits. */
static uint64_t mix(uint64_t key, const void *bytes, size_t count)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < count; i++)
        key = (key ^ at[i]) * 1099511628211u;
    return key;
}

static uint64_t mix_text(uint64_t key, const char *text)
{
    return text == NULL ? mix(key, "\1", 1) : mix(key, text, strlen(text) + 1);
}

static char *keep(const char *text)
{
    char *kept = text == NULL ? NULL : strdup(text);
    FRAG_ASSERT(text == NULL || kept != NULL);
    return kept;
}

static bool is_same(const char *kept, const char *text)
{
    return kept == NULL || text == NULL ? kept == text : strcmp(kept, text) == 0;
}

/* The entry of what, with texts that belong to the caller; made when it is new. */
static entry *find(entry what)
{
    uint64_t key =
        mix_text(mix_text(14695981039346656037u + (uint64_t)what.kind, what.first), what.second);
    const uint64_t numbers[] = {(uint64_t)(uintptr_t)what.address, what.low, what.high};
    key = mix(key, numbers, sizeof numbers);
    for (size_t i = 0; i < report.count; i++) {
        entry *known = &report.entries[i];
        if (known->key == key && known->kind == what.kind && known->address == what.address &&
            known->low == what.low && known->high == what.high &&
            is_same(known->first, what.first) && is_same(known->second, what.second))
            return known;
    }
    report.entries =
        frag_grow(report.entries, &report.capacity, report.count + 1, sizeof report.entries[0]);
    entry *made = &report.entries[report.count++];
    *made = what;
    made->key = key;
    made->first = keep(what.first);
    made->second = keep(what.second);
    return made;
}

/* "libtorch_cuda.so+0x1234": what does not change from run to run. */
void frag_soft_place_text(const void *address, char *out, size_t out_bytes)
{
    Dl_info place;
    if (address == NULL || dladdr(address, &place) == 0 || place.dli_fname == NULL) {
        snprintf(out, out_bytes, "unknown");
        return;
    }
    const char *slash = strrchr(place.dli_fname, '/');
    snprintf(out, out_bytes, "%s+0x%" PRIxPTR, slash != NULL ? slash + 1 : place.dli_fname,
             (uintptr_t)address - (uintptr_t)place.dli_fbase);
}

void frag_software_note_unknown(const char *library, const char *function, const void *caller)
{
    int32_t ignored = 0;
    frag_soft_enter(&ignored);
    entry *noted = find((entry){.kind = UNKNOWN,
                                .first = (char *)(uintptr_t)library,
                                .second = (char *)(uintptr_t)function,
                                .address = caller});
    if (noted->caller == NULL) {
        char place[TEXT_MAX];
        frag_soft_place_text(caller, place, sizeof place);
        noted->caller = keep(place);
    }
    noted->count++;
    frag_soft_leave();
}

static bool is_answered(uint64_t bytes)
{
    for (size_t i = 0; i < report.count; i++)
        if (report.entries[i].answered == bytes)
            return true;
    return false;
}

/* An odd number of bytes below the end of the block, which no tensor of numbers has; another one
 * for each range. With more ranges than a block has odd sizes the last is shared. */
static uint64_t make_recognisable(uint64_t bytes)
{
    if (bytes == 0)
        return 0;
    uint64_t end = frag_align_up(bytes, BLOCK_BYTES);
    uint64_t below = 1;
    while (below < BLOCK_BYTES - 1 && is_answered(end - below))
        below += 2;
    return end - below;
}

uint64_t frag_software_note_uncertain(const char *function, const char *what, uint64_t low,
                                      uint64_t high)
{
    int32_t ignored = 0;
    frag_soft_enter(&ignored);
    entry *noted = find((entry){.kind = UNCERTAIN,
                                .first = (char *)(uintptr_t)function,
                                .second = (char *)(uintptr_t)what,
                                .low = low,
                                .high = high});
    uint64_t chosen = frag_soft.settings.answers_low ? low : high;
    if (noted->count == 0 && !noted->was_written)
        noted->answered = make_recognisable(chosen);
    noted->count++;
    uint64_t answered = noted->answered;
    frag_soft_leave();
    return answered;
}

void frag_software_note(const char *about, const char *sentence)
{
    int32_t ignored = 0;
    frag_soft_enter(&ignored);
    entry *noted = find((entry){
        .kind = NOTE, .first = (char *)(uintptr_t)about, .second = (char *)(uintptr_t)sentence});
    if (!noted->was_written)
        noted->count = 1;
    frag_soft_leave();
}

void frag_software_note_value(const char *where)
{
    int32_t ignored = 0;
    frag_soft_enter(&ignored);
    find((entry){.kind = VALUE, .first = (char *)(uintptr_t)where})->count++;
    frag_soft_leave();
}

/* ---- writing */

/* As much of a text as fits, between quotes. Bytes beyond ASCII stand for themselves. */
static size_t write_text(char *out, const char *text)
{
    size_t used = 0;
    out[used++] = '"';
    for (const unsigned char *c = (const unsigned char *)text; *c != '\0' && used < TEXT_MAX; c++) {
        if (*c == '"' || *c == '\\')
            used += (size_t)sprintf(out + used, "\\%c", *c);
        else if (*c < ' ')
            used += (size_t)sprintf(out + used, "\\u%04x", *c);
        else
            out[used++] = (char)*c;
    }
    out[used++] = '"';
    out[used] = '\0';
    return used;
}

static size_t write_entry(char *line, const entry *noted)
{
    static const char *const starts[] = {
        "{\"kind\":\"unknown\",\"library\":",
        "{\"kind\":\"uncertain\",\"function\":",
        "{\"kind\":\"value\",\"where\":",
        "{\"kind\":\"note\",\"about\":",
    };
    static const char *const seconds[] = {",\"function\":", ",\"what\":", "", ",\"text\":"};
    size_t used = (size_t)sprintf(line, "%s", starts[noted->kind]);
    used += write_text(line + used, noted->first);
    if (noted->second != NULL) {
        used += (size_t)sprintf(line + used, "%s", seconds[noted->kind]);
        used += write_text(line + used, noted->second);
    }
    if (noted->kind == UNKNOWN) {
        used += (size_t)sprintf(line + used, ",\"caller\":");
        used += write_text(line + used, noted->caller);
    } else if (noted->kind == UNCERTAIN) {
        used += (size_t)sprintf(line + used,
                                ",\"low\":%" PRIu64 ",\"high\":%" PRIu64 ",\"answered\":%" PRIu64,
                                noted->low, noted->high, noted->answered);
    }
    if (noted->kind != NOTE)
        used += (size_t)sprintf(line + used, ",\"count\":%" PRIu64, noted->count);
    used += (size_t)sprintf(line + used, "}\n");
    return used;
}

/* Whole lines, each by one write at the end of the file: processes that share it do not mix. */
void frag_soft_report_flush(void)
{
    if (report.is_off || frag_soft.settings.report_path[0] == '\0')
        return;
    int file = -1;
    char told[TEXT_MAX];
    if (frag_soft_processes_tell(told, sizeof told))
        find((entry){.kind = NOTE, .first = (char *)(uintptr_t) "shared", .second = told})->count =
            1;
    for (size_t i = 0; i < report.count; i++) {
        char line[4 * TEXT_MAX];
        entry *noted = &report.entries[i];
        if (noted->count == 0)
            continue;
        if (file < 0) {
            char path[FRAG_SOFT_PATH_MAX + 64];
            frag_soft_expand_path(frag_soft.settings.report_path, path, sizeof path);
            file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
            if (file < 0) {
                fprintf(stderr, "software CUDA: cannot write the report '%s': %s\n", path,
                        strerror(errno));
                report.is_off = true;
                return;
            }
        }
        frag_soft_write_all(file, line, write_entry(line, noted));
        noted->count = 0;
        noted->was_written = true;
    }
    if (file >= 0)
        close(file);
}

void frag_soft_report_stop(void)
{
    for (size_t i = 0; i < report.count; i++) {
        free(report.entries[i].first);
        free(report.entries[i].second);
        free(report.entries[i].caller);
    }
    free(report.entries);
    memset(&report, 0, sizeof report);
}
