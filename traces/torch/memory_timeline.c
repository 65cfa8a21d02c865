/* Memory timelines of PyTorch's profiler: profiler.export_memory_timeline("NAME.raw.json.gz"). A
 * JSON array of events [time in ns, action, bytes, category] of one device, in the order of time:
 *
 *   action    1 was there before (time -1), 2 created, 3 written to (twice: its category before,
 *             with minus bytes, and after), 4 destroyed (minus bytes)
 *   category  0 parameter, 1 optimizer state, 2 input, 3 temporary, 4 activation, 5 gradient,
 *             6 autograd detail, 7 not known
 *
 * Which creation a destruction ends is not in it: traces/exchange/size_pairs.h. The other two files
 * that export_memory_timeline writes hold no events: sums over time (.json) and a picture (.html).
 * Source: pytorch/pytorch, torch/profiler/_memory_profiler.py. */
#include <inttypes.h>
#include <string.h>

#include "traces/builder.h"
#include "traces/exchange/size_pairs.h"
#include "traces/format_look.h"
#include "traces/formats.h"
#include "traces/pickle/json_tree.h"

enum { ACTION_THERE = 1, ACTION_CREATED, ACTION_WRITTEN, ACTION_DESTROYED };
enum { CATEGORIES = FRAG_SIZE_GROUPS };
enum { FIELD_TIME, FIELD_ACTION, FIELD_BYTES, FIELD_CATEGORY, FIELDS };

static const char *const category_names[CATEGORIES] = {
    "parameter",  "optimizer state", "input",           "temporary",
    "activation", "gradient",        "autograd detail", "not known",
};

static const char *const action_names[] = {
    [ACTION_THERE] = "there before",
    [ACTION_CREATED] = "created",
    [ACTION_WRITTEN] = "written to",
    [ACTION_DESTROYED] = "destroyed",
};

#define SUMS_REFUSED                                                                               \
    "the file holds the sums of a memory timeline by category, and no allocations; export it "     \
    "anew with export_memory_timeline(\"NAME.raw.json.gz\"), or record a snapshot"

typedef struct timeline_event {
    int64_t time_ns; /* -1: before the profiler was started */
    uint64_t bytes;
    bool is_minus;
    uint8_t action;
    uint8_t category;
} timeline_event;

typedef struct timeline_reader {
    frag_pickle *tree;
    frag_error *error;
    frag_findings *findings;
    frag_builder *builder;
    frag_size_pairs pairs;
    uint32_t sites[CATEGORIES];
    uint64_t start_ns; /* of the first event that has a time */
    bool has_before;   /* the last event was the first half of a "written to" */
    timeline_event before;
} timeline_reader;

/* ---- what it is */

/* Behind numbers with commas between them, from at on; *numbers: how many. */
static size_t past_numbers(const unsigned char *bytes, size_t count, size_t at, unsigned *numbers)
{
    bool is_inside = false;
    *numbers = 0;
    for (; at < count && memchr("0123456789-, \t\r\n", bytes[at], 16) != NULL; at++) {
        bool is_digit = (bytes[at] >= '0' && bytes[at] <= '9') || bytes[at] == '-';
        *numbers += is_digit && !is_inside && *numbers < UINT32_MAX ? 1 : 0;
        is_inside = is_digit;
    }
    return at;
}

/* Does it begin like the events, or like the sums, which the reader refuses with what to do? */
static bool is_like_timeline(const unsigned char *bytes, size_t count)
{
    unsigned numbers = 0;
    size_t seen = count < FRAG_FORMAT_LOOK_BYTES ? count : FRAG_FORMAT_LOOK_BYTES;
    size_t outer = frag_look_past_space(bytes, seen, 0);
    size_t inner = frag_look_past_space(bytes, seen, outer + 1);
    if (inner >= seen || bytes[outer] != '[' || bytes[inner] != '[')
        return false;
    size_t end = past_numbers(bytes, seen, inner + 1, &numbers);
    return numbers > 0 && (end == seen || bytes[end] == ']');
}

/* Does it begin like the web page with the picture? */
static bool is_picture(const unsigned char *bytes, size_t count)
{
    size_t seen = count < FRAG_FORMAT_LOOK_BYTES ? count : FRAG_FORMAT_LOOK_BYTES;
    return frag_look_contains(bytes, seen, "<title>GPU Memory Timeline HTML</title>");
}

/* ---- events */

static bool fail_event(const timeline_reader *reader, uint64_t index, const char *expected)
{
    return frag_fail(reader->error, FRAG_E_INPUT, "event %" PRIu64 " is not as expected: %s", index,
                     expected);
}

static bool read_fields(const timeline_reader *reader, frag_pickle_value item,
                        int64_t fields[FIELDS])
{
    frag_pickle_walk walk = frag_pickle_begin(reader->tree, item);
    frag_pickle_value value = 0;
    for (int i = 0; i < FIELDS; i++)
        if (!frag_pickle_next(reader->tree, &walk, &value) ||
            !frag_pickle_signed(reader->tree, value, &fields[i]))
            return false;
    return !frag_pickle_next(reader->tree, &walk, &value);
}

static bool read_event(const timeline_reader *reader, frag_pickle_value item, uint64_t index,
                       timeline_event *event)
{
    const int64_t bytes_max = (int64_t)FRAG_REQUEST_BYTES_MAX;
    int64_t fields[FIELDS];
    if (!read_fields(reader, item, fields))
        return fail_event(reader, index, "four whole numbers, [time, action, bytes, category]");
    int64_t bytes = fields[FIELD_BYTES];
    if (fields[FIELD_TIME] < -1)
        return fail_event(reader, index, "a time in nanoseconds, or -1");
    if (fields[FIELD_ACTION] < ACTION_THERE || fields[FIELD_ACTION] > ACTION_DESTROYED)
        return fail_event(reader, index, "an action of 1 to 4");
    if (bytes < -bytes_max || bytes > bytes_max)
        return fail_event(reader, index, "bytes of at most 2^56 - 1");
    if (fields[FIELD_CATEGORY] < 0 || fields[FIELD_CATEGORY] >= CATEGORIES)
        return fail_event(reader, index, "a category of 0 to 7");
    *event = (timeline_event){
        .time_ns = fields[FIELD_TIME],
        .bytes = (uint64_t)(bytes < 0 ? -bytes : bytes),
        .is_minus = bytes < 0,
        .action = (uint8_t)fields[FIELD_ACTION],
        .category = (uint8_t)fields[FIELD_CATEGORY],
    };
    bool is_end = event->action == ACTION_DESTROYED;
    if (event->action != ACTION_WRITTEN && event->bytes > 0 && event->is_minus != is_end)
        return fail_event(reader, index,
                          is_end ? "bytes below zero, as something was destroyed"
                                 : "bytes above zero, as something was created");
    return true;
}

/* The halves of a "written to" stand one behind the other. */
static bool add_written(timeline_reader *reader, const timeline_event *event, uint64_t index)
{
    if (event->is_minus == reader->has_before ||
        (reader->has_before && reader->before.bytes != event->bytes))
        return event->bytes == 0 ||
               fail_event(reader, index,
                          "the second half of what was written to, of as many bytes");
    if (reader->has_before)
        frag_size_pairs_move(&reader->pairs, event->bytes, reader->before.category,
                             event->category);
    reader->has_before = !reader->has_before;
    reader->before = *event;
    return true;
}

static void note_before(timeline_reader *reader, const timeline_event *event, uint64_t index)
{
    if (event->action == ACTION_THERE)
        frag_findings_add(
            reader->findings, "began-in-use",
            "memory was in use before the profiler was started; it was taken as asked for first",
            false, 0, index, "%" PRIu64 " bytes, %s", event->bytes,
            category_names[event->category]);
}

static bool add_event(timeline_reader *reader, frag_pickle_value item, uint64_t index)
{
    timeline_event event;
    if (!read_event(reader, item, index, &event))
        return false;
    if (reader->has_before && event.action != ACTION_WRITTEN)
        return fail_event(reader, index, "the second half of what was written to");
    if (event.action == ACTION_WRITTEN)
        return add_written(reader, &event, index);
    frag_live_call call = {
        .time_ns = event.time_ns >= 0 ? (uint64_t)event.time_ns : reader->start_ns,
        .bytes = event.bytes,
        .entry = index,
        .text = action_names[event.action],
        .group = event.category,
        .site = reader->sites[event.category],
    };
    note_before(reader, &event, index);
    if (event.bytes == 0)
        frag_findings_add(reader->findings, "request-of-nothing",
                          "no memory was asked for or given back; the event was left out", false, 0,
                          index, "%s, 0 bytes", call.text);
    else if (event.action == ACTION_DESTROYED)
        frag_size_pairs_free(&reader->pairs, &call);
    else
        frag_size_pairs_alloc(&reader->pairs, &call);
    return true;
}

/* What was there before has no time. */
static uint64_t first_time(const timeline_reader *reader, frag_pickle_value root)
{
    frag_pickle_walk walk = frag_pickle_begin(reader->tree, root);
    frag_pickle_value item = 0;
    int64_t fields[FIELDS];
    while (frag_pickle_next(reader->tree, &walk, &item))
        if (read_fields(reader, item, fields) && fields[FIELD_TIME] >= 0)
            return (uint64_t)fields[FIELD_TIME];
    return 0;
}

/* The sums are two lists: of times, and of a list of sums for each of them. */
static bool is_of_sums(const frag_pickle *tree, frag_pickle_value root)
{
    frag_pickle_walk walk = frag_pickle_begin(tree, root);
    frag_pickle_value item = 0;
    if (frag_pickle_item_count(tree, root) != 2 || !frag_pickle_next(tree, &walk, &item) ||
        !frag_pickle_next(tree, &walk, &item))
        return false;
    walk = frag_pickle_begin(tree, item);
    return !frag_pickle_next(tree, &walk, &item) ||
           frag_pickle_kind_of(tree, item) == FRAG_PICKLE_LIST;
}

static bool build(timeline_reader *reader, frag_pickle_value root)
{
    frag_pickle_walk walk = frag_pickle_begin(reader->tree, root);
    frag_pickle_value item = 0;
    if (frag_pickle_kind_of(reader->tree, root) != FRAG_PICKLE_LIST ||
        frag_pickle_item_count(reader->tree, root) == 0)
        return frag_fail(
            reader->error, FRAG_E_INPUT,
            "the file holds no events; expected a JSON array of [time, action, bytes, category]");
    if (is_of_sums(reader->tree, root))
        return frag_fail(reader->error, FRAG_E_INPUT, SUMS_REFUSED);
    frag_builder_metadata(reader->builder, "source", "memory-timeline");
    frag_builder_metadata(reader->builder, FRAG_GUESSED_KEY, FRAG_GUESSED_PAIRS);
    for (unsigned i = 0; i < CATEGORIES; i++) {
        const char *name = category_names[i];
        frag_frame frame = {
            .name = frag_builder_string(reader->builder, name, strlen(name)),
            .file = frag_builder_string(reader->builder, "", 0),
        };
        uint32_t made = frag_builder_frame(reader->builder, frame);
        reader->sites[i] = frag_builder_site(reader->builder, &made, 1);
    }
    frag_builder_device(reader->builder, 0);
    reader->start_ns = first_time(reader, root);
    reader->pairs =
        (frag_size_pairs){.builder = reader->builder, .findings = reader->findings, .device = 0};
    bool ok = true;
    for (uint64_t i = 0; ok && frag_pickle_next(reader->tree, &walk, &item); i++)
        ok = add_event(reader, item, i);
    frag_size_pairs_destroy(&reader->pairs);
    return ok;
}

static bool read_timeline(frag_input *input, const frag_load_options *options,
                          frag_recording *recording, frag_findings *findings, frag_error *error)
{
    (void)options;
    const frag_json_tree_options tree_options = {0};
    timeline_reader reader = {
        .tree = frag_pickle_create(NULL, 0), .error = error, .findings = findings};
    frag_pickle_value root = 0;
    *recording = (frag_recording){0};
    bool ok = frag_json_tree_read(reader.tree, input, &tree_options, &root, error);
    if (ok) {
        reader.builder = frag_builder_create(recording);
        ok = frag_builder_end(reader.builder, build(&reader, root), input, error);
    }
    frag_pickle_destroy(reader.tree);
    return ok;
}

static const char *lacks_data(const unsigned char *bytes, size_t count)
{
    return is_picture(bytes, count)
               ? "the web page holds a picture of a memory timeline and no data; export it anew "
                 "with export_memory_timeline(\"NAME.raw.json.gz\"), or record a snapshot"
               : NULL;
}

const frag_format frag_format_timeline = {
    .what = "events of export_memory_timeline of PyTorch's profiler, JSON",
    .page = "exchange.md#memory-timelines",
    .is_like = is_like_timeline,
    .lacks = lacks_data,
    .read = read_timeline,
};
