/* For O_TMPFILE; some builds define it for all files. */
#define _GNU_SOURCE 1

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/formats/codec.h"
#include "base/memory.h"
#include "base/scope.h"
#include "base/text.h"

#define RAW_BYTES ((size_t)1 << 18)
#define WINDOW_BYTES ((size_t)1 << 20)
/* What is decoded at once: files up to this size whose content is no larger than that. */
#define WHOLE_RAW_BYTES_MAX ((size_t)2 << 20)
#define WHOLE_BYTES_MAX ((size_t)16 << 20)

struct frag_input {
    char *name;
    int descriptor; /* -1: memory */
    bool owns_descriptor;
    frag_decoder *decoder; /* NULL: plain */
    bool is_decoder_done;
    unsigned char *raw; /* compressed bytes not yet decoded */
    size_t raw_start;
    size_t raw_end;
    size_t raw_capacity;
    bool is_raw_at_end;
    bool is_seekable; /* from its first byte on, were it not compressed */
    const unsigned char *memory;
    size_t memory_left;
    unsigned char *window;
    size_t window_start;
    size_t window_end;
    size_t window_capacity;
    uint64_t offset;
    uint64_t raw_offset;
    uint64_t raw_bytes;
    const frag_context *context; /* NULL: nobody stops it */
};

/* Reads up to count raw bytes; *got 0 at the end. */
static bool read_raw(frag_input *input, unsigned char *out, size_t count, size_t *got,
                     frag_error *error)
{
    *got = 0;
    if (input->descriptor < 0) {
        *got = count < input->memory_left ? count : input->memory_left;
        memcpy(out, input->memory, *got);
        input->memory += *got;
        input->memory_left -= *got;
    } else {
        ssize_t result;
        do
            result = read(input->descriptor, out, count);
        while (result < 0 && errno == EINTR);
        if (result < 0)
            return frag_fail(error, FRAG_E_SYSTEM, "cannot be read (%s); expected a readable file",
                             strerror(errno));
        *got = (size_t)result;
    }
    input->raw_offset += *got;
    return true;
}

static bool fill_raw(frag_input *input, frag_error *error)
{
    memmove(input->raw, input->raw + input->raw_start, input->raw_end - input->raw_start);
    input->raw_end -= input->raw_start;
    input->raw_start = 0;
    size_t got = 0;
    if (!read_raw(input, input->raw + input->raw_end, input->raw_capacity - input->raw_end, &got,
                  error))
        return false;
    input->raw_end += got;
    input->is_raw_at_end = got == 0;
    return true;
}

/* Decodes the first frame of a small file into a window of its size; what cannot be decoded so is
 * left to steps. false: the file cannot be read. */
static bool decode_whole(frag_input *input, frag_error *error)
{
    while (!input->is_raw_at_end && input->raw_end < input->raw_capacity)
        if (!fill_raw(input, error))
            return false;
    size_t bytes = frag_decoder_frame_bytes(input->decoder, input->raw, input->raw_end);
    /* Memory that stays untouched costs nothing. */
    if (bytes == SIZE_MAX && input->raw_end <= WHOLE_BYTES_MAX / 32)
        bytes = WHOLE_BYTES_MAX;
    if (bytes == 0 || bytes > WHOLE_BYTES_MAX)
        return true;
    if (bytes > input->window_capacity) {
        frag_free(input->window);
        input->window = frag_memory_large(bytes);
        input->window_capacity = bytes;
    }
    input->is_decoder_done =
        frag_decoder_frame(input->decoder, input->raw, input->raw_end, &input->raw_start,
                           input->window, input->window_capacity, &input->window_end);
    return true;
}

/* What is not compressed begins in the window, where it is to be. */
static frag_input *start(frag_input *input, frag_error *error)
{
    /* Not set to zero, which would cost more than reading a small file. */
    input->window_capacity = WINDOW_BYTES;
    input->window = frag_realloc(NULL, input->window_capacity, 1);
    /* Four bytes tell the codec; a pipe may deliver them one by one. */
    size_t got = 1;
    while (input->window_end < 4 && got > 0) {
        if (!read_raw(input, input->window + input->window_end, RAW_BYTES - input->window_end, &got,
                      error)) {
            frag_error_in(error, input->name);
            frag_input_close(input);
            return NULL;
        }
        input->window_end += got;
    }
    frag_codec codec = frag_codec_detect(input->window, input->window_end);
    if (codec == FRAG_CODEC_PLAIN)
        return input;
    input->decoder = frag_decoder_create(codec);
    bool is_small = input->raw_bytes >= RAW_BYTES && input->raw_bytes < WHOLE_RAW_BYTES_MAX;
    input->raw_capacity = is_small ? (size_t)input->raw_bytes + 1 : RAW_BYTES;
    input->raw = frag_realloc(NULL, input->raw_capacity, 1);
    input->raw_end = input->window_end;
    memcpy(input->raw, input->window, input->raw_end);
    input->window_end = 0;
    bool is_whole = input->raw_bytes > 0 && input->raw_bytes < input->raw_capacity;
    if (is_whole && !decode_whole(input, error)) {
        frag_error_in(error, input->name);
        frag_input_close(input);
        return NULL;
    }
    return input;
}

static void release_descriptor(void *thing, size_t bytes)
{
    const frag_input *input = thing;
    (void)bytes;
    close(input->descriptor);
}

frag_input *frag_input_open(const char *path, frag_error *error)
{
    bool is_stdin = strcmp(path, "-") == 0;
    if (path[0] == '\0') {
        frag_fail(error, FRAG_E_INPUT,
                  "the name of an input is empty; name a file, or - for stdin");
        return NULL;
    }
    frag_input *input = frag_alloc(1, sizeof *input);
    input->name = frag_copy_text(is_stdin ? "stdin" : path);
    int descriptor = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    struct stat status;
    const char *problem = NULL;
    if (descriptor < 0 || fstat(descriptor, &status) != 0)
        problem = strerror(errno);
    else if (S_ISDIR(status.st_mode))
        problem = "it is a folder; name the files in it";
    if (problem != NULL) {
        if (descriptor >= 0 && !is_stdin)
            close(descriptor);
        frag_fail(error, FRAG_E_INPUT, "cannot be opened (%s); expected a readable file", problem);
        frag_error_in(error, path);
        frag_free(input->name);
        frag_free(input);
        return NULL;
    }
    input->descriptor = descriptor;
    input->owns_descriptor = !is_stdin;
    if (input->owns_descriptor)
        frag_scope_own(input, 0, release_descriptor);
    input->raw_bytes = S_ISREG(status.st_mode) ? (uint64_t)status.st_size : 0;
    input->is_seekable = S_ISREG(status.st_mode) && !is_stdin;
    return start(input, error);
}

frag_input *frag_input_from_descriptor(int descriptor, const char *name, frag_error *error)
{
    struct stat status;
    bool is_open = fstat(descriptor, &status) == 0;
    if (!is_open || S_ISDIR(status.st_mode)) {
        frag_fail(error, FRAG_E_INPUT,
                  "the descriptor %d cannot be read (%s); expected one of an open file", descriptor,
                  is_open ? "it is a directory" : strerror(errno));
        frag_error_in(error, name);
        return NULL;
    }
    frag_input *input = frag_alloc(1, sizeof *input);
    input->name = frag_copy_text(name);
    input->descriptor = descriptor;
    /* The size is not that of what is left, where part was read before. */
    bool is_fresh = S_ISREG(status.st_mode) && lseek(descriptor, 0, SEEK_CUR) == 0;
    input->raw_bytes = is_fresh ? (uint64_t)status.st_size : 0;
    return start(input, error);
}

frag_input *frag_input_from_memory(const void *bytes, size_t count, const char *name)
{
    frag_input *input = frag_alloc(1, sizeof *input);
    input->name = frag_copy_text(name);
    input->descriptor = -1;
    input->memory = bytes;
    input->memory_left = count;
    input->raw_bytes = count;
    input->is_seekable = true;
    frag_error none = {0};
    return start(input, &none);
}

void frag_input_close(frag_input *input)
{
    if (input == NULL)
        return;
    if (input->owns_descriptor) {
        frag_scope_disown(input);
        close(input->descriptor);
    }
    frag_decoder_destroy(input->decoder);
    frag_free(input->raw);
    frag_free(input->window);
    frag_free(input->name);
    frag_free(input);
}

void frag_input_stop_by(frag_input *input, const frag_context *context)
{
    input->context = context;
}

/* Adds bytes to the window; *grew false: the input is at its end. */
static bool fill_window(frag_input *input, bool *grew, frag_error *error)
{
    unsigned char *out = input->window + input->window_end;
    size_t room = input->window_capacity - input->window_end;
    *grew = false;
    if (frag_is_cancelled(input->context))
        return frag_fail(error, FRAG_E_SYSTEM, "reading was cancelled");
    if (input->decoder == NULL) {
        size_t got = 0;
        if (!read_raw(input, out, room, &got, error))
            return false;
        input->window_end += got;
        *grew = got > 0;
        return true;
    }
    for (;;) {
        if (input->raw_start == input->raw_end && !input->is_raw_at_end && !fill_raw(input, error))
            return false;
        bool is_starved = input->raw_start == input->raw_end;
        if (is_starved && input->is_decoder_done)
            return true;
        size_t in_used = 0;
        size_t out_used = 0;
        if (!frag_decoder_step(input->decoder, input->raw + input->raw_start,
                               input->raw_end - input->raw_start, &in_used, out, room, &out_used,
                               &input->is_decoder_done, error))
            return false;
        input->raw_start += in_used;
        input->window_end += out_used;
        if (out_used > 0) {
            *grew = true;
            return true;
        }
        if (is_starved && in_used == 0 && !input->is_decoder_done)
            return frag_fail(error, FRAG_E_INPUT,
                             "the compressed data ends in the middle; the file is cut off");
        if (!is_starved && in_used == 0)
            return frag_fail(error, FRAG_E_INPUT,
                             "the compressed data makes no progress; the file is damaged");
    }
}

bool frag_input_peek(frag_input *input, size_t wanted, const unsigned char **bytes, size_t *count,
                     frag_error *error)
{
    FRAG_ASSERT(wanted <= ((size_t)16 << 20));
    size_t held = input->window_end - input->window_start;
    bool is_at_end =
        input->is_decoder_done && input->is_raw_at_end && input->raw_start == input->raw_end;
    if (held < wanted && !is_at_end) {
        memmove(input->window, input->window + input->window_start, held);
        input->window_start = 0;
        input->window_end = held;
        if (input->window_capacity < wanted) {
            while (input->window_capacity < wanted)
                input->window_capacity *= 2;
            input->window = frag_realloc(input->window, input->window_capacity, 1);
        }
        bool grew = true;
        while (grew && input->window_end < wanted)
            if (!fill_window(input, &grew, error)) {
                if (error != NULL && !error->has_offset && error->code == FRAG_E_INPUT) {
                    error->offset = input->offset + input->window_end;
                    error->has_offset = true;
                }
                return frag_error_in(error, input->name);
            }
    }
    *bytes = input->window + input->window_start;
    *count = input->window_end - input->window_start;
    return true;
}

void frag_input_skip(frag_input *input, size_t count)
{
    FRAG_ASSERT(count <= input->window_end - input->window_start);
    input->window_start += count;
    input->offset += count;
}

bool frag_input_read(frag_input *input, void *out, size_t count, frag_error *error)
{
    unsigned char *to = out;
    while (count > 0) {
        size_t part = count < WINDOW_BYTES ? count : WINDOW_BYTES;
        const unsigned char *bytes = NULL;
        size_t visible = 0;
        if (!frag_input_peek(input, part, &bytes, &visible, error))
            return false;
        if (visible < part) {
            frag_fail_at(error, input->offset + visible, "the file ends; expected %zu more bytes",
                         count - visible);
            return frag_error_in(error, input->name);
        }
        memcpy(to, bytes, part);
        frag_input_skip(input, part);
        to += part;
        count -= part;
    }
    return true;
}

size_t frag_input_visible_bytes(const frag_input *input)
{
    return input->window_end - input->window_start;
}

bool frag_input_seek(frag_input *input, uint64_t offset)
{
    if (!input->is_seekable || input->decoder != NULL || offset > input->raw_bytes)
        return false;
    if (offset >= input->offset && offset - input->offset <= frag_input_visible_bytes(input)) {
        frag_input_skip(input, (size_t)(offset - input->offset));
        return true;
    }
    if (input->descriptor < 0) {
        input->memory = input->memory - input->raw_offset + offset;
        input->memory_left = (size_t)(input->raw_bytes - offset);
    } else if (lseek(input->descriptor, (off_t)offset, SEEK_SET) < 0) {
        return false;
    }
    input->window_start = input->window_end = 0;
    input->offset = input->raw_offset = offset;
    return true;
}

uint64_t frag_input_offset(const frag_input *input)
{
    return input->offset;
}

uint64_t frag_input_raw_offset(const frag_input *input)
{
    return input->raw_offset;
}

uint64_t frag_input_raw_bytes(const frag_input *input)
{
    return input->raw_bytes;
}

void *frag_input_grow(const frag_input *input, void *items, size_t *capacity, size_t count,
                      size_t item_bytes)
{
    bool is_foreseen = count * item_bytes >= WHOLE_BYTES_MAX && input->raw_bytes > 0 &&
                       input->raw_offset >= input->raw_bytes / 16;
    if (count <= *capacity || !is_foreseen)
        return frag_grow(items, capacity, count, item_bytes);
    double whole = (double)input->raw_bytes / (double)input->raw_offset * 1.02;
    *capacity = count / 8 + (size_t)((double)count * (whole > 1 ? whole : 1));
    return frag_realloc(items, *capacity, item_bytes);
}

bool frag_input_is_compressed(const frag_input *input)
{
    return input->decoder != NULL;
}

bool frag_input_outgrows(const frag_input *input, uint64_t count, uint64_t free, uint64_t each_byte)
{
    return frag_input_is_compressed(input) && count > free &&
           (count - free - 1) / each_byte >= input->raw_offset;
}

const char *frag_input_plain_path(const frag_input *input)
{
    bool is_plain = input->owns_descriptor && input->decoder == NULL && input->raw_bytes > 0;
    return is_plain ? input->name : NULL;
}

const char *frag_input_name(const frag_input *input)
{
    return input->name;
}

struct frag_output {
    char *path;      /* NULL: stdout */
    char *temporary; /* NULL: the bytes have no name yet, or none is needed */
    FILE *stream;
    bool is_unnamed; /* bytes on the disk that no folder lists; they get a name when they are whole
                      */
};

/* A name in the folder of path, for bytes on their way to it. Short, so that path may be as long as
 * the system allows. */
static char *name_beside(const char *path, const char *ending)
{
    frag_text name = {0};
    frag_text_add(&name, "%.*s.fraglab-%s", (int)frag_path_folder_bytes(path), path, ending);
    char *copy = frag_copy_text(name.bytes);
    frag_text_destroy(&name);
    return copy;
}

#ifdef O_TMPFILE
/* However the process ends, nothing is left of such a file; not every file system has them, and
 * only /proc can give them a name, which a bare root may lack. */
static int open_unnamed(const char *path)
{
    if (access("/proc/self/fd", X_OK) != 0)
        return -1;
    char *folder = frag_copy_text(path);
    char *slash = strrchr(folder, '/');
    if (slash != NULL)
        slash[slash == folder ? 1 : 0] = '\0';
    int descriptor =
        open(slash == NULL ? "." : folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, (mode_t)0666);
    frag_free(folder);
    return descriptor;
}
#else
/* Only Linux has such files. */
static int open_unnamed(const char *path)
{
    (void)path;
    return -1;
}
#endif

static int open_temporary(const char *path, char **name)
{
    *name = name_beside(path, "XXXXXX");
    int descriptor = mkstemp(*name);
    if (descriptor < 0) {
        frag_free(*name);
        *name = NULL;
        return -1;
    }
    mode_t mask = umask(0);
    umask(mask);
    (void)!fchmod(descriptor, 0666 & ~mask);
    return descriptor;
}

/* Gives the bytes a name beside path, from which they can be renamed. */
static bool name_unnamed(frag_output *output)
{
    char descriptor[64];
    snprintf(descriptor, sizeof descriptor, "/proc/self/fd/%d", fileno(output->stream));
    for (unsigned number = 0; number < 1000; number++) {
        char ending[64];
        snprintf(ending, sizeof ending, "%ld-%u", (long)getpid(), number);
        output->temporary = name_beside(output->path, ending);
        if (linkat(AT_FDCWD, descriptor, AT_FDCWD, output->temporary, AT_SYMLINK_FOLLOW) == 0)
            return true;
        frag_free(output->temporary);
        output->temporary = NULL;
        if (errno != EEXIST)
            return false;
    }
    return false;
}

/* Leaves the destination as it was. */
static void close_output(void *thing, size_t bytes)
{
    const frag_output *output = thing;
    (void)bytes;
    if (output->stream != NULL && output->stream != stdout)
        fclose(output->stream);
    if (output->temporary != NULL)
        unlink(output->temporary);
}

bool frag_output_is_stdout(const char *path)
{
    return strcmp(path, "-") == 0 || strcmp(path, "/dev/stdout") == 0;
}

frag_output *frag_output_open(const char *path, bool may_overwrite, frag_error *error)
{
    frag_output *output = frag_alloc(1, sizeof *output);
    if (frag_output_is_stdout(path)) {
        output->stream = stdout;
        return output;
    }
    if (path[0] == '\0') {
        frag_fail(error, FRAG_E_USAGE, "the name of an output file is empty; name one");
        frag_free(output);
        return NULL;
    }
    struct stat status;
    bool exists = stat(path, &status) == 0;
    if (exists && S_ISREG(status.st_mode) && !may_overwrite) {
        frag_fail(error, FRAG_E_USAGE, "the file exists; add -f to overwrite it");
        frag_error_in(error, path);
        frag_free(output);
        return NULL;
    }
    /* A symbolic link stays one: what it points at is replaced. */
    struct stat link;
    if (exists && lstat(path, &link) == 0 && S_ISLNK(link.st_mode))
        output->path = realpath(path, NULL);
    frag_scope_add(output->path);
    if (output->path == NULL)
        output->path = frag_copy_text(path);
    if (exists && !S_ISREG(status.st_mode)) {
        /* /dev/null, a named pipe: written in place, nothing to rename. */
        output->stream = fopen(path, "wb");
    } else {
        int descriptor = open_unnamed(output->path);
        output->is_unnamed = descriptor >= 0;
        if (descriptor < 0)
            descriptor = open_temporary(output->path, &output->temporary);
        if (descriptor >= 0 && exists)
            (void)!fchmod(descriptor, status.st_mode & 0777);
        if (descriptor >= 0)
            output->stream = fdopen(descriptor, "wb");
    }
    frag_scope_own(output, 0, close_output);
    if (output->stream == NULL) {
        frag_fail(error, FRAG_E_SYSTEM, "cannot be written (%s); choose a writable place",
                  strerror(errno));
        frag_error_in(error, path);
        frag_output_abandon(output);
        return NULL;
    }
    return output;
}

FILE *frag_output_stream(frag_output *output)
{
    return output->stream;
}

static void destroy_output(frag_output *output)
{
    frag_free(output->path);
    frag_free(output->temporary);
    frag_free(output);
}

/* Why an earlier write failed, which nobody kept: nothing is whole any more, and one more fails the
 * same way. */
static void fail_again(FILE *stream)
{
    clearerr(stream);
    if (fputc('\n', stream) != EOF)
        (void)fflush(stream);
}

bool frag_output_finish(frag_output *output, frag_error *error)
{
    bool is_stdout = output->stream == stdout;
    bool has_failed = ferror(output->stream) != 0;
    bool ok =
        fflush(output->stream) == 0 && !has_failed && (!output->is_unnamed || name_unnamed(output));
    if (has_failed)
        fail_again(output->stream);
    int problem = errno;
    frag_scope_disown(output);
    if (!is_stdout && fclose(output->stream) != 0 && ok) {
        ok = false;
        problem = errno;
    }
    if (ok && output->temporary != NULL && rename(output->temporary, output->path) != 0) {
        ok = false;
        problem = errno;
    }
    if (!ok) {
        frag_fail(error, FRAG_E_SYSTEM, "writing failed (%s); %s", strerror(problem),
                  is_stdout ? "what it got is not whole" : "nothing was put in place");
        frag_error_in(error, is_stdout ? "stdout" : output->path);
        if (output->temporary != NULL)
            unlink(output->temporary);
    }
    destroy_output(output);
    return ok;
}

void frag_output_abandon(frag_output *output)
{
    if (output == NULL)
        return;
    frag_scope_disown(output);
    close_output(output, 0);
    destroy_output(output);
}

bool frag_output_end(frag_output *output, bool is_whole, frag_error *error)
{
    if (output != NULL && is_whole)
        return frag_output_finish(output, error);
    frag_output_abandon(output);
    return true;
}
