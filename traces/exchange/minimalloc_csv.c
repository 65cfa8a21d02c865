#include "traces/exchange/minimalloc_csv.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/memory.h"
#include "sim/policy_engine.h"
#include "traces/builder.h"
#include "traces/exchange/csv_lines.h"
#include "traces/formats.h"

#define FIELDS_MAX 8

typedef enum column {
    COLUMN_ID,
    COLUMN_LOWER,
    COLUMN_UPPER,
    COLUMN_SIZE,
    COLUMN_ALIGNMENT,
    COLUMN_HINT,
    COLUMN_GAPS,
    COLUMN_OFFSET,
    COLUMN_COUNT
} column;

static const struct {
    const char *name;
    column is;
    bool is_inclusive; /* holds the last time, not the one after it */
} names[] = {
    {"id", COLUMN_ID, false},         {"buffer", COLUMN_ID, false},
    {"buffer_id", COLUMN_ID, false},  {"lower", COLUMN_LOWER, false},
    {"start", COLUMN_LOWER, false},   {"begin", COLUMN_LOWER, false},
    {"upper", COLUMN_UPPER, false},   {"end", COLUMN_UPPER, true},
    {"size", COLUMN_SIZE, false},     {"alignment", COLUMN_ALIGNMENT, false},
    {"hint", COLUMN_HINT, false},     {"gaps", COLUMN_GAPS, false},
    {"offset", COLUMN_OFFSET, false},
};

typedef struct row {
    uint64_t lower;
    uint64_t upper;
    uint64_t size;
    uint64_t address; /* 0: no offset is given */
    uint32_t note;
    uint32_t slot;
} row;

typedef struct moment {
    uint64_t time;
    uint32_t row;
    bool is_start;
} moment;

typedef struct problem_reader {
    frag_csv_lines lines;
    frag_error *error;
    frag_builder *builder;
    int columns[FIELDS_MAX];
    int column_count;
    bool is_end_inclusive;
    row *rows;
    size_t row_count;
    size_t row_capacity;
} problem_reader;

/* ---- the header */

static int find_name(const frag_csv_field *at)
{
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strlen(names[i].name) == at->length &&
            memcmp(names[i].name, at->bytes, at->length) == 0)
            return (int)i;
    return -1;
}

/* Does the first line name the columns of a problem? */
static bool is_like_problem(const unsigned char *bytes, size_t count)
{
    const unsigned char *end = memchr(bytes, '\n', count);
    size_t length = end != NULL ? (size_t)(end - bytes) : count;
    if (length > 0 && bytes[length - 1] == '\r')
        length--;
    frag_csv_field fields[FIELDS_MAX];
    int field_count = frag_csv_split((const char *)bytes, length, fields, FIELDS_MAX);
    bool has[COLUMN_COUNT] = {false};
    for (int i = 0; i < field_count; i++) {
        int name = find_name(&fields[i]);
        if (name >= 0)
            has[names[name].is] = true;
    }
    return has[COLUMN_LOWER] && has[COLUMN_UPPER] && has[COLUMN_SIZE];
}

static uint64_t column_of(const char *line, const frag_csv_field *at)
{
    return (uint64_t)(at->bytes - line) + 1;
}

static bool read_header(problem_reader *reader, const char *line, size_t length)
{
    frag_csv_field fields[FIELDS_MAX];
    int count = frag_csv_split(line, length, fields, FIELDS_MAX);
    if (count < 0)
        return frag_fail_line(reader->error, reader->lines.line, 0,
                              "there are more than %d columns; expected id, lower, upper, size, "
                              "and if wanted alignment, hint, gaps, offset",
                              FIELDS_MAX);
    int place[COLUMN_COUNT];
    memset(place, 0xff, sizeof place);
    for (int i = 0; i < count; i++) {
        int name = find_name(&fields[i]);
        if (name < 0)
            return frag_fail_line(
                reader->error, reader->lines.line, column_of(line, &fields[i]),
                "'%.*s' is not a column of a packing problem; expected id, lower, "
                "upper, size, alignment, hint, gaps or offset",
                (int)(fields[i].length < 40 ? fields[i].length : 40), fields[i].bytes);
        column is = names[name].is;
        if (place[is] >= 0)
            return frag_fail_line(reader->error, reader->lines.line, column_of(line, &fields[i]),
                                  "column '%s' is there twice; expected it once", names[name].name);
        place[is] = i;
        reader->columns[i] = (int)is;
        reader->is_end_inclusive = reader->is_end_inclusive || names[name].is_inclusive;
    }
    static const char *const required[] = {"id", "lower", "upper", "size"};
    for (int i = 0; i <= COLUMN_SIZE; i++)
        if (place[i] < 0)
            return frag_fail_line(reader->error, reader->lines.line, 0,
                                  "there is no column '%s'; expected id, lower, upper and size",
                                  required[i]);
    reader->column_count = count;
    return true;
}

/* ---- rows */

static bool fail_field(problem_reader *reader, const char *line, const frag_csv_field *at,
                       const char *what, uint64_t min, uint64_t max)
{
    return frag_fail_line(reader->error, reader->lines.line, column_of(line, at),
                          "'%.*s' is not valid as %s; expected a whole number from %" PRIu64
                          " to %" PRIu64,
                          (int)(at->length < 40 ? at->length : 40), at->bytes, what, min, max);
}

static bool read_count(problem_reader *reader, const char *line, const frag_csv_field *at,
                       const char *what, uint64_t min, uint64_t max, uint64_t *value)
{
    return (frag_csv_number(at, max, value) && *value >= min) ||
           fail_field(reader, line, at, what, min, max);
}

/* A name, and the alignment where it is not 1 or the name could be read as one. */
static uint32_t make_note(problem_reader *reader, const frag_csv_field *id, uint64_t alignment)
{
    frag_text text = {0};
    frag_text_add_bytes(&text, id->bytes, id->length);
    size_t name_bytes = 0;
    bool is_plain = alignment == 1 && frag_problem_alignment(text.bytes, &name_bytes) == 1 &&
                    name_bytes == text.length;
    if (!is_plain)
        frag_text_add(&text, " alignment=%" PRIu64, alignment);
    uint32_t note = frag_builder_string(reader->builder, text.bytes, text.length);
    frag_text_destroy(&text);
    return note;
}

static bool read_row(problem_reader *reader, const char *line, const frag_csv_field *fields)
{
    row next = {0};
    const frag_csv_field *of[COLUMN_COUNT] = {NULL};
    uint64_t alignment = 1;
    uint64_t number = 0;
    for (int i = 0; i < reader->column_count; i++)
        of[reader->columns[i]] = &fields[i];
    if (of[COLUMN_ID]->length == 0 || memchr(of[COLUMN_ID]->bytes, '\0', of[COLUMN_ID]->length))
        return frag_fail_line(reader->error, reader->lines.line, column_of(line, of[COLUMN_ID]),
                              "the buffer has no name; expected one");
    if (!read_count(reader, line, of[COLUMN_LOWER], "time", 0, FRAG_MINIMALLOC_MAX, &next.lower) ||
        !read_count(reader, line, of[COLUMN_UPPER], "time", 0, FRAG_MINIMALLOC_MAX, &next.upper) ||
        !read_count(reader, line, of[COLUMN_SIZE], "size", 1, FRAG_MINIMALLOC_MAX, &next.size))
        return false;
    next.upper += reader->is_end_inclusive ? 1 : 0;
    if (next.upper <= next.lower)
        return frag_fail_line(reader->error, reader->lines.line, column_of(line, of[COLUMN_UPPER]),
                              "the buffer ends before it has begun; expected an end after %" PRIu64,
                              next.lower);
    if (of[COLUMN_ALIGNMENT] != NULL && !read_count(reader, line, of[COLUMN_ALIGNMENT], "alignment",
                                                    1, FRAG_MINIMALLOC_MAX, &alignment))
        return false;
    const frag_csv_field *hint = of[COLUMN_HINT];
    if (hint != NULL && !(hint->length == 2 && memcmp(hint->bytes, "-1", 2) == 0) &&
        !read_count(reader, line, hint, "hint", 0, FRAG_MINIMALLOC_MAX, &number))
        return false;
    if (of[COLUMN_GAPS] != NULL && of[COLUMN_GAPS]->length > 0)
        return frag_fail_line(reader->error, reader->lines.line, column_of(line, of[COLUMN_GAPS]),
                              "the buffer has gaps, which are not supported; expected none");
    if (of[COLUMN_OFFSET] != NULL) {
        if (!read_count(reader, line, of[COLUMN_OFFSET], "offset", 0,
                        FRAG_MINIMALLOC_MAX - next.size, &number))
            return false;
        next.address = FRAG_MINIMALLOC_BASE + number;
    }
    next.note = make_note(reader, of[COLUMN_ID], alignment);
    *FRAG_APPEND(reader->rows, reader->row_count, reader->row_capacity) = next;
    return true;
}

static bool read_rows(problem_reader *reader)
{
    const char *line = NULL;
    size_t length = 0;
    bool is_ended = false;
    while (frag_csv_next(&reader->lines, &line, &length, reader->error)) {
        frag_csv_field fields[FIELDS_MAX];
        bool ok = true;
        if (reader->lines.line == 1) {
            ok = read_header(reader, line, length);
        } else if (length == 0) {
            is_ended = true;
        } else {
            int count = frag_csv_split(line, length, fields, FIELDS_MAX);
            if (is_ended)
                ok = frag_fail_line(reader->error, reader->lines.line, 1,
                                    "a buffer follows an empty line; expected the end of the file");
            else if (count != reader->column_count)
                ok = frag_fail_line(
                    reader->error, reader->lines.line, 0,
                    "the line has %s fields than the header has columns; expected %d",
                    count < 0 || count > reader->column_count ? "more" : "fewer",
                    reader->column_count);
            else
                ok = read_row(reader, line, fields);
        }
        if (!ok)
            return false;
    }
    if (reader->lines.has_failed)
        return false;
    return reader->lines.line > 0 ||
           frag_fail_at(reader->error, 0, "the file is empty; expected a header");
}

/* ---- events */

static int compare_moments(const void *one, const void *other)
{
    const moment *a = one;
    const moment *b = other;
    if (a->time != b->time)
        return frag_compare(a->time, b->time);
    if (a->is_start != b->is_start)
        return a->is_start ? 1 : -1;
    return frag_compare(a->row, b->row);
}

static void add_events(problem_reader *reader)
{
    size_t count = reader->row_count * 2;
    moment *moments = frag_alloc(count, sizeof *moments);
    for (size_t i = 0; i < reader->row_count; i++) {
        moments[i * 2] = (moment){reader->rows[i].lower, (uint32_t)i, true};
        moments[i * 2 + 1] = (moment){reader->rows[i].upper, (uint32_t)i, false};
    }
    qsort(moments, count, sizeof *moments, compare_moments);
    for (size_t i = 0; i < count; i++) {
        row *of = &reader->rows[moments[i].row];
        frag_build_event event = {.op = FRAG_OP_FREE, .time_ns = moments[i].time};
        if (moments[i].is_start) {
            of->slot = frag_builder_slot_take(reader->builder);
            event.op = FRAG_OP_ALLOC;
            event.bytes = of->size;
            event.address = of->address;
            event.note = of->note;
        }
        event.slot = of->slot;
        frag_builder_add(reader->builder, &event);
        if (!moments[i].is_start)
            frag_builder_slot_give(reader->builder, of->slot);
    }
    frag_free(moments);
}

static bool read_problem(frag_input *input, const frag_load_options *options,
                         frag_recording *recording, frag_findings *findings, frag_error *error)
{
    (void)options;
    (void)findings;
    problem_reader reader = {.lines = {.input = input}, .error = error};
    *recording = (frag_recording){0};
    reader.builder = frag_builder_create(recording);
    frag_builder_metadata(reader.builder, FRAG_PROBLEM_KEY, "minimalloc");
    frag_builder_device(reader.builder, 0);
    bool ok = read_rows(&reader);
    ok = ok && (reader.row_count <= FRAG_SLOT_NONE / 4 ||
                frag_fail(error, FRAG_E_INPUT, "there are more than 2^30 buffers"));
    if (ok)
        add_events(&reader);
    frag_free(reader.rows);
    return frag_builder_end(reader.builder, ok, input, error);
}

/* ---- writing */

bool frag_minimalloc_write(const frag_recording *recording, const frag_trace *trace,
                           const frag_lifetime *lifetimes, uint64_t count, uint64_t alignment,
                           const uint64_t *offsets, FILE *stream, frag_error *error)
{
    bool is_aligned = false;
    for (uint64_t i = 0; i < count; i++)
        is_aligned =
            is_aligned || (lifetimes[i].alignment > 0 ? lifetimes[i].alignment : alignment) != 1;
    fprintf(stream, "id,lower,upper,size%s%s\n", is_aligned ? ",alignment" : "",
            offsets != NULL ? ",offset" : "");
    uint64_t event = 0;
    for (uint64_t i = 0; i < count; i++, event++) {
        const frag_lifetime *at = &lifetimes[i];
        while (trace->events[event].op != FRAG_OP_ALLOC)
            event++;
        if (at->upper <= at->lower) /* a request that failed */
            continue;
        if (at->alignment > 0 && trace->notes != NULL && trace->notes[event] != 0) {
            const char *note = frag_strings_get(&recording->strings, trace->notes[event]);
            size_t name_bytes = 0;
            (void)frag_problem_alignment(note, &name_bytes);
            fprintf(stream, "%.*s", (int)name_bytes, note);
        } else {
            fprintf(stream, "%" PRIu64, i);
        }
        fprintf(stream, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64, at->lower, at->upper, at->bytes);
        if (is_aligned)
            fprintf(stream, ",%" PRIu64, at->alignment > 0 ? at->alignment : alignment);
        if (offsets != NULL)
            fprintf(stream, ",%" PRIu64, offsets[i]);
        putc('\n', stream);
    }
    if (ferror(stream) != 0)
        return frag_fail(error, FRAG_E_SYSTEM, "writing failed (%s); is the disk full?",
                         strerror(errno));
    return true;
}

const frag_format frag_format_minimalloc = {
    .what = "packing problem of MiniMalloc and other planners, CSV",
    .page = "offline.md#a-problem-by-hand",
    .is_like = is_like_problem,
    .read = read_problem,
};
