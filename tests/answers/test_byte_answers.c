/* What readers say, whole, of files with one thing changed on purpose: numbers that meet other
 * numbers of the file, numbers on borders wherever they stand, every byte one more and one less.
 * The files are those that the fuzzers begin with. What was changed on purpose is pinned anew:
 *
 *   test_byte_answers            compares with tests/data/answers/bytes.txt.zst
 *   test_byte_answers --write    prints what that file should hold (make answers-golden);
 *                                with FRAG_PINNED_WHOLE in the environment every answer whole */
#include <dirent.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/changed_bytes.h"
#include "tests/support/pinned_lines.h"

#define CORPUS "tests/fuzz/corpus/"

enum {
    FILE_BYTES_MAX = 1 << 16,
    PAIRS = 900,
    BORDERS = 108, /* of each number */
    NUMBERS_MAX = 700,
    BORDERS_DRAWN = 3,
    BYTES_MAX = 1 << 11, /* of a text; of the others all */
};

static const struct {
    const char *folder;
    const char *suffix; /* of files that are for others; NULL: none */
    frag_trace_format format;
    bool is_binary;
} readers[] = {
    {"device_log", ".records", FRAG_FORMAT_AUTO, true},
    {"device_log", ".records", FRAG_FORMAT_DEVICE_SEGMENTS, true},
    {"golden", "-1", FRAG_FORMAT_GOLDEN, false},
    {"kineto_trace", NULL, FRAG_FORMAT_AUTO, false},
    {"memory_timeline", NULL, FRAG_FORMAT_AUTO, false},
    {"minimalloc_csv", NULL, FRAG_FORMAT_AUTO, false},
    {"rmm_log", NULL, FRAG_FORMAT_AUTO, false},
    {"snapshot_text", NULL, FRAG_FORMAT_SNAPSHOT, false},
    {"stalloc_log", NULL, FRAG_FORMAT_AUTO, false},
    {"text_trace", NULL, FRAG_FORMAT_TEXT, false},
    {"pickle", ".py", FRAG_FORMAT_SNAPSHOT, true},
};

static void tell_text(frag_text *out, size_t reader, frag_text *changed, frag_text *what)
{
    const frag_load_options options = {
        .format = readers[reader].format, .with_sites = true, .with_columns = true};
    frag_text_add(out, "  %s: ", what->bytes);
    pinned_tell_load(out, changed->length > 0 ? changed->bytes : "", changed->length, &options);
    frag_text_destroy(what);
    frag_text_destroy(changed);
}

static void tell_pairs(frag_text *out, size_t reader, const changed_file *file)
{
    for (uint64_t i = 0; i < PAIRS; i++) {
        frag_text changed = {0}, what = {0};
        changed_pairs(file, i, &changed, &what);
        tell_text(out, reader, &changed, &what);
    }
}

/* Of each number some of the borders, others of each. */
static void tell_borders(frag_text *out, size_t reader, const changed_file *file)
{
    bool has_more = true;
    for (uint64_t number = 0; has_more && number < NUMBERS_MAX; number++)
        for (uint64_t i = 0; has_more && i < BORDERS_DRAWN; i++) {
            frag_text changed = {0}, what = {0};
            uint64_t border = (number * 37 + i * 41) % BORDERS;
            has_more = changed_borders(file, number * BORDERS + border, &changed, &what);
            if (has_more)
                tell_text(out, reader, &changed, &what);
        }
}

static void tell_bytes(frag_text *out, size_t reader, const changed_file *file)
{
    size_t step = file->is_binary ? 1 : 1 + 2 * file->count / BYTES_MAX;
    for (uint64_t i = 0;; i += step) {
        frag_text changed = {0}, what = {0};
        if (!changed_in_turn(file, i, &changed, &what))
            break;
        tell_text(out, reader, &changed, &what);
    }
}

static void tell_file(frag_text *out, size_t reader, const char *name)
{
    frag_text path = {0};
    const unsigned char *bytes = NULL;
    size_t count = 0;
    frag_error error = {0};
    frag_text_add(&path, CORPUS "%s/%s", readers[reader].folder, name);
    frag_text_add(out, "%s\n", path.bytes + sizeof CORPUS - 1);
    frag_input *input = frag_input_open(path.bytes, &error);
    assert_non_null(input);
    assert_true(frag_input_peek(input, FILE_BYTES_MAX, &bytes, &count, &error));
    const changed_file file = {bytes, count, readers[reader].is_binary};
    size_t from = out->length;
    if (!file.is_binary) {
        tell_pairs(out, reader, &file);
        pinned_fold(out, from, "  numbers that meet");
        from = out->length;
        tell_borders(out, reader, &file);
        pinned_fold(out, from, "  numbers on borders");
        from = out->length;
    }
    tell_bytes(out, reader, &file);
    pinned_fold(out, from, "  bytes");
    frag_input_close(input);
    frag_text_destroy(&path);
}

static bool ends_with(const char *name, const char *suffix)
{
    size_t length = strlen(name);
    return suffix != NULL && length >= strlen(suffix) &&
           strcmp(name + length - strlen(suffix), suffix) == 0;
}

static void tell_all(frag_text *out)
{
    for (size_t i = 0; i < sizeof readers / sizeof readers[0]; i++) {
        frag_text folder = {0};
        struct dirent **found = NULL;
        frag_text_add(&folder, CORPUS "%s", readers[i].folder);
        int count = scandir(folder.bytes, &found, NULL, alphasort);
        assert_true(count > 2);
        for (int j = 0; j < count; j++) {
            if (found[j]->d_name[0] != '.' && !ends_with(found[j]->d_name, readers[i].suffix))
                tell_file(out, i, found[j]->d_name);
            free(found[j]);
        }
        free(found);
        frag_text_destroy(&folder);
    }
}

static const pinned_lines pinned = {"tests/data/answers/bytes.txt.zst", tell_all, "answers-golden"};

int main(int argc, char **argv)
{
    return pinned_lines_test(&pinned, argc, argv);
}
