/* Imports a snapshot of torch.cuda.memory, as a pickle, JSON or web page, as a recording. */
#include "traces/formats.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "traces/format_look.h"
#include "traces/torch/plot_page.h"
#include "traces/torch/pools/snapshot_pools.h"
#include "traces/torch/pools/snapshot_restores.h"
#include "traces/torch/profile_plot.h"
#include "traces/torch/snapshot_emit.h"
#include "traces/torch/snapshot_page.h"
#include "traces/torch/history/snapshot_parse.h"
#include "traces/torch/history/snapshot_skipped.h"

/* What a snapshot shows of the PyTorch that wrote it. A key is there from a version on. */
typedef struct version_sign {
    unsigned minor; /* of 2.minor, the first to write it */
    bool is_known;  /* the snapshot has what the key would be in */
    bool is_there;
} version_sign;

enum { NEWEST_MINOR = 15 };

static bool has_entry_key(const frag_snapshot *snapshot, uint32_t name)
{
    return (snapshot->entry_keys >> name & 1) != 0;
}

static bool has_setting(const frag_snapshot *snapshot, uint32_t name)
{
    frag_pickle_value value = 0;
    return frag_snapshot_get(snapshot->pickle, snapshot->settings_dict, name, &value);
}

static void add_version(frag_builder *builder, const char *key, unsigned minor)
{
    char text[16];
    snprintf(text, sizeof text, "2.%u", minor);
    frag_builder_metadata(builder, key, text);
}

static void add_versions(const frag_snapshot *snapshot, frag_builder *builder)
{
    bool has_entries = has_entry_key(snapshot, FRAG_SNAPSHOT_ACTION);
    bool has_segments = snapshot->segment_count > 0;
    const version_sign signs[] = {
        {1, has_segments, snapshot->has_expandable_key},
        {1, snapshot->has_blocks, snapshot->has_block_addresses},
        {2, has_entries, has_entry_key(snapshot, FRAG_SNAPSHOT_TIME_US)},
        {2, true, snapshot->has_settings},
        {6, true, snapshot->has_annotations},
        {9, has_entries, has_entry_key(snapshot, FRAG_SNAPSHOT_COMPILE_CONTEXT)},
        {9, snapshot->has_settings, has_setting(snapshot, FRAG_SNAPSHOT_STREAM_REUSE)},
        {10, has_entries, has_entry_key(snapshot, FRAG_SNAPSHOT_USER_METADATA)},
        {12, has_entries, has_entry_key(snapshot, FRAG_SNAPSHOT_POOL_ID)},
        {15, true, snapshot->has_host},
    };
    unsigned min = 0;
    unsigned max = NEWEST_MINOR;
    for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++)
        if (signs[i].is_there && signs[i].minor > min)
            min = signs[i].minor;
    for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++)
        if (signs[i].is_known && !signs[i].is_there && signs[i].minor - 1 < max)
            max = signs[i].minor - 1;
    if (max < min) /* keys were removed by hand */
        max = NEWEST_MINOR;
    add_version(builder, "torch.version_min", min);
    add_version(builder, "torch.version_max", max);
    add_version(builder, "torch.version_hint", max);
}

/* ---- settings */

static void divisions_text(const frag_snapshot_settings *settings, frag_text *text)
{
    for (unsigned i = 0; i < 16; i++)
        if (settings->divisions[i] != 0)
            frag_text_add(text, "%s%u:%" PRIu64, text->length > 0 ? "," : "", 1u << i,
                          settings->divisions[i]);
}

/* What is known while a snapshot becomes a recording. */
typedef struct importer {
    frag_snapshot *snapshot;
    frag_recording *recording;
    frag_builder *builder;
    frag_snapshot_sites sites;
    frag_findings *findings;
} importer;

static const char *text_of(importer *state, uint32_t text)
{
    return frag_strings_get(&state->recording->strings,
                            frag_snapshot_sites_string(&state->sites, text));
}

/* false: the value is of no kind that a setting has. */
static bool setting_text(importer *state, uint32_t key, frag_pickle_value value, frag_text *text)
{
    const frag_pickle *pickle = state->snapshot->pickle;
    bool is_true = false;
    int64_t number = 0;
    double ratio = 0;
    uint32_t string = 0;
    if (key == FRAG_SNAPSHOT_ROUNDUP)
        divisions_text(&state->snapshot->settings, text);
    else if (frag_pickle_bool(pickle, value, &is_true))
        frag_text_add(text, "%s", is_true ? "true" : "false");
    else if (frag_pickle_signed(pickle, value, &number)) /* 2^64 - 1 is -1, unlimited */
        frag_text_add(text, "%" PRId64, number);
    else if (frag_pickle_float(pickle, value, &ratio))
        frag_text_add(text, "%.15g", ratio);
    else if (frag_pickle_string(pickle, value, &string))
        frag_text_add(text, "%s", text_of(state, string));
    return text->bytes != NULL;
}

static void add_settings(importer *state)
{
    const frag_pickle *pickle = state->snapshot->pickle;
    frag_pickle_walk walk = frag_pickle_begin(pickle, state->snapshot->settings_dict);
    frag_pickle_value key = 0;
    frag_pickle_value value = 0;
    while (frag_pickle_next(pickle, &walk, &key) && frag_pickle_next(pickle, &walk, &value)) {
        uint32_t id = 0;
        frag_text name = {0};
        frag_text text = {0};
        if (!frag_pickle_string(pickle, key, &id) || !setting_text(state, id, value, &text)) {
            frag_text_destroy(&text);
            continue;
        }
        frag_text_add(&name, "torch.%s", id == FRAG_SNAPSHOT_CONF ? "conf" : text_of(state, id));
        frag_builder_metadata(state->builder, name.bytes, text.bytes);
        frag_text_destroy(&name);
        frag_text_destroy(&text);
    }
}

/* ---- what a person should know about the recording */

static bool is_round_number(uint64_t count)
{
    while (count >= 10 && count % 10 == 0)
        count /= 10;
    return count < 10;
}

static void note_device(importer *state, uint32_t ordinal, const frag_rewound *rewound)
{
    const frag_snapshot_device *device = &state->snapshot->devices[ordinal];
    uint64_t count = device->recorded_count;
    if (count == 0)
        frag_findings_add(state->findings, "no-history",
                          "the device has memory but no history: _record_memory_history was not on",
                          false, ordinal, 0, "%llu segments",
                          (unsigned long long)device->segment_count);
    if (count >= 1000 && is_round_number(count))
        frag_findings_add(
            state->findings, "history-may-be-cut",
            "a history of a round number of entries has probably lost its beginning (max_entries)",
            false, ordinal, 0, "%llu entries", (unsigned long long)count);
    if (rewound->initial_count > 0 && count > 0)
        frag_findings_add(state->findings, "began-in-use",
                          "memory was in use before the history began; its order of allocation is "
                          "not known and is taken to be that of the addresses",
                          false, ordinal, 0, "%llu blocks in %llu segments",
                          (unsigned long long)rewound->initial_count,
                          (unsigned long long)rewound->range_count);
}

static void add_device(importer *state, uint32_t ordinal)
{
    if (frag_profile_plot_is_one(state->snapshot)) {
        frag_profile_plot_emit(state->snapshot, ordinal, &state->sites, state->builder,
                               state->findings);
        return;
    }
    frag_rewound rewound;
    frag_snapshot_rewind(state->snapshot, ordinal, &rewound, state->findings);
    note_device(state, ordinal, &rewound);
    frag_snapshot_restores_find(state->snapshot, ordinal, &rewound, state->findings);
    frag_snapshot_pools_infer(state->snapshot, ordinal, &rewound, state->findings);
    frag_snapshot_emit(state->snapshot, ordinal, &rewound, &state->sites, state->builder,
                       state->findings);
    frag_rewound_destroy(&rewound);
}

static bool add_devices(importer *state, frag_error *error)
{
    const frag_snapshot *snapshot = state->snapshot;
    bool is_empty = true;
    if (snapshot->entry_count + snapshot->block_count >= UINT32_MAX / 2)
        return frag_fail(error, FRAG_E_INPUT, "has more than %u entries and blocks",
                         UINT32_MAX / 2);
    for (uint32_t i = 0; i < snapshot->device_count; i++) {
        if (snapshot->devices[i].entry_count == 0 && snapshot->devices[i].segment_count == 0)
            continue;
        is_empty = false;
        add_device(state, i);
    }
    if (is_empty)
        return frag_fail(error, FRAG_E_INPUT,
                         "holds no segments and no history; it was taken before the first "
                         "allocation or without _record_memory_history");
    return true;
}

static bool import_values(frag_input *input, const frag_load_options *options,
                          frag_recording *recording, frag_findings *findings, frag_error *error)
{
    frag_snapshot snapshot;
    *recording = (frag_recording){0};
    if (!frag_snapshot_parse(input, &snapshot, error))
        return frag_error_in(error, frag_input_name(input));
    importer state = {
        .snapshot = &snapshot,
        .recording = recording,
        .builder = frag_builder_create(recording),
        .findings = findings,
    };
    frag_snapshot_sites_create(&state.sites, snapshot.pickle, state.builder, options->with_sites);
    bool is_plot = frag_profile_plot_is_one(&snapshot);
    frag_builder_metadata(state.builder, "source",
                          is_plot ? "torch-profile-plot" : "torch-snapshot");
    if (!is_plot)
        add_versions(&snapshot, state.builder);
    add_settings(&state);
    if (snapshot.host_segment_count > 0 || snapshot.host_entry_count > 0)
        frag_findings_add(findings, "host-memory",
                          "the snapshot also shows pinned host memory, which is not replayed",
                          false, 0, 0, "%llu segments, %llu entries",
                          (unsigned long long)snapshot.host_segment_count,
                          (unsigned long long)snapshot.host_entry_count);
    frag_snapshot_restore(&snapshot, state.builder, findings);
    bool ok = add_devices(&state, error);
    frag_snapshot_sites_destroy(&state.sites);
    frag_snapshot_destroy(&snapshot);
    if (ok)
        ok = frag_builder_finish(state.builder, frag_input_name(input), error);
    else
        frag_builder_abandon(state.builder);
    return ok || frag_error_in(error, frag_input_name(input));
}

/* ---- web pages that hold one */

/* Puts where the snapshot is before what is wrong with it. */
static bool fail_in_page(frag_error *error)
{
    char sentence[sizeof error->sentence];
    memcpy(sentence, error->sentence, sizeof sentence);
    return frag_fail(error, error->code, "in the snapshot that the page holds: %.*s", 440,
                     sentence);
}

static bool read_page(frag_input *page, const frag_load_options *options, frag_recording *recording,
                      frag_findings *findings, frag_error *error)
{
    frag_page_kind kind = FRAG_PAGE_SNAPSHOT;
    unsigned char *bytes = NULL;
    size_t count = 0;
    if (!frag_snapshot_page_find(page, &kind, error))
        return false;
    if (kind == FRAG_PAGE_PLOT)
        return frag_plot_page_read(page, recording, findings, error);
    if (!frag_snapshot_page_decode(page, &bytes, &count, error))
        return false;
    frag_input *input = frag_input_from_memory(bytes, count, frag_input_name(page));
    bool ok = import_values(input, options, recording, findings, error) || fail_in_page(error);
    frag_input_close(input);
    frag_free(bytes);
    return ok;
}

static bool read_snapshot(frag_input *input, const frag_load_options *options,
                          frag_recording *recording, frag_findings *findings, frag_error *error)
{
    const unsigned char *bytes = NULL;
    size_t count = 0;
    *recording = (frag_recording){0};
    if (!frag_input_peek(input, FRAG_FORMAT_LOOK_BYTES, &bytes, &count, error))
        return frag_error_in(error, frag_input_name(input));
    if (frag_look_begins(bytes, count, "<"))
        return read_page(input, options, recording, findings, error) ||
               frag_error_in(error, frag_input_name(input));
    return import_values(input, options, recording, findings, error);
}

/* A pickle, whose first byte no text in UTF-8 begins with, JSON, or a web page with one in it. */
static bool is_like_snapshot(const unsigned char *bytes, size_t count)
{
    return (count > 0 && bytes[0] == 0x80) || frag_snapshot_json_is_like(bytes, count) ||
           frag_snapshot_page_is_like(bytes, count);
}

static const char *lacks_a_snapshot(const unsigned char *bytes, size_t count)
{
    return frag_look_starts(bytes, count, "PK\x03\x04")
               ? "the file is a zip archive; expected a snapshot written by "
                 "torch.cuda.memory._dump_snapshot or pickle.dump, a .fgt or a text trace"
               : NULL;
}

const frag_format frag_format_snapshot = {
    .what = "torch.cuda.memory._snapshot of PyTorch: pickle, JSON, page of _memory_viz",
    .page = "reading-snapshots.md",
    .is_like = is_like_snapshot,
    .lacks = lacks_a_snapshot,
    .read = read_snapshot,
};
