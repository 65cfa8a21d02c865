/* What every reader makes of files that are right but for one thing: which it refuses and where,
 * and what it takes the others to be. The files are those that the fuzzers begin with. What was
 * changed on purpose is pinned anew:
 *
 *   test_reader_answers            compares with tests/data/answers/readers.txt.zst
 *   test_reader_answers --write    prints what that file should hold (make answers-golden)
 *
 * Sentences are for people and change more often: of each file a sum of them all is pinned. */
#include <dirent.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "allocators/pytorch/pytorch_conf.h"
#include "sim/device/device_description.h"
#include "studies/explain/advice.h"
#include "tests/support/changed_bytes.h"
#include "tests/support/pinned_lines.h"
#include "tests/support/text_recording.h"

#define CORPUS "tests/fuzz/corpus/"
#define FILE_BYTES_MAX ((size_t)1 << 16)
#define LOOK_BYTES 700
#define TOLD_PART 18 /* such a part of the changes is told one by one */
#define BORDER_CHANGES 3240

typedef void teller(frag_text *out, const char *bytes, size_t count);

static uint64_t sentences; /* of the file */

static void tell_error(frag_text *out, const frag_error *error)
{
    pinned_add_text(&sentences, error->sentence);
    frag_text_add(out, "error %d", (int)error->code);
    if (error->line > 0)
        frag_text_add(out, " in line %" PRIu64, error->line);
    if (error->column > 0)
        frag_text_add(out, ", %" PRIu64, error->column);
}

static void tell_recording(frag_text *out, const frag_recording *recording,
                           const frag_findings *findings)
{
    uint64_t sum = 0;
    uint64_t events = 0;
    pinned_add_recording(&sum, recording);
    for (uint32_t i = 0; i < recording->trace_count; i++) {
        pinned_add(&sum, recording->traces[i].stats.peak_requested_bytes);
        pinned_add(&sum, recording->traces[i].stats.observed_reserved_peak_bytes);
        events += recording->traces[i].event_count;
    }
    for (uint32_t i = 0; i < findings->count; i++) {
        const frag_finding *found = &findings->items[i];
        pinned_add_text(&sum, found->kind);
        pinned_add_text(&sentences, found->first);
        pinned_add(&sum, found->count);
        pinned_add(&sum, (uint64_t)found->device << 32 | found->event);
    }
    frag_text_add(out, "%" PRIu64 " events, %u kinds of findings, %08" PRIx32, events,
                  findings->count, (uint32_t)(sum >> 32));
}

static void tell_trace(frag_text *out, const char *bytes, size_t count, frag_trace_format format)
{
    frag_recording recording;
    frag_findings findings;
    frag_error error;
    if (frag_test_load(bytes, count, format, &recording, &findings, &error)) {
        assert_int_equal(error.code, FRAG_E_NONE);
        tell_recording(out, &recording, &findings);
        frag_recording_destroy(&recording);
    } else {
        tell_error(out, &error);
    }
}

static void tell_any(frag_text *out, const char *bytes, size_t count)
{
    tell_trace(out, bytes, count, FRAG_FORMAT_AUTO);
}

static void tell_snapshot(frag_text *out, const char *bytes, size_t count)
{
    tell_trace(out, bytes, count, FRAG_FORMAT_SNAPSHOT);
}

static void tell_text(frag_text *out, const char *bytes, size_t count)
{
    tell_trace(out, bytes, count, FRAG_FORMAT_TEXT);
}

static void tell_golden(frag_text *out, const char *bytes, size_t count)
{
    tell_trace(out, bytes, count, FRAG_FORMAT_GOLDEN);
}

static void tell_device_log(frag_text *out, const char *bytes, size_t count)
{
    tell_any(out, bytes, count);
    frag_text_add(out, "; as segments: ");
    tell_trace(out, bytes, count, FRAG_FORMAT_DEVICE_SEGMENTS);
}

static void tell_message(frag_text *out, const char *bytes, size_t count)
{
    frag_messages messages;
    frag_diagnosis diagnosis;
    frag_advice advice;
    frag_messages_read(&messages, bytes, count);
    const frag_message *best = frag_messages_best(&messages);
    frag_diagnose_text(&messages, &diagnosis);
    frag_advise(&messages, best, &diagnosis, &advice);
    frag_text_add(out, "%zu messages, %s (%s)", messages.count,
                  frag_oom_verdict_name(diagnosis.verdict),
                  frag_confidence_name(diagnosis.confidence));
    for (frag_figure i = 0; i < FRAG_FIGURE_COUNT; i++)
        if (diagnosis.figures[i].is_known)
            frag_text_add(out, " %s=%" PRIu64, frag_figure_field(i), diagnosis.figures[i].bytes);
    for (size_t i = 0; i < advice.count; i++)
        frag_text_add(out, " %s", advice.steps[i].action);
    pinned_add_text(&sentences, diagnosis.because.length > 0 ? diagnosis.because.bytes : "");
    frag_advice_destroy(&advice);
    frag_diagnosis_destroy(&diagnosis);
    frag_messages_destroy(&messages);
}

static void tell_card(frag_text *out, const char *bytes, size_t count)
{
    frag_device_description card;
    frag_error error = {0};
    if (!frag_device_description_parse(bytes, count, &card, &error)) {
        tell_error(out, &error);
        return;
    }
    assert_int_equal(error.code, FRAG_E_NONE);
    frag_text_add(out, "'%s' %" PRIu64 " %s", card.name, card.total_bytes, card.digest);
}

static void tell_settings(frag_text *out, const char *bytes, size_t count)
{
    frag_pytorch_settings settings;
    frag_text text = {0};
    frag_pytorch_settings_reset(&settings, 200 + (count > 0 ? (unsigned char)bytes[0] % 16u : 0));
    frag_text_add_bytes(&text, bytes, count);
    for (char *line = text.bytes; line != NULL && *line != '\0';) {
        char *end = strchr(line, '\n');
        frag_error error = {0};
        if (end != NULL)
            *end++ = '\0';
        if (!frag_pytorch_conf_parse(&settings, line, &error)) {
            tell_error(out, &error);
            frag_text_add(out, "; ");
        }
        line = end;
    }
    uint64_t sum = 0;
    for (int i = 0; i < 16; i++)
        pinned_add(&sum, settings.divisions[i]);
    frag_text_add(out, "%" PRIu64 " %" PRIu64 " %.6f %08" PRIx32, settings.max_split_bytes,
                  settings.large_segment_bytes, settings.gc_threshold, (uint32_t)(sum >> 32));
    frag_text_destroy(&text);
}

/* One for each folder of the corpus; what becomes of a broken database is for its library to say.
 */
static const struct {
    const char *folder;
    const char *suffix; /* of files that are for others; NULL: none */
    teller *tell;
    uint64_t changes; /* of each file */
    bool is_binary;
} readers[] = {
    {"device_log", ".records", tell_device_log, 360, true},
    {"fgt", NULL, tell_any, 360, true},
    {"golden", "-1", tell_golden, 900, false},
    {"kineto_trace", NULL, tell_any, 1200, false},
    {"memory_timeline", NULL, tell_any, 600, false},
    {"message", NULL, tell_message, 600, false},
    {"minimalloc_csv", NULL, tell_any, 900, false},
    {"pytorch_conf", NULL, tell_settings, 1200, false},
    {"rmm_log", NULL, tell_any, 1200, false},
    {"snapshot_text", NULL, tell_snapshot, 2400, false},
    {"stalloc_log", NULL, tell_any, 1200, false},
    {"text_trace", NULL, tell_text, 2400, false},
    {"yaml", NULL, tell_card, 900, false},
    {"pickle", ".py", tell_snapshot, 600, true},
};

/* From how many of its bytes on a file is taken for what, and where 'x' stands behind them. */
#define NAME(id, table, name) name,
static const char *const format_names[] = {"auto", FRAG_FORMATS(NAME, NAME, NAME)};
#undef NAME

static void tell_detection(frag_text *out, const changed_file *file, bool has_x)
{
    unsigned char copy[LOOK_BYTES + 1];
    frag_trace_format last = FRAG_FORMAT_COUNT;
    frag_text_add(out, has_x ? "  is like, with x:" : "  is like:");
    for (size_t count = 0; count <= file->count && count < LOOK_BYTES; count++) {
        frag_trace_format format = FRAG_FORMAT_AUTO; /* none */
        memcpy(copy, file->bytes, count);
        copy[count] = 'x';
        (void)frag_trace_format_detect(copy, count + has_x, &format);
        if (format != last)
            frag_text_add(out, " %s from %zu", format_names[format], count);
        last = format;
    }
    frag_text_add(out, "\n");
}

static bool ends_with(const char *name, const char *suffix)
{
    size_t length = strlen(name);
    return suffix != NULL && length >= strlen(suffix) &&
           strcmp(name + length - strlen(suffix), suffix) == 0;
}

/* false: there is no change of that number. */
static bool tell_change(frag_text *out, size_t reader, const changed_file *file, bool is_border,
                        uint64_t number)
{
    frag_text changed = {0};
    frag_text what = {0};
    bool is_changed = true;
    if (is_border)
        is_changed = changed_borders(file, number, &changed, &what);
    else
        changed_bytes(file, number, &changed, &what);
    if (is_changed) {
        frag_text_add(out, "  %s: ", what.bytes);
        readers[reader].tell(out, changed.length > 0 ? changed.bytes : "", changed.length);
        frag_text_add(out, "\n");
    }
    frag_text_destroy(&what);
    frag_text_destroy(&changed);
    return is_changed;
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
    changed_file file = {bytes, count, readers[reader].is_binary};
    sentences = 0;
    tell_detection(out, &file, false);
    tell_detection(out, &file, true);
    uint64_t changes = readers[reader].changes;
    for (uint64_t i = 0; i < changes / TOLD_PART; i++)
        tell_change(out, reader, &file, false, i);
    size_t from = out->length;
    for (uint64_t i = changes / TOLD_PART; i < changes; i++)
        tell_change(out, reader, &file, false, i);
    pinned_fold(out, from, "  more changes");
    frag_text_add(out, "  sentences: %08" PRIx32 "\n", (uint32_t)(sentences >> 32));
    from = out->length;
    for (uint64_t i = 0; i < BORDER_CHANGES && !file.is_binary; i++)
        if (!tell_change(out, reader, &file, true, i))
            break;
    frag_text_add(out, "%016" PRIx64 "\n", sentences);
    pinned_fold(out, from, "  numbers on borders");
    frag_input_close(input);
    frag_text_destroy(&path);
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

static const pinned_lines pinned = {"tests/data/answers/readers.txt.zst", tell_all,
                                    "answers-golden"};

int main(int argc, char **argv)
{
    return pinned_lines_test(&pinned, argc, argv);
}
