/* Traces that STAlloc records (mem_log_devN.txt): a line for each request, "1 POINTER BYTES
 * STREAM", and each release, "0 POINTER BYTES STREAM"; between them lines that mark phases of the
 * training. Sizes are those that the program asked for. There are no times: lines are in order.
 * Source: infinigence/STAlloc, what its recorder writes and its trace parser reads; the wordings of
 * its markers are not fixed, so any line that begins with a letter is one.
 *
 * A file is one trace, of device 0, as only its name says of which device it is. */
#include <inttypes.h>
#include <string.h>

#include "traces/exchange/csv_lines.h"
#include "traces/exchange/live_blocks.h"
#include "traces/formats.h"

#define MARKER_BYTES_MAX 1000u

enum { FIELD_ACTION, FIELD_POINTER, FIELD_SIZE, FIELD_STREAM, FIELDS };

/* What markers begin with that are known. */
static const char *const markers[] = {"Iteration Index", "micro-batch", "end"};

typedef struct stalloc_reader {
    frag_csv_lines lines;
    frag_error *error;
    frag_findings *findings;
    frag_builder *builder;
    frag_live_blocks live;
    const char *text; /* the current line */
    size_t length;
    uint64_t call_count;
} stalloc_reader;

/* ---- lines */

static bool is_blank(char byte)
{
    return byte == ' ' || byte == '\t';
}

/* -1: there are more than FIELDS. */
static int split_line(const char *text, size_t length, frag_csv_field *fields)
{
    int count = 0;
    for (size_t i = 0; i < length;) {
        size_t start = i;
        while (i < length && !is_blank(text[i]))
            i++;
        if (i > start && count == FIELDS)
            return -1;
        if (i > start)
            fields[count++] = (frag_csv_field){text + start, i - start};
        while (i < length && is_blank(text[i]))
            i++;
    }
    return count;
}

/* Decimal, or hexadecimal behind 0x; "(nil)" is null. */
static bool read_address(const frag_csv_field *field, uint64_t *address)
{
    bool is_hexadecimal =
        field->length > 2 && field->bytes[0] == '0' && (field->bytes[1] | 0x20) == 'x';
    *address = 0;
    return frag_csv_is(field, "(nil)") ||
           (is_hexadecimal ? frag_csv_hexadecimal(field, address)
                           : frag_csv_number(field, UINT64_MAX, address));
}

static bool is_call(const char *text, size_t length)
{
    return length > 1 && (text[0] == '0' || text[0] == '1') && is_blank(text[1]);
}

static bool is_known_marker(const char *text, size_t length)
{
    for (size_t i = 0; i < sizeof markers / sizeof markers[0]; i++) {
        size_t marker_length = strlen(markers[i]);
        if (length >= marker_length && memcmp(text, markers[i], marker_length) == 0)
            return true;
    }
    return false;
}

/* Is the first line that is no known marker a request or release? */
static bool is_like_stalloc(const unsigned char *bytes, size_t count)
{
    const char *text = (const char *)bytes;
    size_t start = 0;
    while (start < count) {
        const char *end = memchr(text + start, '\n', count - start);
        size_t length = end != NULL ? (size_t)(end - text) - start : count - start;
        if (length > 0 && text[start + length - 1] == '\r')
            length--;
        if (!is_known_marker(text + start, length)) {
            frag_csv_field fields[FIELDS];
            uint64_t value = 0;
            return is_call(text + start, length) &&
                   split_line(text + start, length, fields) == FIELDS &&
                   read_address(&fields[FIELD_POINTER], &value) &&
                   frag_csv_number(&fields[FIELD_SIZE], FRAG_REQUEST_BYTES_MAX, &value) &&
                   read_address(&fields[FIELD_STREAM], &value);
        }
        if (end == NULL)
            return false;
        start = (size_t)(end - text) + 1;
    }
    return false;
}

/* ---- calls */

static bool fail_field(const stalloc_reader *reader, const frag_csv_field *at, const char *expected)
{
    return frag_fail_line(reader->error, reader->lines.line,
                          (uint64_t)(at->bytes - reader->text) + 1, "found '%.*s'; expected %s",
                          (int)(at->length < 40 ? at->length : 40), at->bytes, expected);
}

static bool read_call(stalloc_reader *reader)
{
    frag_csv_field fields[FIELDS];
    frag_live_call call = {.entry = reader->lines.line - 1};
    int count = split_line(reader->text, reader->length, fields);
    if (count != FIELDS)
        return frag_fail_line(
            reader->error, reader->lines.line, 0,
            "the line has %s fields; expected four: 1 or 0, pointer, bytes, stream",
            count < 0 ? "more" : "fewer");
    if (!read_address(&fields[FIELD_POINTER], &call.address))
        return fail_field(reader, &fields[FIELD_POINTER],
                          "a pointer, decimal or such as 0x7f8a40000000");
    if (!frag_csv_number(&fields[FIELD_SIZE], FRAG_REQUEST_BYTES_MAX, &call.bytes))
        return fail_field(reader, &fields[FIELD_SIZE], "a whole number from 0 to 2^56 - 1");
    if (!read_address(&fields[FIELD_STREAM], &call.stream))
        return fail_field(reader, &fields[FIELD_STREAM], "a stream, decimal or such as 0x5581a0");
    bool is_free = reader->text[0] == '0';
    call.text = is_free ? "free" : "allocation";
    if (!is_free && call.address == 0 && call.bytes > 0)
        return fail_field(reader, &fields[FIELD_POINTER],
                          "the address of memory, as the request was served");
    reader->call_count++;
    if (call.bytes == 0 || call.address == 0)
        frag_findings_add(reader->findings, "request-of-nothing",
                          "no memory was asked for or given back; the line was left out", false, 0,
                          call.entry, "%s of %" PRIu64 " bytes", call.text, call.bytes);
    else if (is_free)
        frag_live_free(&reader->live, &call);
    else
        frag_live_alloc(&reader->live, &call);
    return true;
}

/* Any line that begins with a letter: forks of the recorder have markers of their own. */
static bool read_marker(stalloc_reader *reader)
{
    char first = reader->text[0];
    bool is_letter = (first >= 'a' && first <= 'z') || (first >= 'A' && first <= 'Z');
    if (!is_letter)
        return frag_fail_line(reader->error, reader->lines.line, 1,
                              "found '%.*s'; expected 1 (request) or 0 (release), or a marker",
                              (int)(reader->length < 40 ? reader->length : 40), reader->text);
    if (reader->length > MARKER_BYTES_MAX)
        return frag_fail_line(reader->error, reader->lines.line, 1,
                              "the marker has %zu bytes; expected at most %u", reader->length,
                              MARKER_BYTES_MAX);
    if (!is_known_marker(reader->text, reader->length))
        frag_findings_add(reader->findings, "marker-not-known",
                          "a line is neither request nor release; it was kept as a mark", false, 0,
                          reader->lines.line - 1, "%.*s",
                          (int)(reader->length < 120 ? reader->length : 120), reader->text);
    frag_build_event event = {
        .op = FRAG_OP_MARK,
        .slot = frag_builder_string(reader->builder, reader->text, reader->length),
    };
    frag_builder_add(reader->builder, &event);
    return true;
}

/* The program may have ended while it wrote. */
static bool forgive_last_line(stalloc_reader *reader)
{
    if (reader->lines.is_ended)
        return false;
    *reader->error = (frag_error){0};
    frag_findings_add(
        reader->findings, "row-cut-off",
        "the file ends inside a line, as when a program is killed; that line was left out", false,
        0, reader->lines.line - 1, "%s", "the last line");
    return true;
}

static bool read_lines(stalloc_reader *reader)
{
    while (frag_csv_next(&reader->lines, &reader->text, &reader->length, reader->error)) {
        if (reader->length == 0)
            continue;
        bool ok = is_call(reader->text, reader->length) ? read_call(reader) : read_marker(reader);
        if (!ok && !forgive_last_line(reader))
            return false;
    }
    if (reader->lines.has_failed)
        return false;
    if (reader->call_count == 0)
        return frag_fail_line(
            reader->error, reader->lines.line > 0 ? reader->lines.line : 1, 0,
            "the file ends with no request; expected lines such as '1 140231956185088 1048576 0'");
    return reader->call_count < FRAG_SLOT_NONE / 4 ||
           frag_fail(reader->error, FRAG_E_INPUT, "there are more than 2^30 requests");
}

static bool read_stalloc(frag_input *input, const frag_load_options *options,
                         frag_recording *recording, frag_findings *findings, frag_error *error)
{
    (void)options;
    *recording = (frag_recording){0};
    stalloc_reader reader = {
        .lines = {.input = input},
        .error = error,
        .findings = findings,
        .builder = frag_builder_create(recording),
    };
    reader.live = (frag_live_blocks){.builder = reader.builder, .findings = findings};
    frag_builder_metadata(reader.builder, "source", "stalloc");
    frag_builder_device(reader.builder, 0);
    bool ok = read_lines(&reader);
    frag_live_destroy(&reader.live);
    return frag_builder_end(reader.builder, ok, input, error);
}

const frag_format frag_format_stalloc = {
    .what = "requests that STAlloc recorded, text",
    .page = "exchange.md#traces-of-stalloc",
    .is_like = is_like_stalloc,
    .read = read_stalloc,
};
