#include "studies/sweep/sweep_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/scope.h"

void frag_sweep_row_name(frag_text *text, const char *commit, const char *trace, const char *digest,
                         uint32_t device, const char *label, uint64_t capacity_bytes)
{
    frag_text_clear(text);
    frag_text_add(text, "%s of %s (%s, device %" PRIu32 ") on ", label, trace, digest, device);
    if (capacity_bytes == FRAG_UNLIMITED)
        frag_text_add(text, "an unlimited device");
    else
        frag_text_add(text, "%" PRIu64 " bytes", capacity_bytes);
    frag_text_add(text, " by %s", commit);
}

static bool name_row(const char *line, size_t length, const frag_sweep_file *file, frag_text *name,
                     frag_error *error)
{
    uint64_t holes = 0;
    uint64_t packing = 0;
    uint64_t events = 0;
    const char *commit = NULL;
    const char *trace = NULL;
    const char *digest = NULL;
    const char *label = NULL;
    uint64_t device = 0;
    uint64_t capacity = FRAG_UNLIMITED;
    frag_json *json = frag_json_parse(line, length, error);
    if (json == NULL)
        return false;
    bool ok = frag_json_find_text(json, "tool.commit", &commit) &&
              frag_json_find_text(json, "trace.name", &trace) &&
              frag_json_find_text(json, "trace.digest", &digest) &&
              frag_json_find_text(json, "policy.label", &label) &&
              frag_json_find_number(json, "trace.device", &device);
    frag_json_find_number(json, "device.capacity_bytes", &capacity);
    if (ok)
        frag_sweep_row_name(name, commit, trace, digest, (uint32_t)device, label, capacity);
    else
        frag_fail(error, FRAG_E_INPUT, "is not a file of a sweep's rows; name another file");
    if (ok && frag_json_find_number(json, "replay.events", &events) &&
        frag_json_find_number(json, "decomposition_at_peak.holes_bytes", &holes) !=
            file->has_layout)
        ok = frag_fail(error, FRAG_E_INPUT,
                       "was written %s --counts-only; do the same again, or start anew with -f",
                       file->has_layout ? "with" : "without");
    else if (ok && frag_json_find_number(json, "replay.events", &events) &&
             frag_json_find_number(json, "bounds.packing_bytes", &packing) != file->has_bounds)
        ok = frag_fail(error, FRAG_E_INPUT,
                       "was written %s 'bounds: true' in the experiment; write it so again, or "
                       "start anew with -f",
                       file->has_bounds ? "without" : "with");
    frag_json_destroy(json);
    return ok;
}

/* What every row begins with, so that nothing else is taken for a piece of one and cut off. */
static bool begins_like_row(const char *bytes, size_t length)
{
    static const char beginning[] = "{\"schema\":\"fraglab.";
    size_t compared = length < sizeof beginning - 1 ? length : sizeof beginning - 1;
    return memcmp(bytes, beginning, compared) == 0;
}

/* -f throws rows away; a recording or an experiment named by mistake stays. */
static bool check_fresh(int descriptor, frag_error *error)
{
    char first[64];
    ssize_t length = pread(descriptor, first, sizeof first, 0);
    return length <= 0 || begins_like_row(first, (size_t)length) ||
           frag_fail(error, FRAG_E_USAGE,
                     "holds something else than rows; name another file, or remove this one");
}

/* The next line with its end, or what is left behind the last one; empty: nothing is. */
static bool read_line(FILE *stream, frag_text *line, frag_error *error)
{
    char piece[4096];
    size_t count = 0;
    int byte = 0;
    frag_text_clear(line);
    while (byte != '\n' && (byte = getc_unlocked(stream)) != EOF) {
        piece[count++] = (char)byte;
        if (count == sizeof piece || byte == '\n') {
            frag_text_add_bytes(line, piece, count);
            count = 0;
        }
    }
    frag_text_add_bytes(line, piece, count);
    return ferror(stream) == 0 ||
           frag_fail(error, FRAG_E_SYSTEM, "cannot be read: %s", strerror(errno));
}

/* The rows that are whole; *end is where the last one ends. */
static bool read_rows(frag_sweep_file *file, off_t *end, frag_error *error)
{
    frag_text line = {0};
    size_t capacity = 0;
    bool ok = true;
    *end = 0;
    while (ok && (ok = read_line(file->stream, &line, error)) && line.length > 0 &&
           line.bytes[line.length - 1] == '\n') {
        frag_text name = {0};
        ok = name_row(line.bytes, line.length, file, &name, error);
        error->line = ok ? 0 : file->count + 1;
        file->names = frag_grow(file->names, &capacity, file->count + 1, sizeof *file->names);
        file->names[file->count] = name.bytes;
        file->count++;
        *end += (off_t)line.length;
    }
    if (ok && line.length > 0 && !begins_like_row(line.bytes, line.length)) {
        ok = frag_fail(error, FRAG_E_INPUT, "is not a file of a sweep's rows; name another file");
        error->line = file->count + 1;
    }
    frag_text_destroy(&line);
    return ok;
}

static bool fail_system(const char *path, const char *what, frag_error *error)
{
    return frag_fail_in(error, FRAG_E_SYSTEM, path, "cannot be %s: %s", what, strerror(errno));
}

static void release_stream(void *thing, size_t bytes)
{
    (void)bytes;
    fclose(thing);
}

static bool open_stream(frag_sweep_file *file, frag_error *error)
{
    int descriptor = open(file->path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (descriptor == -1)
        return fail_system(file->path, "written", error);
    file->stream = fdopen(descriptor, "r+");
    if (file->stream == NULL) {
        close(descriptor);
        frag_scope_fail(1, BUFSIZ); /* nothing else is wrong with the descriptor */
    }
    frag_scope_own(file->stream, 0, release_stream);
    return true;
}

bool frag_sweep_file_open(const char *path, bool is_fresh, frag_sweep_file *file, frag_error *error)
{
    file->stream = stdout;
    if (path == NULL || strcmp(path, "-") == 0)
        return true;
    file->stream = NULL;
    if (path[0] == '\0')
        return frag_fail(error, FRAG_E_USAGE, "the name of an output file is empty; name one");
    file->path = frag_copy_text(path);
    if (!open_stream(file, error))
        return false;
    int descriptor = fileno(file->stream);
    /* A pipe or /dev/null holds no rows to go on behind. */
    struct stat status;
    if (fstat(descriptor, &status) == 0 && !S_ISREG(status.st_mode))
        return true;
    if (flock(descriptor, LOCK_EX | LOCK_NB) != 0)
        return frag_fail_in(error, FRAG_E_SYSTEM, path, "is being written by another sweep");
    off_t end = 0;
    if (is_fresh ? !check_fresh(descriptor, error) : !read_rows(file, &end, error))
        return frag_error_in(error, path);
    if (ftruncate(descriptor, end) != 0 || fseeko(file->stream, end, SEEK_SET) != 0)
        return fail_system(path, "cut to its last whole row", error);
    return true;
}

bool frag_sweep_file_has(frag_sweep_file *file, const char *name, bool *has, frag_error *error)
{
    *has = file->next < file->count;
    if (!*has)
        return true;
    size_t row = file->next++;
    if (strcmp(file->names[row], name) == 0)
        return true;
    frag_error_in(error, file->path);
    return frag_fail_line(error, row + 1, 0,
                          "is the row of another experiment, recording or build: %s; expected %s. "
                          "Name another file, or start anew with -f",
                          file->names[row], name);
}

bool frag_sweep_file_write(frag_sweep_file *file, const char *rows, size_t length,
                           frag_error *error)
{
    if (file->stream != NULL &&
        (fwrite(rows, 1, length, file->stream) != length || fflush(file->stream) != 0))
        return frag_fail(error, FRAG_E_SYSTEM, "the rows cannot be written: %s", strerror(errno));
    return file->put == NULL || file->put(file->user, rows, length, error);
}

bool frag_sweep_file_finish(frag_sweep_file *file, frag_error *error)
{
    if (file->next < file->count) {
        frag_error_in(error, file->path);
        return frag_fail_line(error, file->next + 1, 0,
                              "is a row that the experiment does not have: %s. Name another file, "
                              "or start anew with -f",
                              file->names[file->next]);
    }
    if (file->stream != NULL && fflush(file->stream) != 0)
        return fail_system(file->path != NULL ? file->path : "stdout", "written", error);
    return true;
}

void frag_sweep_file_close(frag_sweep_file *file)
{
    for (size_t i = 0; i < file->count; i++)
        frag_free(file->names[i]);
    frag_free(file->names);
    frag_free(file->path);
    if (file->stream != NULL && file->stream != stdout) {
        frag_scope_disown(file->stream);
        fclose(file->stream);
    }
    *file = (frag_sweep_file){0};
}
